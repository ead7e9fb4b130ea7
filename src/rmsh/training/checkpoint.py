"""Checkpoints: the whole state of a training run in one safetensors file, replaced atomically."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import safetensors
import safetensors.torch

from rmsh.core.errors import FormatError
from rmsh.core.files import atomic

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor, nn
    from torch.optim import Optimizer

_FORMAT = 1
History = list[dict[str, float]]  # mean loss terms, one entry per finished epoch


def save_checkpoint(path: Path, model: nn.Module, optimizer: Optimizer, *, history: History, fingerprint: str) -> None:
    """Write everything needed to resume with bit-identical results; the fingerprint identifies the run."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in state.items()}
    meta = {"format": _FORMAT, "epoch": len(history), "history": history, "fingerprint": fingerprint}
    contiguous = {name: value.detach().contiguous() for name, value in tensors.items()}
    with atomic(path) as file:
        file.write(safetensors.torch.save(contiguous, {"rmsh": json.dumps(meta)}))


def load_checkpoint(path: Path, model: nn.Module, optimizer: Optimizer, *, fingerprint: str) -> History:
    """Restore model and optimiser, and return the history; FormatError if it is damaged, newer or of another run."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            meta: dict[str, Any] = json.loads(file.metadata()["rmsh"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a mapping
    except (safetensors.SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise FormatError(f"{path} is not a readable checkpoint ({error}); delete it to start again.") from error
    if meta["format"] > _FORMAT:
        raise FormatError(f"{path} has format {meta['format']}; this rmsh reads up to {_FORMAT}: upgrade rmsh.")
    if meta["fingerprint"] != fingerprint:
        raise FormatError(
            f"{path} belongs to a run with other options, other data or another version of the method; delete it "
            "to start again, or use another folder."
        )
    weights: dict[str, Tensor] = {}
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        kind, _, rest = name.partition(".")
        if kind == "model":
            weights[rest] = value
        else:
            index, _, key = rest.partition(".")
            state.setdefault(int(index), {})[key] = value
    model.load_state_dict(weights)
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    history: History = meta["history"]
    return history
