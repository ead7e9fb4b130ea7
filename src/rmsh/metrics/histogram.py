"""Relevance, and joint histograms: for each query, the number of items at distance d that share r labels with it.

Two items are relevant to each other if they share at least one label. An item without labels is relevant to nothing.

A ranking measure needs nothing but ``h[d, r]``, so it is a pure function of histograms (Q, bits + 1, R + 1) and never
sees codes, labels or an order among equal distances. R is the largest number of labels of a query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmsh.codes import Codes, pack, to_words
from rmsh.core.errors import CodesError, DataError
from rmsh.core.types import BitArray, IntArray, LabelArray, ScoreArray, WordArray
from rmsh.data.pairs import checked_labels

HistogramArray: TypeAlias = NDArray[np.int32]  # (queries, bits + 1, R + 1)

MOST_LABELS = 990  # per query: 2^990 times 2^31 items is still a finite float64
_BLOCK_BYTES = 16 << 20  # per block; measures need a few float64 arrays of the same shape in addition


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


def label_words(labels: LabelArray) -> WordArray:
    """Labels as 64-bit words (n, ceil(classes / 64)), so that a bitwise and gives the shared labels."""
    return to_words(pack(labels.astype(np.bool_)))


def shared_labels(a: LabelArray, b: LabelArray) -> IntArray:
    """The number of labels that each pair shares, int64 (len(a), len(b)); for small inputs."""
    shared = np.asarray(a, dtype=np.float32) @ np.asarray(b, dtype=np.float32).T  # fast, unlike integers
    return np.asarray(shared, dtype=np.int64)


def gains(most: int) -> ScoreArray:
    """The gain 2^r - 1 for r = 0 .. ``most`` shared labels, in float64 because integers would overflow."""
    return np.exp2(np.arange(most + 1, dtype=np.float64)) - 1


def random_ranking(histograms: NDArray[np.integer]) -> NDArray[np.integer]:
    """Histograms (Q, 1, R + 1) with the whole database at one distance.

    A measure of these is exactly its expected value for a random ranking, the chance level.
    """
    pooled: NDArray[np.integer] = histograms.sum(axis=1, keepdims=True, dtype=np.int64)
    return pooled


def histograms(
    query: Codes, database: Codes, *, query_labels: ArrayLike, database_labels: ArrayLike, leave_own_out: bool = False
) -> Iterator[HistogramArray]:
    """Count all pairs of query and database item, one block of queries at a time, in query order.

    Labels are 0/1 (items, classes). A block is int32 (block, bits + 1, R + 1) and has at most 16 MB, or one query. With
    ``leave_own_out``, row i of both sides is the same item, which is not counted for its own query.

    Example:
        >>> from rmsh.codes import Codes
        >>> query, database = Codes.from_values([[1, 1]]), Codes.from_values([[1, 1], [1, -1], [1, -1]])
        >>> next(histograms(query, database, query_labels=[[1]], database_labels=[[1], [0], [1]])).tolist()
        [[[0, 1], [1, 1], [0, 0]]]
    """
    if query.bits != database.bits:
        raise CodesError(f"The queries have {query.bits} bits and the database {database.bits}; use one model.")
    if not len(query) or not len(database):
        raise CodesError(f"There are {len(query)} queries and {len(database)} database items; give at least one each.")
    if leave_own_out and (len(query) != len(database) or len(query) < 2):
        found = f"There are {len(query)} queries and {len(database)} database items"
        raise CodesError(f"{found}; to leave out a query's own item, give the same items on both sides, at least two.")
    of_query = checked_labels(query_labels, len(query), "queries")
    of_database = checked_labels(database_labels, len(database), "database")
    if of_query.shape[1] != of_database.shape[1] or not of_query.shape[1]:
        found = f"The queries have {of_query.shape[1]} classes and the database {of_database.shape[1]}"
        raise DataError(f"{found}; give at least one class, and the same class in column c of both sides.")
    most = int(of_query.sum(axis=1).max())
    if most > MOST_LABELS:
        raise DataError(f"A query has {most} labels; gains of 2^r - 1 are finite up to {MOST_LABELS} labels per query.")
    return _blocks(query, database, label_words(of_query), label_words(of_database), most, leave_own_out)


def _blocks(
    query: Codes, database: Codes, query_labels: WordArray, labels: WordArray, most: int, leave_own_out: bool
) -> Iterator[HistogramArray]:
    from rmsh.metrics.kernel import count_pairs  # compiles or loads machine code

    # one row per word, not per item: see kernel.py
    columns, label_columns = np.ascontiguousarray(database.words().T), np.ascontiguousarray(labels.T)
    words, bits = query.words(), query.bits
    size = max(1, _BLOCK_BYTES // (4 * (bits + 1) * (most + 1)))
    for start in range(0, len(words), size):
        rows = slice(start, start + size)
        counted = count_pairs(words[rows], columns, query_labels[rows], label_columns, bits, most)
        if leave_own_out:
            distance = np.bitwise_count(words[rows] ^ columns.T[rows]).sum(axis=1)
            shared = np.bitwise_count(query_labels[rows] & labels[rows]).sum(axis=1)
            counted[np.arange(len(counted)), distance, shared] -= 1
        yield counted
