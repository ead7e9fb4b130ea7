"""Average precision from joint histograms, exact over the order of equal distances.

AP@k sums the precision at the rank of each relevant item among the first k and divides by one of:

- ``relevant``: all relevant items of the database;
- ``min(relevant,k)``: the most that fit into the first k;
- ``hits``: the relevant items found among the first k, so that fewer hits can score higher (the HashNet convention;
  a query without a hit counts 0).

With the whole database ranked, the three are the same. Inside a bucket of c items, m of them relevant, behind N items
of which R are relevant, the j-th item is relevant with probability m/c, and then (j-1)(m-1)/(c-1) of those before it in
the bucket are relevant on average. Summing over j gives harmonic numbers, so a bucket costs O(1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from scipy.special import digamma, gammaln

from rmsh.core.errors import ConfigError
from rmsh.metrics.ranking import Buckets, buckets, check_rank, where_relevant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import ScoreArray

    Histograms = NDArray[np.integer]  # (Q, distances, R + 1)

__all__ = ["NORMALISERS", "Normaliser", "average_precision", "average_precision_bounds"]

Normaliser: TypeAlias = Literal["relevant", "min(relevant,k)", "hits"]
NORMALISERS: tuple[Normaliser, ...] = get_args(Normaliser)

# The sum of precisions at the relevant items among the first ``taken`` of a bucket, in some order of the bucket.
_Order: TypeAlias = Callable[[Buckets, "ScoreArray"], "ScoreArray"]


def average_precision(
    histograms: Histograms, k: int | None = None, *, normaliser: Normaliser = "relevant"
) -> ScoreArray:
    """Expected AP@k of each query, (Q,); NaN for a query without a relevant item.

    Args:
        histograms: (Q, distances, R + 1).
        k: where the ranking is cut; None ranks the whole database.
        normaliser: what divides the sum of precisions.

    Example:
        >>> average_precision(np.array([[[0, 1], [1, 1]]]))  # the second relevant item is at rank 2 or 3
        array([0.91666667])
    """
    return _average(histograms, k, normaliser, _expected_order, _mean_over_hits)


def average_precision_bounds(
    histograms: Histograms, k: int | None = None, *, normaliser: Normaliser = "relevant"
) -> tuple[ScoreArray, ScoreArray]:
    """AP@k in the worst and in the best order of equal distances, each (Q,).

    Example:
        >>> worst, best = average_precision_bounds(np.array([[[0, 1], [1, 1]]]))
        >>> worst.round(3), best
        (array([0.833]), array([1.]))
    """
    worst = _average(histograms, k, normaliser, _worst_order, lambda values, *_: float(values.min()))
    best = _average(histograms, k, normaliser, _best_order, lambda values, *_: float(values.max()))
    return worst, best


def _average(
    histograms: Histograms,
    k: int | None,
    normaliser: Normaliser,
    order: _Order,
    choose: Callable[[ScoreArray, int, int, int], float],
) -> ScoreArray:
    if normaliser not in NORMALISERS:
        raise ConfigError(f"AP was to be divided by {normaliser!r}; give one of {', '.join(NORMALISERS)}.")
    near = buckets(histograms)
    cut = near.items.sum(axis=1).max(initial=1) if k is None else check_rank(k, histograms)
    taken = np.clip(cut - near.before, 0, near.items)
    if normaliser == "hits":
        return where_relevant(_divided_by_hits(near, taken, order, choose), histograms)
    relevant = near.relevant.sum(axis=1)
    divisor = relevant if normaliser == "relevant" else np.minimum(relevant, cut)
    return where_relevant(order(near, taken).sum(axis=1) / np.maximum(divisor, 1), histograms)


def _harmonic(first: ScoreArray, count: ScoreArray) -> ScoreArray:
    """1 / (first + 1) + ... + 1 / (first + count)."""
    return np.asarray(digamma(first + count + 1) - digamma(first + 1))


def _expected_order(near: Buckets, taken: ScoreArray) -> ScoreArray:
    tail = _harmonic(near.before, taken)
    share = near.relevant / np.maximum(near.items, 1)
    climb = (near.relevant - 1) / np.maximum(near.items - 1, 1)
    return np.asarray(share * ((near.relevant_before + 1) * tail + climb * (taken - (near.before + 1) * tail)))


def _best_order(near: Buckets, taken: ScoreArray) -> ScoreArray:
    """Relevant items first: the j-th has precision (R + j) / (N + j)."""
    hits = np.minimum(near.relevant, taken)
    return np.asarray(hits + (near.relevant_before - near.before) * _harmonic(near.before, hits))


def _worst_order(near: Buckets, taken: ScoreArray) -> ScoreArray:
    """Irrelevant items first."""
    ahead = near.before + near.items - near.relevant
    hits = np.maximum(taken - (near.items - near.relevant), 0)
    return np.asarray(hits + (near.relevant_before - ahead) * _harmonic(ahead, hits))


def _divided_by_hits(
    near: Buckets, taken: ScoreArray, order: _Order, choose: Callable[[ScoreArray, int, int, int], float]
) -> ScoreArray:
    """The sum of precisions over the number of hits, which is random only in the bucket that k cuts."""
    whole = taken == near.items
    sums = np.where(whole, order(near, taken), 0).sum(axis=1)
    found = np.where(whole, near.relevant, 0).sum(axis=1)
    values = sums / np.maximum(found, 1)
    for q, d in np.argwhere(~whole & (taken > 0)):
        items, relevant, drawn = int(near.items[q, d]), int(near.relevant[q, d]), int(taken[q, d])
        hits = _possible_hits(items, relevant, drawn)
        # given the hits, the part of the bucket before the cut is itself a bucket, taken whole
        part = Buckets(np.full_like(hits, drawn), hits, near.before[q, d, None], near.relevant_before[q, d, None])
        each = (sums[q] + order(part, part.items)) / np.maximum(found[q] + hits, 1)
        values[q] = choose(each, items, relevant, drawn)
    return np.asarray(values)


def _possible_hits(items: int, relevant: int, drawn: int) -> ScoreArray:
    return np.arange(max(0, relevant - (items - drawn)), min(relevant, drawn) + 1, dtype=np.float64)


def _mean_over_hits(values: ScoreArray, items: int, relevant: int, drawn: int) -> float:
    """The mean of values (one a number of possible hits), weighted by the hypergeometric probability of the hits."""
    hits = _possible_hits(items, relevant, drawn)
    ways = _log_choose(relevant, hits) + _log_choose(items - relevant, drawn - hits)
    weights = np.exp(ways - ways.max())
    return float(weights @ values / weights.sum())


def _log_choose(n: int, k: ScoreArray) -> ScoreArray:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
