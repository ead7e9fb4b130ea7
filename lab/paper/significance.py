"""Paired t-tests between two groups of runs: over seeds, or over queries where only one seed is common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from lab.paper.results import RunResult
    from rmsh.core.types import ScoreArray

LEVEL = 0.05


@dataclass(frozen=True)
class PairedTest:
    """The result of a two-sided paired t-test."""

    over: str  # "seeds" or "queries"
    pairs: int
    difference: float  # the mean over pairs
    p: float

    @property
    def significant(self) -> bool:
        """Whether p is below 5 %."""
        return self.p < LEVEL

    def __str__(self) -> str:
        p = "< 0.001" if self.p < 0.001 else f"= {self.p:.3f}"
        return f"{self.difference:+.4f}, p {p}, paired t-test over {self.pairs:,} {self.over}"


def paired_t(differences: ScoreArray) -> float:
    """The two-sided p-value of a paired t-test; 0 if all differences are equal and not zero.

    Example:
        >>> round(paired_t(np.array([1.0, 2.0, 3.0])), 4), paired_t(np.array([2.0, 2.0])), paired_t(np.zeros(3))
        (0.0742, 0.0, 1.0)
    """
    if np.ptp(differences) == 0:
        return 0.0 if differences[0] else 1.0
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def compare(one: Sequence[RunResult], other: Sequence[RunResult], direction: str) -> PairedTest | None:
    """Test the difference of two groups of runs; None if they have no seed in common.

    Runs are paired by seed. With one common seed the queries are paired instead: such a test covers the choice of
    queries, not the randomness of training.
    """
    first, second = ({result.run.seed: result for result in group} for group in (one, other))
    seeds = sorted(first.keys() & second.keys())
    if len(seeds) > 1:
        apart = np.array([first[seed].score(direction) - second[seed].score(direction) for seed in seeds])
        return PairedTest("seeds", len(seeds), float(apart.mean()), paired_t(apart))
    if not seeds:
        return None
    ours, theirs = first[seeds[0]], second[seeds[0]]
    queries = ours.per_query(direction), theirs.per_query(direction)
    if queries[0] is None or queries[1] is None or len(queries[0]) != len(queries[1]):
        return None
    apart = queries[0] - queries[1]
    apart = apart[~np.isnan(apart)]
    if len(apart) < 2:
        return None
    return PairedTest("queries", len(apart), ours.score(direction) - theirs.score(direction), paired_t(apart))
