"""Scores of a ranking by real numbers, the dot products of vectors: what reference lines without codes are scored by.

The definitions are those of codes (rmsh.metrics). Real numbers hardly ever tie; where they do, the order is that of the
database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmsh.metrics.average_precision import average_precision
from rmsh.metrics.ranking import ndcg
from rmsh.metrics.relevance import gains, shared_labels

if TYPE_CHECKING:
    from rmsh.core.types import FloatArray, IntArray, LabelArray, ScoreArray

_BLOCK = 64  # queries at a time


def score_vectors(
    query: FloatArray, database: FloatArray, query_labels: LabelArray, database_labels: LabelArray, *, k: int = 500
) -> dict[str, ScoreArray]:
    """NDCG@k and mAP over the whole ranking of each query, and both for a random ranking; each (Q,).

    Args:
        query: vectors of Q queries, (Q, d).
        database: vectors of n items, (n, d).
        query_labels: 0/1 (Q, classes).
        database_labels: 0/1 (n, classes).
        k: where NDCG cuts the ranking.

    Returns:
        ``ndcg``, ``ndcg_chance``, ``map`` and ``map_chance``; NaN for a query that no item is relevant to.

    Example:
        >>> labels = np.eye(2, dtype=np.uint8)
        >>> scores = score_vectors(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32), labels, labels)
        >>> scores["map"].tolist(), scores["map_chance"].tolist()
        ([1.0, 1.0], [0.75, 0.75])
    """
    rows = [slice(start, start + _BLOCK) for start in range(0, len(query), _BLOCK)]
    blocks = [_score_block(query[r] @ database.T, shared_labels(query_labels[r], database_labels), k) for r in rows]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _score_block(similarities: FloatArray, shared: IntArray, k: int) -> dict[str, ScoreArray]:
    ranked = np.take_along_axis(shared, np.argsort(-similarities, axis=1, kind="stable"), axis=1)
    random = _pooled(shared)
    return {
        "ndcg": ranked_ndcg(ranked, k),
        "ndcg_chance": ndcg(random, k),
        "map": ranked_average_precision(ranked),
        "map_chance": average_precision(random, None),
    }


def _pooled(shared: IntArray) -> IntArray:
    """Histograms (Q, 1, R + 1) of codes that know nothing, see ``rmsh.metrics.relevance.random_ranking``."""
    most = int(shared.max(initial=0))
    return np.stack([np.bincount(row, minlength=most + 1) for row in shared])[:, None, :]


def ranked_ndcg(shared: IntArray, k: int) -> ScoreArray:
    """NDCG@k of items in the order of their ranks, (Q,), from the labels each shares with its query, (Q, n).

    Example:
        >>> ranked_ndcg(np.array([[1, 0], [0, 1], [0, 0]]), 1)
        array([ 1.,  0., nan])
    """
    gain = gains(int(shared.max(initial=0)))
    discount = 1 / np.log2(2 + np.arange(min(k, shared.shape[1])))
    best = -np.sort(-shared, axis=1)[:, : len(discount)]
    ideal = gain[best] @ discount
    with np.errstate(invalid="ignore"):
        return np.asarray(gain[shared[:, : len(discount)]] @ discount / ideal)


def ranked_average_precision(shared: IntArray) -> ScoreArray:
    """The mean of the precisions at all relevant items, (Q,), from the labels each shares with its query, (Q, n).

    Example:
        >>> ranked_average_precision(np.array([[1, 0, 2], [0, 0, 0]]))
        array([0.83333333,        nan])
    """
    hits = (shared > 0).cumsum(axis=1)
    precision = np.where(shared > 0, hits / np.arange(1, shared.shape[1] + 1), 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(precision.sum(axis=1) / hits[:, -1])
