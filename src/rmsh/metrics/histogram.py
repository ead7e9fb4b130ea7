"""Joint histograms: for each query, how many database items lie at distance d and share r labels.

Everything that a ranking measure needs of a query is in ``h[d, r]``, so a measure is a pure function of histograms
(Q, bits + 1, R + 1) and never sees codes, labels or an order among equal distances. R is the largest number of labels
that one query has.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rmsh.core.errors import CodesError, DataError
from rmsh.data.pairs import checked_labels
from rmsh.metrics.relevance import MOST_LABELS, label_words

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rmsh.codes import Codes
    from rmsh.core.types import LabelArray, WordArray

__all__ = ["HistogramArray", "count_with_numpy", "histograms"]

HistogramArray: TypeAlias = NDArray[np.int32]  # (queries, bits + 1, R + 1)
_Counter: TypeAlias = Callable[["WordArray", "WordArray", "WordArray", "WordArray", int, int], HistogramArray]

_BLOCK_BYTES = 16 << 20  # of one block; measures need a few float64 arrays of as many cells beside it


def histograms(
    query: Codes, database: Codes, *, query_labels: ArrayLike, database_labels: ArrayLike
) -> Iterator[HistogramArray]:
    """Count all pairs of query and database item, a block of queries at a time, in the order of the queries.

    Args:
        query: codes of Q queries.
        database: codes of n items, of the same length.
        query_labels: 0/1 (Q, classes).
        database_labels: 0/1 (n, classes).

    Returns:
        An iterator of int32 (block, bits + 1, R + 1); a block has at most 16 MB, or one query.

    Raises:
        CodesError: the lengths differ, or one side is empty.
        DataError: labels do not fit the codes or each other.

    Example:
        >>> from rmsh.codes import Codes
        >>> query, database = Codes.from_values([[1, 1]]), Codes.from_values([[1, 1], [1, -1], [1, -1]])
        >>> next(histograms(query, database, query_labels=[[1]], database_labels=[[1], [0], [1]])).tolist()
        [[[0, 1], [1, 1], [0, 0]]]
    """
    _check_codes(query, database)
    of_query, of_database = _check_label_sets(query_labels, database_labels, len(query), len(database))
    most = int(of_query.sum(axis=1).max())
    if most > MOST_LABELS:
        raise DataError(f"A query has {most} labels; gains of 2^r - 1 stay finite up to {MOST_LABELS} labels a query.")
    return _blocks(query, database, label_words(of_query), label_words(of_database), most)


def _check_codes(query: Codes, database: Codes) -> None:
    if query.bits != database.bits:
        raise CodesError(
            f"The queries have {query.bits} bits and the database {database.bits}; code both with the same model."
        )
    if not len(query) or not len(database):
        raise CodesError(
            f"There are {len(query)} queries and {len(database)} database items; scores need at least one of each."
        )


def _check_label_sets(
    of_query: ArrayLike, of_database: ArrayLike, queries: int, items: int
) -> tuple[LabelArray, LabelArray]:
    checked, others = checked_labels(of_query, queries, "queries"), checked_labels(of_database, items, "database")
    if checked.shape[1] != others.shape[1] or not checked.shape[1]:
        raise DataError(
            f"The queries have {checked.shape[1]} classes and the database {others.shape[1]}; give at least one class, "
            "and the same class in column c of both sides."
        )
    return checked, others


def _blocks(
    query: Codes, database: Codes, query_labels: WordArray, labels: WordArray, most: int
) -> Iterator[HistogramArray]:
    count = _counter()
    # word by word, not item by item: see kernel.py
    columns, label_columns = np.ascontiguousarray(database.words().T), np.ascontiguousarray(labels.T)
    words, bits = query.words(), query.bits
    size = max(1, _BLOCK_BYTES // (4 * (bits + 1) * (most + 1)))
    for start in range(0, len(words), size):
        rows = slice(start, start + size)
        yield count(words[rows], columns, query_labels[rows], label_columns, bits, most)


@cache  # so that the warning comes once
def _counter() -> _Counter:
    try:
        from rmsh.metrics.kernel import count_pairs
    except ImportError:
        warnings.warn(
            "numba is not installed: evaluation counts with numpy, with the same results and several times slower; "
            "pip install numba.",
            RuntimeWarning,
            stacklevel=2,
        )
        return count_with_numpy
    return count_pairs


def count_with_numpy(
    query: WordArray, codes: WordArray, query_labels: WordArray, labels: WordArray, bits: int, most: int
) -> HistogramArray:
    """Count pairs without numba; the same arguments and results as ``rmsh.metrics.kernel.count_pairs``.

    Args:
        query: (Q, words) of the queries' codes.
        codes: (words, n) of the database, word by word.
        query_labels: (Q, label words).
        labels: (label words, n).
        bits: the length of a code.
        most: the largest number of labels of a query, R.

    Example:
        >>> word = np.array([[3]], dtype=np.uint64)
        >>> count_with_numpy(word, word, word, word, 2, 2).tolist()
        [[[0, 0, 1], [0, 0, 0], [0, 0, 0]]]
    """
    counted = np.empty((len(query), bits + 1, most + 1), dtype=np.int32)
    for row, (word, label_word) in enumerate(zip(query, query_labels, strict=True)):
        distance = np.bitwise_count(word[:, None] ^ codes).sum(axis=0, dtype=np.int64)
        shared = np.bitwise_count(label_word[:, None] & labels).sum(axis=0, dtype=np.int64)
        cells = np.bincount(distance * (most + 1) + shared, minlength=counted[row].size)
        counted[row] = cells.reshape(counted[row].shape)
    return counted
