"""Relevance: how many labels two items share, the gain of that, and the ranking of random codes.

Two items are relevant to each other if they share at least one label. An item without labels is relevant to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rmsh.codes import pack, to_words
from rmsh.data.pairs import checked_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.codes import Codes
    from rmsh.core.types import BitArray, IntArray, LabelArray, ScoreArray, WordArray

MOST_LABELS = 990  # per query: 2^990 times 2^31 items is still a finite float64


def label_words(labels: LabelArray) -> WordArray:
    """Labels as 64-bit words (n, ceil(classes / 64)), so that a bitwise and gives the shared labels.

    Example:
        >>> label_words(np.array([[1, 0, 1]], dtype=np.uint8))
        array([[5]], dtype=uint64)
    """
    return to_words(pack(labels.astype(np.bool_)))


def shared_labels(a: LabelArray, b: LabelArray) -> IntArray:
    """The number of labels that each pair shares, int64 (len(a), len(b)); for small inputs."""
    return np.asarray(a, dtype=np.int64) @ np.asarray(b, dtype=np.int64).T


def gains(most: int) -> ScoreArray:
    """The gain 2^r - 1 for r = 0 .. ``most`` shared labels, in float64 because integers would overflow.

    Example:
        >>> gains(3)
        array([0., 1., 3., 7.])
    """
    return np.exp2(np.arange(most + 1, dtype=np.float64)) - 1


def random_ranking(histograms: NDArray[np.integer]) -> NDArray[np.integer]:
    """Histograms (Q, 1, R + 1) with the whole database at one distance.

    A measure of these is exactly its expected value for a random ranking, the chance level.
    """
    pooled: NDArray[np.integer] = histograms.sum(axis=1, keepdims=True, dtype=np.int64)
    return pooled


@dataclass(frozen=True, eq=False)
class LabelledCodes:
    """Codes of n items and their labels: the queries or the database of an evaluation."""

    codes: Codes
    labels: LabelArray  # 0/1 (n, classes)

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", checked_labels(self.labels, len(self.codes), "labelled codes"))

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: IntArray | BitArray) -> LabelledCodes:
        """The items of some rows."""
        return LabelledCodes(self.codes.take(rows), self.labels[rows])
