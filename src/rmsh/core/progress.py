"""Progress reports: library code calls a function, the command line draws a bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Progress:
    """The progress of one stage."""

    stage: str  # what is being done ("train")
    done: int  # finished units
    total: int  # all units
    unit: str  # what is counted ("epoch")
    seconds: float  # since the stage started
    values: Mapping[str, float] = field(default_factory=dict)  # numbers to show, such as loss terms

    @property
    def seconds_left(self) -> float | None:
        """An estimate from the speed so far, or None if nothing is done yet."""
        return self.seconds / self.done * (self.total - self.done) if self.done else None


OnProgress: TypeAlias = Callable[[Progress], None]


def counter(on_progress: OnProgress, stage: str, total: int, unit: str) -> Callable[[int], None]:
    """A function to call with the number of finished units; a single unit, such as a query, is not reported."""
    start = time.perf_counter()

    def report(done: int) -> None:
        if total > 1:
            on_progress(Progress(stage, done, total, unit, time.perf_counter() - start))

    return report


def ignore(progress: Progress) -> None:
    """Discard progress reports."""
