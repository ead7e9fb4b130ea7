"""Differences between groups of runs, and the margin within which a difference is noise of the seeds.

The noise of a method is the variance of its scores over seeds, pooled over all its code lengths and presets that were
run with several seeds. A difference is decided if it is outside the 95 % interval of Student's t-distribution for this
noise and the numbers of runs. The interval covers the randomness of training, not the choice of queries, which are the
same for all runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from lab.paper.results import RunResult

LEVEL = 0.95


@dataclass(frozen=True)
class Noise:
    """The variance of scores over seeds, and its degrees of freedom (0 if there is only one seed)."""

    variance: float
    degrees: int


@dataclass(frozen=True)
class Difference:
    """The mean score of one group of runs minus that of another; the margin is None if the noise is unknown."""

    value: float
    margin: float | None

    @property
    def decided(self) -> bool:
        """Whether the difference exceeds the noise of the seeds."""
        return self.margin is not None and abs(self.value) > self.margin

    @property
    def agrees(self) -> bool:
        """Whether the first group is better."""
        return self.decided and self.value > 0

    def __str__(self) -> str:
        if self.margin is None:
            return f"{self.value:+.4f}, one seed, not decided"
        return f"{self.value:+.4f} ± {self.margin:.4f}" + ("" if self.decided else ", not decided")


def seed_noise(groups: Iterable[Sequence[RunResult]], direction: str, metric: str) -> Noise:
    """The noise pooled over groups, each of which differs in its seeds only.

    Groups with one run say nothing about it.
    """
    squares, degrees = 0.0, 0
    for group in groups:
        scores = np.array([result.score(direction, metric) for result in group])
        if len(scores) > 1:
            squares, degrees = squares + float(np.square(scores - scores.mean()).sum()), degrees + len(scores) - 1
    return Noise(squares / degrees if degrees else 0.0, degrees)


def compare(
    one: Sequence[RunResult],
    other: Sequence[RunResult],
    direction: str,
    *,
    metric: str,
    noise: tuple[Noise, Noise],
) -> Difference:
    """The difference of two groups, neither of which is empty; ``noise`` is that of either side."""
    means = [float(np.mean([result.score(direction, metric) for result in group])) for group in (one, other)]
    value, degrees = means[0] - means[1], sum(side.degrees for side in noise)
    if not all(side.degrees for side in noise):
        return Difference(value, None)
    spread = sqrt(noise[0].variance / len(one) + noise[1].variance / len(other))
    return Difference(value, float(stats.t.ppf((1 + LEVEL) / 2, degrees)) * spread)
