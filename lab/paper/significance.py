"""Whether one method is better than another by more than luck: paired tests over seeds, or else over queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from lab.paper.outcomes import Outcome
    from rmsh.core.types import ScoreArray

__all__ = ["LEVEL", "Comparison", "compare", "paired_t"]

LEVEL = 0.05


@dataclass(frozen=True)
class Comparison:
    """The outcome of a paired, two-sided t-test.

    Args:
        over: what the pairs are, "seeds" or "queries".
        pairs: how many.
        difference: the mean difference.
        p: how likely a difference as large is where there is none.
    """

    over: str
    pairs: int
    difference: float
    p: float

    @property
    def significant(self) -> bool:
        """Whether luck is unlikely, at a level of 5 %."""
        return self.p < LEVEL

    def __str__(self) -> str:
        return f"{self.difference:+.4f}, p {_p_value(self.p)}, paired t-test over {self.pairs:,} {self.over}"


def _p_value(p: float) -> str:
    """A p value with few digits.

    Example:
        >>> _p_value(0.0312), _p_value(1e-9)
        ('= 0.031', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def paired_t(differences: ScoreArray) -> float:
    """The two-sided p value of a paired t-test; equal differences are certain.

    Example:
        >>> round(paired_t(np.array([1.0, 2.0, 3.0])), 4), paired_t(np.array([2.0, 2.0])), paired_t(np.zeros(3))
        (0.0742, 0.0, 1.0)
    """
    if np.ptp(differences) == 0:
        return 0.0 if differences[0] else 1.0
    deviation = differences.std(ddof=1) / np.sqrt(len(differences))
    return float(2 * stats.t.sf(abs(differences.mean()) / deviation, len(differences) - 1))


def compare(one: Sequence[Outcome], other: Sequence[Outcome], direction: str) -> Comparison | None:
    """How far apart two groups of runs are, None where nothing pairs them.

    Runs are paired by seed. A single common seed says nothing about luck while learning; then the queries are paired,
    which both were asked, and the test is about those queries only.
    """
    first, second = ({outcome.run.seed: outcome for outcome in group} for group in (one, other))
    seeds = sorted(first.keys() & second.keys())
    if len(seeds) > 1:
        apart = np.array([first[seed].score(direction) - second[seed].score(direction) for seed in seeds])
        return Comparison("seeds", len(seeds), float(apart.mean()), paired_t(apart))
    if not seeds:
        return None
    return _over_queries(first[seeds[0]], second[seeds[0]], direction)


def _over_queries(one: Outcome, other: Outcome, direction: str) -> Comparison | None:
    first, second = one.per_query(direction), other.per_query(direction)
    if first is None or second is None or len(first) != len(second):
        return None
    apart = first - second
    apart = apart[~np.isnan(apart)]
    if len(apart) < 2:
        return None
    return Comparison("queries", len(apart), one.score(direction) - other.score(direction), paired_t(apart))
