"""The training loop: shuffles, steps, reports and writes checkpoints.

A method supplies the objective, a module that maps a batch to loss terms. All randomness in an epoch follows from the
seed and the number of the epoch, so a run that is killed at any moment resumes from its last checkpoint with
bit-identical results. Default values that depend on the number of items (batch size, epochs, dropout) are defined here
as well.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import safetensors
import safetensors.torch
import torch

from rmsh.core.errors import FormatError, TrainingError
from rmsh.core.files import atomic
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.core.types import BitArray, Features, IntArray, LabelArray
from rmsh.data.pairs import dense_rows

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor, nn
    from torch.optim import Optimizer


Shape: TypeAlias = Literal["constant", "one-cycle", "linear"]

_MIN_STEPS = 800
_MAX_CHECKPOINTS = 50  # per run: few items make many short epochs, which writing the state each time would slow down


def batch_size(items: int, requested: int | None) -> int:
    """The requested number of items per step, or 256, or fewer for few items; never more than there are.

    Example:
        >>> batch_size(50_000, None), batch_size(1600, None), batch_size(20, None), batch_size(20, 128)
        (256, 100, 20, 20)
    """
    return min(requested or min(256, max(32, items // 16)), items)


def enough_epochs(items: int, batch: int, *, usual: int) -> int:
    """The usual number of epochs, or more if they would make fewer than 800 steps.

    Example:
        >>> enough_epochs(50_000, 256, usual=10), enough_epochs(1600, 100, usual=10)
        (10, 50)
    """
    return max(usual, -(-_MIN_STEPS // (items // batch)))


def dropout_rate(items: int) -> float:
    """0.1, or up to 0.7 for few items, which a network soon memorises.

    Example:
        >>> [round(dropout_rate(items), 2) for items in (500, 2000, 10_000, 50_000, 1_000_000)]
        [0.7, 0.69, 0.26, 0.1, 0.1]
    """
    return min(0.7, max(0.1, 0.1 * math.pow(50_000 / items, 0.6)))


class Losses(NamedTuple):
    """What an objective returns for a batch."""

    terms: Mapping[str, Tensor]  # their sum is minimised
    watched: Mapping[str, float] = {}  # reported, not minimised


@dataclass(frozen=True)
class Schedule:
    """The length of a stage of training, its batches and its learning rate."""

    epochs: int
    batch: int  # minimum items per step: an epoch is divided evenly
    rate: float  # Adam's learning rate; the peak if it varies
    # "one-cycle": a linear rise over the first fifth, then a cosine to zero. "linear": a straight line to zero.
    shape: Shape = "constant"


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Features and labels of N training items."""

    images: Features
    texts: Features
    labels: LabelArray
    present: BitArray | None = None  # (2, N), which items have an image and which have a text; None: all

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, rows: IntArray) -> Batch:
        """Select items."""
        return Batch(self, rows)

    def present_features(self) -> list[Features]:
        """Image and text features, without the rows of items that have none."""
        masks = (None, None) if self.present is None else self.present
        sides = zip((self.images, self.texts), masks, strict=True)
        return [features if has is None or has.all() else features[has] for features, has in sides]


class Batch:
    """Some items as tensors, each read on first use; sparse rows become dense here."""

    def __init__(self, data: TrainingSet, rows: IntArray) -> None:
        self._data, self._rows = data, rows

    @cached_property
    def rows(self) -> Tensor:
        """(n,) indices in the training set."""
        return torch.from_numpy(self._rows)

    @cached_property
    def images(self) -> Tensor:
        """(n, d)."""
        return _aligned_rows(self._data.images, self._rows)

    @cached_property
    def texts(self) -> Tensor:
        """(n, d')."""
        return _aligned_rows(self._data.texts, self._rows)

    @cached_property
    def labels(self) -> Tensor:
        """(n, C) float."""
        return torch.from_numpy(self._data.labels[self._rows]).float()

    @cached_property
    def present(self) -> Tensor:
        """(2, n) which items have an image and which have a text; the features of an absent one are arbitrary."""
        if self._data.present is None:
            return torch.ones(2, len(self._rows), dtype=torch.bool)
        return torch.from_numpy(self._data.present.take(self._rows, axis=1))


def _aligned_rows(features: Features, rows: IntArray) -> Tensor:
    """Dense rows, copied to torch's aligned memory: MKL's sums depend on alignment in their last bits."""
    return torch.from_numpy(dense_rows(features, rows)).clone()


def rate_at(progress: float, schedule: Schedule) -> float:
    """The learning rate at a point of the run between 0 and 1.

    Example:
        >>> [round(rate_at(p, Schedule(1, 1, 1.0, "one-cycle")), 6) for p in (0.0, 0.1, 0.2, 0.6, 1.0)]
        [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    if schedule.shape == "constant":
        return schedule.rate
    if schedule.shape == "linear":
        return schedule.rate * (1 - progress)
    rise = 0.2
    if progress < rise:
        return schedule.rate * progress / rise
    return schedule.rate * 0.5 * (1 + math.cos(math.pi * (progress - rise) / (1 - rise)))


def train(
    objective: nn.Module,
    data: TrainingSet,
    *,
    stages: Sequence[Schedule],
    seed: int,
    checkpoint: Path | None = None,
    fingerprint: str = "",
    on_progress: OnProgress = ignore,
) -> History:
    """Minimise the terms of an objective (Batch -> Losses) with Adam; resume from ``checkpoint`` if it exists.

    Each stage has its own learning rates and batches; epochs are counted over all stages.

    If the objective has a method ``begin_epoch(epoch, data)``, it is called before each epoch: for a closed-form update
    over all items, or another stage of training. State that lasts longer than an epoch belongs in buffers, which the
    checkpoint contains. A step leaves parameters unchanged that none of its terms depends on.

    Returns the mean of each loss term, one entry per epoch.

    Raises:
        TrainingError: the loss is not finite.
        FormatError: the checkpoint is damaged or belongs to another run.
    """
    optimizer = torch.optim.Adam(objective.parameters(), lr=stages[0].rate, fused=True)
    history: History = []
    if checkpoint is not None and checkpoint.exists():
        history = load_checkpoint(checkpoint, objective, optimizer, fingerprint=fingerprint)
    resumed, start = len(history), time.perf_counter()
    epochs = [(stage, epoch) for stage in stages for epoch in range(stage.epochs)]
    every = -(-len(epochs) // _MAX_CHECKPOINTS)
    begin_epoch = getattr(objective, "begin_epoch", None)
    objective.train()
    for epoch, (stage, epoch_of_stage) in enumerate(epochs[resumed:], start=resumed):
        with reproducible(seed, epoch):
            if begin_epoch is not None:
                begin_epoch(epoch, data)
            history.append(_epoch(objective, data, optimizer, stage, epoch_of_stage))
        if checkpoint is not None and (len(history) % every == 0 or len(history) == len(epochs)):
            save_checkpoint(checkpoint, objective, optimizer, history=history, fingerprint=fingerprint)
        done, total = epoch + 1 - resumed, len(epochs) - resumed
        on_progress(Progress("train", done, total, "epoch", time.perf_counter() - start, history[-1]))
    objective.eval()
    return history


@contextmanager
def reproducible(seed: int, epoch: int) -> Iterator[None]:
    """Make random numbers and sums depend on (seed, epoch) only, and restore the caller's state afterwards."""
    memory: Any = torch.utils.deterministic
    before = torch.are_deterministic_algorithms_enabled(), memory.fill_uninitialized_memory
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(np.random.SeedSequence((seed, epoch)).generate_state(1, np.uint64)[0] >> np.uint64(1)))
        torch.use_deterministic_algorithms(True)
        memory.fill_uninitialized_memory = False  # a debugging aid of torch that costs hundreds of fills per step
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before[0])
            memory.fill_uninitialized_memory = before[1]


def _epoch(
    objective: nn.Module, data: TrainingSet, optimizer: torch.optim.Optimizer, schedule: Schedule, epoch: int
) -> dict[str, float]:
    """One pass over the data; returns the mean of each term."""
    steps = max(1, len(data) // schedule.batch)
    sums: dict[str, float] = {}
    for step, rows in enumerate(np.array_split(torch.randperm(len(data)).numpy(), steps)):
        progress = (epoch + (step + 0.5) / steps) / schedule.epochs
        for group in optimizer.param_groups:
            group["lr"] = rate_at(progress, schedule)
        terms, watched = objective(data.batch(rows))
        values = {name: float(term.detach()) for name, term in terms.items()}
        if not math.isfinite(sum(values.values())):
            listed = ", ".join(f"{name} {value:.3g}" for name, value in values.items())
            raise TrainingError(
                f"The loss is not finite at epoch {epoch + 1}, step {step + 1} ({listed}); lower the learning rate "
                f"(now {schedule.rate:g}) or check the features for extreme values."
            )
        optimizer.zero_grad(set_to_none=True)
        torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        for name, value in {**values, **watched}.items():
            sums[name] = sums.get(name, 0.0) + value / steps
    return sums


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
