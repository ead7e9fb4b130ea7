"""Precision-recall curves from joint histograms, by Hamming radius and by rank.

Curves are macro averages: precision and recall of each query first, then the mean over queries. A query that finds
nothing within a radius has precision 0 there, as in :func:`rmsh.metrics.ranking.precision_within`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.metrics.ranking import buckets, expected_hits, where_relevant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.types import IntArray, ScoreArray

    Histograms = NDArray[np.integer]  # (Q, distances, R + 1)

__all__ = ["Curve", "by_radius", "by_rank", "rank_grid"]


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
