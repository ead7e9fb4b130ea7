"""Progress reports: library code calls a function, the command line draws a bar."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Progress:
    """The progress of one stage.

    Args:
        stage: what is being done ("train").
        done: units finished.
        total: all units.
        unit: what is counted ("epoch").
        seconds: time since the stage started.
        values: numbers to show, such as loss terms.
    """

    stage: str
    done: int
    total: int
    unit: str
    seconds: float
    values: Mapping[str, float] = field(default_factory=dict)

    @property
    def seconds_left(self) -> float | None:
        """An estimate from the speed so far, or None if nothing is done yet."""
        return self.seconds / self.done * (self.total - self.done) if self.done else None


OnProgress: TypeAlias = Callable[[Progress], None]


def ignore(progress: Progress) -> None:
    """Discard progress reports."""
