"""Scores of a ranking by dot products of real vectors, for reference lines without codes.

The definitions are the same as for codes. Ties are so rare that they are broken by database order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rmsh.metrics.ranking import average_precision, ndcg
from rmsh.metrics.relevance import gains, shared_labels

if TYPE_CHECKING:
    from rmsh.core.types import FloatArray, IntArray, LabelArray, ScoreArray

_BLOCK = 64  # queries at a time


def score_vectors(
    query: FloatArray,
    database: FloatArray,
    query_labels: LabelArray,
    database_labels: LabelArray,
    *,
    k: int | Sequence[int] = 500,
    leave_own_out: bool = False,
) -> dict[str, ScoreArray]:
    """NDCG@k and AP of each query, and both for a random ranking.

    Vectors are (Q, d) and (n, d), labels 0/1 (Q, classes) and (n, classes). NDCG is cut at rank k, AP is not; see
    :func:`rmsh.metrics.evaluate.evaluate` for several k and ``leave_own_out``. Returns ``ndcg``, ``ndcg_chance``,
    ``map`` and ``map_chance``, and ``ndcg@100`` and so on for further k, each (Q,); NaN for a query without a relevant
    item.
    """
    first, *others = np.atleast_1d(k).tolist()
    ranks = {"ndcg": first} | {f"ndcg@{other}": other for other in others}
    blocks = []
    for start in range(0, len(query), _BLOCK):
        rows = slice(start, start + _BLOCK)
        similarities, shared = query[rows] @ database.T, shared_labels(query_labels[rows], database_labels)
        if leave_own_out:  # ranked last, where it is cut off
            similarities[np.arange(len(shared)), np.arange(len(query))[rows]] = -np.inf
        ranked = np.take_along_axis(shared, np.argsort(-similarities, axis=1, kind="stable"), axis=1)
        blocks.append(_score_block(ranked[:, :-1] if leave_own_out else ranked, ranks))
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _score_block(ranked: IntArray, ranks: Mapping[str, int]) -> dict[str, ScoreArray]:
    """The scores of queries from the number of labels that each ranked item shares with its query, (Q, n)."""
    most = int(ranked.max(initial=0))
    # histograms (Q, 1, R + 1) of a random ranking, see relevance.random_ranking
    random = np.stack([np.bincount(row, minlength=most + 1) for row in ranked])[:, None, :]
    scores = {"map": _ranked_average_precision(ranked), "map_chance": average_precision(random, None)}
    for name, k in ranks.items():
        scores |= {name: _ranked_ndcg(ranked, k), f"{name}_chance": ndcg(random, k)}
    return scores


def _ranked_ndcg(shared: IntArray, k: int) -> ScoreArray:
    """NDCG@k, (Q,), from the same counts."""
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
