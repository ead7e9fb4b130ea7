"""Ranking measures from joint histograms: NDCG and precision, averaged over the order of equal distances.

Short codes tie: an evaluation that lets the sorting routine order equal distances reports its luck. Here a measure is
the exact expected value over all orders inside equal distances, and its bounds are the worst and the best of these
orders. Values are for each query; a query without a relevant item has no value (NaN), is dropped from means and
counted. Where ``k`` is larger than the database, the database is the cut.

Precision-recall curves from joint histograms, by Hamming radius and by rank.

Curves are macro averages: precision and recall of each query first, then the mean over queries. A query that finds
nothing within a radius has precision 0 there, as in :func:`rmsh.metrics.ranking.precision_within`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rmsh.core.errors import ConfigError
from rmsh.metrics.relevance import gains

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import IntArray, ScoreArray

    Histograms = NDArray[np.integer]  # (Q, distances, R + 1)


class Buckets(NamedTuple):
    """Items at equal distance, nearest first; all float64 (Q, distances)."""

    items: ScoreArray
    relevant: ScoreArray
    before: ScoreArray  # items at smaller distances
    relevant_before: ScoreArray


def buckets(histograms: Histograms) -> Buckets:
    """Reduce histograms to the sizes of the groups of equal distance.

    Example:
        >>> buckets(np.array([[[1, 2], [3, 0]]])).before.tolist()
        [[0.0, 3.0]]
    """
    items = histograms.sum(axis=2, dtype=np.float64)
    relevant = histograms[:, :, 1:].sum(axis=2, dtype=np.float64)
    return Buckets(items, relevant, np.cumsum(items, axis=1) - items, np.cumsum(relevant, axis=1) - relevant)


def where_relevant(values: ScoreArray, histograms: Histograms) -> ScoreArray:
    """The values, with NaN for every query that has no relevant item in the database."""
    return np.where(histograms[:, :, 1:].any(axis=(1, 2)), values, np.nan)


def check_rank(k: int, histograms: Histograms) -> int:
    """A cut of the ranking: at least 1, at most the size of the database."""
    if k < 1:
        raise ConfigError(f"A ranking was to be cut at k = {k}; give a whole number from 1.")
    return min(k, int(histograms[0].sum(dtype=np.int64))) if len(histograms) else k


def ndcg(histograms: Histograms, k: int) -> ScoreArray:
    """Expected NDCG@k of each query, (Q,): gain 2^r - 1, discount 1 / log2(1 + rank), ideal over the whole database.

    Example:
        >>> ndcg(np.array([[[0, 1], [1, 0]], [[1, 1], [0, 0]]]), 1)
        array([1. , 0.5])
    """
    counts = histograms.sum(axis=2, dtype=np.int64)
    mean_gain = (histograms @ gains(histograms.shape[2] - 1)) / np.maximum(counts, 1)
    return _over_ideal(_dcg(counts, mean_gain, check_rank(k, histograms)), histograms, k)


def ndcg_bounds(histograms: Histograms, k: int) -> tuple[ScoreArray, ScoreArray]:
    """NDCG@k in the worst and in the best order of equal distances, each (Q,).

    Example:
        >>> worst, best = ndcg_bounds(np.array([[[1, 1], [0, 0]]]), 1)
        >>> worst, best
        (array([0.]), array([1.]))
    """
    gain, cut = gains(histograms.shape[2] - 1), check_rank(k, histograms)
    queries, distances, _ = histograms.shape
    worst = _dcg(histograms.reshape(queries, -1), np.tile(gain, distances), cut)
    # the best order has the most shared labels first, so each distance is read backwards
    best = _dcg(histograms[:, :, ::-1].reshape(queries, -1), np.tile(gain[::-1], distances), cut)
    return _over_ideal(worst, histograms, k), _over_ideal(best, histograms, k)


def _dcg(counts: IntArray | Histograms, gain: ScoreArray, k: int) -> ScoreArray:
    """DCG@k of groups (Q, groups) in the order of the ranking, whose items have the group's gain on average."""
    discounts = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))])
    ends = np.cumsum(counts, axis=1, dtype=np.int64)
    weights = discounts[np.minimum(ends, k)] - discounts[np.minimum(ends - counts, k)]
    return np.asarray((weights * gain).sum(axis=1))


def _over_ideal(dcg: ScoreArray, histograms: Histograms, k: int) -> ScoreArray:
    by_shared = histograms.sum(axis=1, dtype=np.int64)[:, ::-1]
    ideal = _dcg(by_shared, gains(histograms.shape[2] - 1)[::-1], check_rank(k, histograms))
    ratio: ScoreArray = np.divide(dcg, ideal, out=np.full(len(dcg), np.nan), where=ideal > 0)
    return ratio


def expected_hits(near: Buckets, k: int) -> ScoreArray:
    """The expected number of relevant items among the first k, (Q,).

    Example:
        >>> expected_hits(buckets(np.array([[[1, 1], [0, 4]]])), 3)
        array([2.])
    """
    taken = np.clip(k - near.before, 0, near.items)
    return np.asarray((near.relevant / np.maximum(near.items, 1) * taken).sum(axis=1))


def precision_at(histograms: Histograms, k: int) -> ScoreArray:
    """Expected share of relevant items among the first k, (Q,).

    Example:
        >>> precision_at(np.array([[[1, 1], [0, 4]]]), 4)
        array([0.75])
    """
    cut = check_rank(k, histograms)
    return where_relevant(expected_hits(buckets(histograms), cut) / cut, histograms)


def precision_at_bounds(histograms: Histograms, k: int) -> tuple[ScoreArray, ScoreArray]:
    """Precision@k in the worst and in the best order of equal distances, each (Q,).

    Example:
        >>> precision_at_bounds(np.array([[[1, 1], [0, 4]]]), 1)
        (array([0.]), array([1.]))
    """
    near, cut = buckets(histograms), check_rank(k, histograms)
    taken = np.clip(cut - near.before, 0, near.items)
    worst = np.maximum(taken - (near.items - near.relevant), 0).sum(axis=1) / cut
    best = np.minimum(taken, near.relevant).sum(axis=1) / cut
    return where_relevant(worst, histograms), where_relevant(best, histograms)


def found_within(histograms: Histograms, radius: int) -> ScoreArray:
    """The number of database items within a Hamming radius, (Q,).

    Example:
        >>> found_within(np.array([[[1, 1], [0, 4]]]), 0)
        array([2.])
    """
    return np.asarray(histograms[:, : radius + 1].sum(axis=(1, 2), dtype=np.float64))


def precision_within(histograms: Histograms, radius: int = 2) -> ScoreArray:
    """The share of relevant items within a Hamming radius, (Q,); a query that finds nothing there counts 0.

    No order takes part, so there is nothing to average and there are no bounds.

    Example:
        >>> precision_within(np.array([[[0, 0], [1, 3]]]), 1), precision_within(np.array([[[0, 0], [1, 3]]]), 0)
        (array([0.75]), array([0.]))
    """
    if radius < 0:
        raise ConfigError(f"A Hamming radius of {radius} was given; give a whole number from 0.")
    hits = histograms[:, : radius + 1, 1:].sum(axis=(1, 2), dtype=np.float64)
    return where_relevant(hits / np.maximum(found_within(histograms, radius), 1), histograms)


if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import IntArray, ScoreArray

    Histograms = NDArray[np.integer]  # (Q, distances, R + 1)


@dataclass(frozen=True, eq=False)
class Curve:
    """Mean precision and recall at each of a few radii or ranks.

    Args:
        at: (points,) the radii or ranks.
        precision: (points,).
        recall: (points,).
    """

    at: IntArray
    precision: ScoreArray
    recall: ScoreArray

    def to_json(self) -> dict[str, Any]:
        """The curve as plain lists."""
        return {"at": self.at.tolist(), "precision": self.precision.tolist(), "recall": self.recall.tolist()}


def rank_grid(items: int, *, per_decade: int = 10) -> IntArray:
    """Ranks from 1 to ``items``, evenly spaced on a logarithmic axis.

    Example:
        >>> rank_grid(100, per_decade=3).tolist()
        [1, 2, 5, 10, 22, 46, 100]
    """
    points = int(np.ceil(np.log10(items) * per_decade)) + 1
    return np.unique(np.geomspace(1, items, points).round().astype(np.int64))


def by_radius(histograms: Histograms) -> tuple[ScoreArray, ScoreArray]:
    """Precision and recall of each query within every radius 0 .. bits, each (Q, bits + 1).

    Example:
        >>> precision, recall = by_radius(np.array([[[0, 1], [3, 0]]]))
        >>> precision.tolist(), recall.tolist()
        ([[1.0, 0.25]], [[1.0, 1.0]])
    """
    near = buckets(histograms)
    hits, found = near.relevant_before + near.relevant, near.before + near.items
    relevant = np.maximum(hits[:, -1:], 1)
    return _defined(hits / np.maximum(found, 1), histograms), _defined(hits / relevant, histograms)


def by_rank(histograms: Histograms, ranks: IntArray | Sequence[int]) -> tuple[ScoreArray, ScoreArray]:
    """Expected precision and recall of each query after the first 1, 2, ... items, each (Q, ranks).

    Example:
        >>> precision, recall = by_rank(np.array([[[1, 1], [2, 0]]]), [1, 4])
        >>> precision.tolist(), recall.tolist()
        ([[0.5, 0.25]], [[0.5, 1.0]])
    """
    near = buckets(histograms)
    hits = np.stack([expected_hits(near, int(rank)) for rank in ranks], axis=1)
    relevant = np.maximum(near.relevant.sum(axis=1, keepdims=True), 1)
    return _defined(hits / np.asarray(ranks), histograms), _defined(hits / relevant, histograms)


def _defined(values: ScoreArray, histograms: Histograms) -> ScoreArray:
    return where_relevant(values.T, histograms).T
