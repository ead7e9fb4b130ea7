"""Scores of a ranking by dot products of real vectors, for reference lines without codes.

The definitions are the same as for codes. Ties are so rare that they are broken by database order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmsh.metrics.ranking import average_precision, ndcg
from rmsh.metrics.relevance import gains, shared_labels

if TYPE_CHECKING:
    from rmsh.core.types import FloatArray, IntArray, LabelArray, ScoreArray

_BLOCK = 64  # queries at a time


def score_vectors(
    query: FloatArray, database: FloatArray, query_labels: LabelArray, database_labels: LabelArray, *, k: int = 500
) -> dict[str, ScoreArray]:
    """NDCG@k and AP of each query, and both for a random ranking.

    Vectors are (Q, d) and (n, d), labels 0/1 (Q, classes) and (n, classes). NDCG is cut at rank k, AP is not. Returns
    ``ndcg``, ``ndcg_chance``, ``map`` and ``map_chance``, each (Q,); NaN for a query without a relevant item.
    """
    rows = [slice(start, start + _BLOCK) for start in range(0, len(query), _BLOCK)]
    blocks = [_score_block(query[r] @ database.T, shared_labels(query_labels[r], database_labels), k) for r in rows]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _score_block(similarities: FloatArray, shared: IntArray, k: int) -> dict[str, ScoreArray]:
    ranked = np.take_along_axis(shared, np.argsort(-similarities, axis=1, kind="stable"), axis=1)
    most = int(shared.max(initial=0))
    # histograms (Q, 1, R + 1) of a random ranking, see relevance.random_ranking
    random = np.stack([np.bincount(row, minlength=most + 1) for row in shared])[:, None, :]
    return {
        "ndcg": _ranked_ndcg(ranked, k),
        "ndcg_chance": ndcg(random, k),
        "map": _ranked_average_precision(ranked),
        "map_chance": average_precision(random, None),
    }


def _ranked_ndcg(shared: IntArray, k: int) -> ScoreArray:
    """NDCG@k, (Q,), from the number of labels that each ranked item shares with its query, (Q, n)."""
    gain = gains(int(shared.max(initial=0)))
    discount = 1 / np.log2(2 + np.arange(min(k, shared.shape[1])))
    best = -np.sort(-shared, axis=1)[:, : len(discount)]
    ideal = gain[best] @ discount
    with np.errstate(invalid="ignore"):
        return np.asarray(gain[shared[:, : len(discount)]] @ discount / ideal)


def _ranked_average_precision(shared: IntArray) -> ScoreArray:
    """AP over the whole ranking, (Q,), from the same counts."""
    hits = (shared > 0).cumsum(axis=1)
    precision = np.where(shared > 0, hits / np.arange(1, shared.shape[1] + 1), 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(precision.sum(axis=1) / hits[:, -1])
