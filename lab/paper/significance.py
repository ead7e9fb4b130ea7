"""Differences between groups of runs, and the margin within which a difference is noise of the seeds.

The noise of a group of runs is the variance of its scores over seeds. A group of fewer than three runs has the noise of
its method, pooled over all code lengths and presets that were run with several seeds. A difference is decided if it is
outside the 95 % interval of Student's t-distribution, with the degrees of freedom of Welch and Satterthwaite. The
interval covers the randomness of training, not the choice of queries, which are the same for all runs.
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
_OWN = 3  # runs that a group needs for a noise of its own


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


def noise_of(group: Sequence[RunResult], others: Iterable[Sequence[RunResult]], direction: str, metric: str) -> Noise:
    """The noise of a group: its own if it has enough runs, otherwise that pooled over the others."""
    return seed_noise([group] if len(group) >= _OWN else others, direction, metric)


def compare(
    one: Sequence[RunResult],
    other: Sequence[RunResult],
    direction: str,
    *,
    metric: str,
    noise: tuple[Noise, Noise],
    choices: int = 1,
) -> Difference:
    """The difference of two groups, neither of which is empty.

    ``noise`` is that of either side, twice the same for one estimate of both. If the groups were chosen by their scores
    from so many ``choices``, the level is that of Bonferroni.
    """
    means = [float(np.mean([result.score(direction, metric) for result in group])) for group in (one, other)]
    value = means[0] - means[1]
    if not all(side.degrees for side in noise):
        return Difference(value, None)
    variances = [side.variance / len(group) for side, group in zip(noise, (one, other), strict=True)]
    tail = (1 - LEVEL) / 2 / choices
    return Difference(value, float(stats.t.isf(tail, _degrees(noise, variances))) * sqrt(sum(variances)))


def _degrees(noise: tuple[Noise, Noise], variances: Sequence[float]) -> float:
    """The degrees of freedom of the difference of two means, from the variance of each."""
    if noise[0] is noise[1] or not any(variances):
        return noise[0].degrees
    shares = (variance**2 / side.degrees for variance, side in zip(variances, noise, strict=True))
    return sum(variances) ** 2 / sum(shares)
