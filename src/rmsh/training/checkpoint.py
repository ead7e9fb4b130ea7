"""Checkpoints: the whole state of a training run in one safetensors file, replaced atomically."""

from __future__ import annotations

import json
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Checkpoint:
    """The progress of a run; its weights and optimiser state are passed to ``save`` and ``load``."""

    epoch: int  # finished epochs
    history: list[dict[str, float]]  # mean loss terms, one entry per finished epoch
    fingerprint: str  # identifies the run by its configuration and data

    def save(self, path: Path, model: nn.Module, optimizer: Optimizer) -> None:
        """Write everything needed to resume with bit-identical results."""
        tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
        for index, state in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{name}": value for name, value in state.items()}
        meta = {"format": _FORMAT, "epoch": self.epoch, "history": self.history, "fingerprint": self.fingerprint}
        contiguous = {name: value.detach().contiguous() for name, value in tensors.items()}
        with atomic(path) as file:
            file.write(safetensors.torch.save(contiguous, {"rmsh": json.dumps(meta)}))

    @classmethod
    def load(cls, path: Path, model: nn.Module, optimizer: Optimizer, *, fingerprint: str) -> Checkpoint:
        """Restore the model and the optimiser from a file.

        Raises:
            FormatError: the file is damaged, has a newer format, or belongs to another run.
        """
        meta, tensors = _read(path)
        if meta["format"] > _FORMAT:
            raise FormatError(f"{path} has format {meta['format']}; this rmsh reads up to {_FORMAT}: upgrade rmsh.")
        if meta["fingerprint"] != fingerprint:
            raise FormatError(
                f"{path} belongs to a run with other options, other data or another version of the method; delete it "
                "to start again, or use another folder."
            )
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in _with_prefix("optimizer.", tensors).items():
            index, _, key = name.partition(".")
            state.setdefault(int(index), {})[key] = value
        model.load_state_dict(_with_prefix("model.", tensors))
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
        return cls(meta["epoch"], meta["history"], meta["fingerprint"])


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            meta = json.loads(file.metadata()["rmsh"])
            return meta, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a mapping
    except (safetensors.SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise FormatError(f"{path} is not a readable checkpoint ({error}); delete it to start again.") from error


def _with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
