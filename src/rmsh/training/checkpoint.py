"""Checkpoints: the whole state of a run in one safetensors file, replaced atomically."""

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

__all__ = ["Checkpoint"]

_FORMAT = 1


@dataclass(frozen=True)
class Checkpoint:
    """Where a run stands: its networks, its optimiser, the epochs behind it.

    Args:
        epoch: epochs finished.
        history: the mean loss terms of each of them.
        fingerprint: names the run (configuration and data); another run's checkpoint is refused.
    """

    epoch: int
    history: list[dict[str, float]]
    fingerprint: str

    def save(self, path: Path, model: nn.Module, optimizer: Optimizer) -> None:
        """Write everything needed to go on, bit for bit."""
        tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
        for index, state in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{name}": value for name, value in state.items()}
        meta = {"format": _FORMAT, "epoch": self.epoch, "history": self.history, "fingerprint": self.fingerprint}
        data = safetensors.torch.save(
            {name: value.detach().contiguous() for name, value in tensors.items()}, {"rmsh": json.dumps(meta)}
        )
        with atomic(path) as file:
            file.write(data)

    @classmethod
    def load(cls, path: Path, model: nn.Module, optimizer: Optimizer, *, fingerprint: str) -> Checkpoint:
        """Put the state of a file into a model and an optimiser.

        Raises:
            FormatError: the file is damaged, of a newer version, or of another run.
        """
        meta, tensors = _read(path)
        if meta["format"] > _FORMAT:
            raise FormatError(f"{path} has format {meta['format']}, this rmsh reads up to {_FORMAT}; upgrade rmsh.")
        if meta["fingerprint"] != fingerprint:
            raise FormatError(
                f"{path} belongs to a run with other options or other data; remove it to start anew, or give another "
                "folder."
            )
        model.load_state_dict(_below("model.", tensors))
        optimizer.load_state_dict({**optimizer.state_dict(), "state": _nested(_below("optimizer.", tensors))})
        return cls(meta["epoch"], meta["history"], meta["fingerprint"])


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            meta = json.loads(file.metadata()["rmsh"])
            return meta, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a mapping
    except (safetensors.SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise FormatError(f"{path} is not a readable checkpoint ({error}); remove it to start anew.") from error


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _nested(flat: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """Turn "3.exp_avg" names back into an optimiser's state."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in flat.items():
        index, _, key = name.partition(".")
        state.setdefault(int(index), {})[key] = value
    return state
