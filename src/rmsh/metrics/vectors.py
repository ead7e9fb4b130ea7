"""Scores of a ranking by dot products of real vectors, for reference lines without codes.

The measures are those of codes, over histograms in which every item has its own distance: ties are so rare that
they are broken by database order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rmsh.metrics.histogram import random_ranking, shared_labels
from rmsh.metrics.ranking import average_precision, ndcg

if TYPE_CHECKING:
    from rmsh.core.types import FloatArray, LabelArray, ScoreArray

_BLOCK = 8  # queries at a time


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
    blocks: list[dict[str, ScoreArray]] = []
    for start in range(0, len(query), _BLOCK):
        rows = slice(start, start + _BLOCK)
        similarities, shared = query[rows] @ database.T, shared_labels(query_labels[rows], database_labels)
        if leave_own_out:  # ranked last, where it is cut off
            similarities[np.arange(len(shared)), np.arange(len(query))[rows]] = -np.inf
        ranked = np.take_along_axis(shared, np.argsort(-similarities, axis=1, kind="stable"), axis=1)
        ranked = ranked[:, :-1] if leave_own_out else ranked
        histograms = (ranked[:, :, None] == np.arange(ranked.max(initial=0) + 1)).astype(np.int8)
        random = random_ranking(histograms)
        scores = {"map": average_precision(histograms), "map_chance": average_precision(random)}
        for name, rank in ranks.items():
            scores |= {name: ndcg(histograms, rank), f"{name}_chance": ndcg(random, rank)}
        blocks.append(scores)
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
