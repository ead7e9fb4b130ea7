"""The training loop: shuffles, steps, reports, checkpoints. A method gives it a module that returns loss terms.

A run can be killed at any moment and goes on from its last checkpoint with bit-identical results, because everything
random in an epoch follows from the seed and the epoch's number alone. There is a checkpoint after every epoch, or after
every few where a run has more than fifty: few items make many short epochs, which writing the state would make long.

What follows from the number of pairs where the user leaves it open: few make few steps, and are known by heart.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import torch

from rmsh.core.errors import TrainingError
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.data.pairs import dense_rows
from rmsh.training.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor, nn

    from rmsh.core.types import BitArray, Features, FloatArray, IntArray, LabelArray

_LEAST_STEPS = 800


def fitting_batch(items: int, given: int | None) -> int:
    """Items a step: 256, fewer where items are few, and what the user gave; never more than there are.

    Example:
        >>> fitting_batch(50_000, None), fitting_batch(1600, None), fitting_batch(20, None), fitting_batch(20, 128)
        (256, 100, 20, 20)
    """
    return min(given or min(256, max(32, items // 16)), items)


def enough_epochs(items: int, batch: int, *, usual: int) -> int:
    """Passes over the items: as usual, more where they would make too few steps to learn from.

    Example:
        >>> enough_epochs(50_000, 256, usual=10), enough_epochs(1600, 100, usual=10)
        (10, 50)
    """
    return max(usual, -(-_LEAST_STEPS // (items // batch)))


def fitting_dropout(items: int) -> float:
    """The share of a hidden layer that is dropped: a tenth, more where items are few and soon known by heart.

    Example:
        >>> [round(fitting_dropout(items), 2) for items in (500, 2000, 10_000, 50_000, 1_000_000)]
        [0.7, 0.69, 0.26, 0.1, 0.1]
    """
    return min(0.7, max(0.1, 0.1 * math.pow(50_000 / items, 0.6)))


_MOST_CHECKPOINTS = 50  # of a run

History = list[dict[str, float]]  # the mean of each loss term, an entry an epoch
Shape: TypeAlias = Literal["constant", "one-cycle", "linear"]


class Outcome(NamedTuple):
    """What an objective, the module the loop trains, returns for a batch."""

    terms: Mapping[str, Tensor]  # their sum is the loss
    watched: Mapping[str, float] = {}  # reported beside them, not minimised


@dataclass(frozen=True)
class Schedule:
    """How long and how fast.

    Args:
        epochs: passes over the data.
        batch: items a step, at the least: an epoch is cut evenly, so that no step is smaller.
        rate: Adam's learning rate, its peak where it varies.
        shape: "constant"; "one-cycle": a linear rise over the first fifth, then a cosine down to zero; or "linear":
            a straight line down to zero.
        cycles: how many times a run goes through the shape: as many as it has stages of equal length.
    """

    epochs: int
    batch: int
    rate: float
    shape: Shape = "constant"
    cycles: int = 1


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """The features and labels of the items learned from."""

    images: Features
    texts: Features
    labels: LabelArray
    has_image: BitArray | None = None  # (N,) None: all have one
    has_text: BitArray | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, rows: IntArray) -> Batch:
        """Some items as the networks see them."""
        return Batch(self, rows)


class Batch:
    """Some items as tensors; what is asked for is read, once, and sparse rows become dense here."""

    def __init__(self, data: TrainingSet, rows: IntArray) -> None:
        self._data, self._rows = data, rows

    @cached_property
    def rows(self) -> Tensor:
        """(n,) their place in the training set."""
        return torch.from_numpy(self._rows)

    @cached_property
    def images(self) -> Tensor:
        """(n, d)."""
        return _aligned(dense_rows(self._data.images, self._rows))

    @cached_property
    def texts(self) -> Tensor:
        """(n, d')."""
        return _aligned(dense_rows(self._data.texts, self._rows))

    @cached_property
    def labels(self) -> Tensor:
        """(n, C) float."""
        return torch.from_numpy(self._data.labels[self._rows]).float()

    @cached_property
    def present(self) -> Tensor:
        """(2, n) which items have a picture, and which a text; an absent one has arbitrary features."""
        masks = (self._data.has_image, self._data.has_text)
        return torch.stack(
            [torch.from_numpy(np.full(len(self._rows), True) if m is None else m[self._rows]) for m in masks]
        )


def _aligned(array: FloatArray) -> Tensor:
    """A copy in torch's memory, which is aligned as numpy's is not: sums of MKL differ with it in their last bits."""
    return torch.from_numpy(array).clone()


@runtime_checkable
class Alternating(Protocol):
    """An objective with work between epochs: a closed-form update over all items, or another stage of learning.

    What it keeps from one epoch to the next is in its buffers, so that a checkpoint has it too.
    """

    def begin_epoch(self, epoch: int, data: TrainingSet) -> None:
        """Called before the first step of an epoch, counted from 0."""


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
    schedule: Schedule,
    seed: int,
    checkpoint: Path | None = None,
    fingerprint: str = "",
    on_progress: OnProgress = ignore,
) -> History:
    """Minimise the terms of an objective (Batch -> Outcome) with Adam; go on from ``checkpoint`` if it exists.

    A parameter that no term of a step depends on is left alone by that step, so that stages need no optimiser each.

    Raises:
        TrainingError: the loss is not a finite number.
        FormatError: the checkpoint is damaged or belongs to another run.
    """
    optimizer = torch.optim.Adam(objective.parameters(), lr=schedule.rate, fused=True)
    history: History = []
    if checkpoint is not None and checkpoint.exists():
        history = Checkpoint.load(checkpoint, objective, optimizer, fingerprint=fingerprint).history
    resumed, start = len(history), time.perf_counter()
    objective.train()
    for epoch in range(resumed, schedule.epochs):
        with reproducible(seed, epoch):
            if isinstance(objective, Alternating):
                objective.begin_epoch(epoch, data)
            history.append(_epoch(objective, data, optimizer, schedule, epoch))
        if checkpoint is not None and _is_kept(epoch + 1, schedule.epochs):
            Checkpoint(len(history), history, fingerprint).save(checkpoint, objective, optimizer)
        done, total = epoch + 1 - resumed, schedule.epochs - resumed
        on_progress(Progress("train", done, total, "epoch", time.perf_counter() - start, history[-1]))
    objective.eval()
    return history


def _is_kept(done: int, epochs: int) -> bool:
    """Whether there is a checkpoint after some of a run's epochs.

    Example:
        >>> [done for done in range(1, 131) if _is_kept(done, 130)][-3:]
        [126, 129, 130]
    """
    return done == epochs or done % -(-epochs // _MOST_CHECKPOINTS) == 0


@contextmanager
def reproducible(seed: int, epoch: int) -> Iterator[None]:
    """Everything random and every sum inside follows from (seed, epoch); the caller's state is left as it was."""
    memory: Any = torch.utils.deterministic
    before = torch.are_deterministic_algorithms_enabled(), memory.fill_uninitialized_memory
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(np.random.SeedSequence((seed, epoch)).generate_state(1, np.uint64)[0] >> np.uint64(1)))
        torch.use_deterministic_algorithms(True)
        memory.fill_uninitialized_memory = False  # a guard against bugs of torch that costs hundreds of fills a step
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
            group["lr"] = rate_at(progress * schedule.cycles % 1.0, schedule)
        terms, watched = objective(data.batch(rows))
        values = {name: float(term.detach()) for name, term in terms.items()}
        if not math.isfinite(sum(values.values())):
            raise TrainingError(_not_finite(values, epoch, step, schedule))
        optimizer.zero_grad(set_to_none=True)
        torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        for name, value in {**values, **watched}.items():
            sums[name] = sums.get(name, 0.0) + value / steps
    return sums


def _not_finite(values: Mapping[str, float], epoch: int, step: int, schedule: Schedule) -> str:
    terms = ", ".join(f"{name} {value:.3g}" for name, value in values.items())
    return (
        f"The loss is not a finite number at epoch {epoch + 1}, step {step + 1} ({terms}); lower the learning rate "
        f"(now {schedule.rate:g}) or look for extreme values in the features."
    )
