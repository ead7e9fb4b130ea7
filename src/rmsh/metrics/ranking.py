"""Ranking measures from joint histograms: NDCG, average precision, precision and precision-recall curves.

Short codes tie, and a sorting routine that breaks ties arbitrarily makes a score depend on luck. Here a measure is the
exact expected value over all orders of items at equal distance, or that in the worst or the best ``order`` of them.
Values are per query; a query without a relevant item gets NaN. If ``k`` exceeds the size of the database, the
whole database is ranked. Curves are macro averages: precision and recall of each query first, then the mean.

AP@k sums the precision at the rank of each relevant item among the first k and divides by one of:

- ``relevant``: all relevant items of the database;
- ``min(relevant,k)``: the largest number that fits into the first k;
- ``hits``: the relevant items found among the first k, so that fewer hits can score higher (the HashNet convention;
  a query without a hit scores 0).

Over the whole database the three are equal. Consider a bucket of c items at equal distance, m of them relevant, after N
items of which R are relevant. The j-th item of the bucket is relevant with probability m/c, and then on average
(j-1)(m-1)/(c-1) of the items before it in the bucket are. The sum over j is a difference of harmonic numbers, so a
bucket costs O(1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from rmsh.core.errors import ConfigError
from rmsh.core.types import IntArray, ScoreArray
from rmsh.metrics.histogram import gains

if TYPE_CHECKING:
    Histograms = NDArray[np.integer]  # (Q, distances, R + 1)

Normaliser: TypeAlias = Literal["relevant", "min(relevant,k)", "hits"]
NORMALISERS: tuple[Normaliser, ...] = get_args(Normaliser)
Order: TypeAlias = Literal["expected", "worst", "best"]  # of items at equal distance
ORDERS: tuple[Order, ...] = get_args(Order)


class Buckets(NamedTuple):
    """Items at equal distance, nearest first; all float64 (Q, distances)."""

    items: ScoreArray
    relevant: ScoreArray
    before: ScoreArray  # items at smaller distances
    relevant_before: ScoreArray


def buckets(histograms: Histograms) -> Buckets:
    """Count the items and the relevant items at each distance."""
    items = histograms.sum(axis=2, dtype=np.float64)
    relevant = histograms[:, :, 1:].sum(axis=2, dtype=np.float64)
    return Buckets(items, relevant, np.cumsum(items, axis=1) - items, np.cumsum(relevant, axis=1) - relevant)


def _in_order(near: Buckets, order: Order) -> Buckets:
    """The relevant items of each bucket as a bucket of its own, after or before the irrelevant ones.

    The expected order leaves the buckets as they are.
    """
    if order == "expected":
        return near
    skipped = near.items - near.relevant if order == "worst" else 0
    return Buckets(near.relevant, near.relevant, near.before + skipped, near.relevant_before)


def _where_relevant(values: ScoreArray, histograms: Histograms) -> ScoreArray:
    """The values (Q, ...), with NaN for every query without a relevant item in the database."""
    return np.where(histograms[:, :, 1:].any(axis=(1, 2)), values.T, np.nan).T


def _check_rank(k: int, histograms: Histograms) -> int:
    """The rank at which to cut: at least 1, at most the size of the database."""
    if k < 1:
        raise ConfigError(f"The ranking is cut at k = {k}; give a whole number from 1.")
    return min(k, int(histograms[0].sum(dtype=np.int64))) if len(histograms) else k


def ndcg(histograms: Histograms, k: int, *, order: Order = "expected") -> ScoreArray:
    """NDCG@k of each query, (Q,): gain 2^r - 1, discount 1 / log2(1 + rank), ideal over the whole database.

    Example:
        >>> ndcg(np.array([[[0, 1], [1, 0]], [[1, 1], [0, 0]]]), 1)
        array([1. , 0.5])
    """
    gain, cut = gains(histograms.shape[2] - 1), _check_rank(k, histograms)
    if order == "expected":
        counts = histograms.sum(axis=2, dtype=np.int64)
        found = _dcg(counts, (histograms @ gain) / np.maximum(counts, 1), cut)
    else:
        # in the worst order, items with the fewest shared labels come first within each distance
        queries, distances, _ = histograms.shape
        step = 1 if order == "worst" else -1
        found = _dcg(histograms[:, :, ::step].reshape(queries, -1), np.tile(gain[::step], distances), cut)
    ideal = _dcg(histograms.sum(axis=1, dtype=np.int64)[:, ::-1], gain[::-1], cut)
    ratio: ScoreArray = np.divide(found, ideal, out=np.full(len(found), np.nan), where=ideal > 0)
    return ratio


def _dcg(counts: IntArray | Histograms, gain: ScoreArray, k: int) -> ScoreArray:
    """DCG@k of groups of items (Q, groups) in ranking order; ``gain`` is the mean gain of each group."""
    discounts = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))])
    ends = np.cumsum(counts, axis=1, dtype=np.int64)
    weights = discounts[np.minimum(ends, k)] - discounts[np.minimum(ends - counts, k)]
    return np.asarray((weights * gain).sum(axis=1))


def average_precision(
    histograms: Histograms, k: int | None = None, *, normaliser: Normaliser = "relevant", order: Order = "expected"
) -> ScoreArray:
    """AP@k of each query, (Q,); ``k=None`` ranks the whole database.

    Example:
        >>> average_precision(np.array([[[0, 1], [1, 1]]]))  # the second relevant item is at rank 2 or 3
        array([0.91666667])
    """
    if normaliser not in NORMALISERS:
        raise ConfigError(f"The normaliser of AP is {normaliser!r}; give one of {', '.join(NORMALISERS)}.")
    near = buckets(histograms)
    cut = near.items.sum(axis=1).max(initial=1) if k is None else _check_rank(k, histograms)
    if normaliser == "hits":
        return _where_relevant(_divided_by_hits(near, cut, order), histograms)
    relevant = near.relevant.sum(axis=1)
    divisor = relevant if normaliser == "relevant" else np.minimum(relevant, cut)
    return _where_relevant(_precision_sum(_in_order(near, order), cut) / np.maximum(divisor, 1), histograms)


def _precision_sum(near: Buckets, k: float) -> ScoreArray:
    """The expected sum of the precisions at the relevant items among the first k, (Q,)."""
    taken = np.clip(k - near.before, 0, near.items)
    tail = digamma(near.before + taken + 1) - digamma(near.before + 1)  # 1 / (before + 1) + ... + 1 / (before + taken)
    share = near.relevant / np.maximum(near.items, 1)
    slope = (near.relevant - 1) / np.maximum(near.items - 1, 1)
    sums = share * ((near.relevant_before + 1) * tail + slope * (taken - (near.before + 1) * tail))
    return np.asarray(sums.sum(axis=1))


def _divided_by_hits(near: Buckets, k: float, order: Order) -> ScoreArray:
    """Sum of precisions over number of hits; only the hits in the bucket that k cuts are random."""
    taken = np.clip(k - near.before, 0, near.items)
    whole = taken == near.items
    kept = near._replace(items=np.where(whole, near.items, 0), relevant=np.where(whole, near.relevant, 0))
    sums, found = _precision_sum(_in_order(kept, order), k), kept.relevant.sum(axis=1)
    values = sums / np.maximum(found, 1)
    for q, d in np.argwhere(~whole & (taken > 0)):
        items, relevant, drawn = int(near.items[q, d]), int(near.relevant[q, d]), int(taken[q, d])
        hits = np.arange(max(0, relevant - (items - drawn)), min(relevant, drawn) + 1, dtype=np.float64)
        # given the number of hits, the items before the cut are a separate bucket, taken whole
        columns = np.broadcast_arrays(float(drawn), hits[:, None], near.before[q, d], near.relevant_before[q, d])
        part = Buckets(*columns)
        per_hits = (sums[q] + _precision_sum(_in_order(part, order), k)) / np.maximum(found[q] + hits, 1)
        if order == "expected":  # the mean, weighted by the number of draws with that many hits
            ways = _log_choose(relevant, hits) + _log_choose(items - relevant, drawn - hits)
            values[q] = np.average(per_hits, weights=np.exp(ways - ways.max()))
        else:
            values[q] = per_hits.min() if order == "worst" else per_hits.max()
    return np.asarray(values)


def _log_choose(n: int, k: ScoreArray) -> ScoreArray:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _hits(near: Buckets, k: int) -> ScoreArray:
    """The expected number of relevant items among the first k, (Q,)."""
    taken = np.clip(k - near.before, 0, near.items)
    return np.asarray((near.relevant / np.maximum(near.items, 1) * taken).sum(axis=1))


def precision_at(histograms: Histograms, k: int, *, order: Order = "expected") -> ScoreArray:
    """The share of relevant items among the first k, (Q,).

    Example:
        >>> precision_at(np.array([[[1, 1], [0, 4]]]), 4)
        array([0.75])
    """
    cut = _check_rank(k, histograms)
    return _where_relevant(_hits(_in_order(buckets(histograms), order), cut) / cut, histograms)


def found_within(histograms: Histograms, radius: int) -> ScoreArray:
    """The number of database items within a Hamming radius, (Q,)."""
    return np.asarray(histograms[:, : radius + 1].sum(axis=(1, 2), dtype=np.float64))


def precision_within(histograms: Histograms, radius: int = 2) -> ScoreArray:
    """The share of relevant items within a Hamming radius, (Q,); 0 if nothing is found there. Ties do not matter.

    Example:
        >>> precision_within(np.array([[[0, 0], [1, 3]]]), 1), precision_within(np.array([[[0, 0], [1, 3]]]), 0)
        (array([0.75]), array([0.]))
    """
    if radius < 0:
        raise ConfigError(f"The Hamming radius is {radius}; give a whole number from 0.")
    hits = histograms[:, : radius + 1, 1:].sum(axis=(1, 2), dtype=np.float64)
    return _where_relevant(hits / np.maximum(found_within(histograms, radius), 1), histograms)


@dataclass(frozen=True, eq=False)
class Curve:
    """Mean precision and recall at some ranks; all (points,)."""

    at: IntArray  # the ranks
    precision: ScoreArray
    recall: ScoreArray

    def to_json(self) -> dict[str, Any]:
        return {"at": self.at.tolist(), "precision": self.precision.tolist(), "recall": self.recall.tolist()}


def rank_grid(items: int, *, per_decade: int = 10) -> IntArray:
    """Ranks from 1 to ``items``, evenly spaced on a logarithmic axis.

    Example:
        >>> rank_grid(100, per_decade=3).tolist()
        [1, 2, 5, 10, 22, 46, 100]
    """
    points = int(np.ceil(np.log10(items) * per_decade)) + 1
    return np.unique(np.geomspace(1, items, points).round().astype(np.int64))


def by_rank(histograms: Histograms, ranks: IntArray | Sequence[int]) -> tuple[ScoreArray, ScoreArray]:
    """Expected precision and recall of each query at some ranks, each (Q, ranks)."""
    near = buckets(histograms)
    hits = np.stack([_hits(near, int(rank)) for rank in ranks], axis=1)
    relevant = np.maximum(near.relevant.sum(axis=1, keepdims=True), 1)
    return _where_relevant(hits / np.asarray(ranks), histograms), _where_relevant(hits / relevant, histograms)
