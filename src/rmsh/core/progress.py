"""How long work reports itself: library code calls back, the command line draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Progress:
    """One report: how far a stage is, and what is worth showing of it.

    Args:
        stage: what is being done ("train").
        done: units finished.
        total: units in all.
        unit: what is counted ("epoch").
        seconds: time since the stage began.
        values: numbers of interest, such as loss terms.
    """

    stage: str
    done: int
    total: int
    unit: str
    seconds: float
    values: Mapping[str, float] = field(default_factory=dict)

    @property
    def seconds_left(self) -> float | None:
        """An estimate from the pace so far, or None before anything is done."""
        return self.seconds / self.done * (self.total - self.done) if self.done else None


OnProgress: TypeAlias = Callable[[Progress], None]


def ignore(progress: Progress) -> None:
    """Report to nobody."""
