"""The tables of multi-index hashing: each sorts the rows by one substring of their codes.

A code is cut into m substrings of at most about log2(n) bits, so that a bucket holds a few rows. A table is an array of
rows sorted by bucket, and an array of where each bucket begins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rmsh.errors import FormatError
from rmsh.index.workers import run_all

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.index.store import CodeStore
    from rmsh.types import IntArray

__all__ = ["MOST_ROWS", "Tables", "bucket_counts", "buckets_within", "build", "cut", "substring_count"]

MOST_ROWS = np.iinfo(np.int32).max
_SHORTEST, _LONGEST = 4, 24  # bits of a substring; a table has a bucket for each of its values


def substring_count(bits: int, rows: int) -> int:
    """How many substrings codes are cut into: as few as leave no table with more buckets than rows.

    Example:
        >>> substring_count(64, 1_000_000), substring_count(128, 1_000_000), substring_count(16, 1_000_000)
        (4, 7, 1)
    """
    return math.ceil(bits / min(max(math.log2(max(rows, 1)), _SHORTEST), _LONGEST))


def cut(bits: int, count: int) -> IntArray:
    """Where substrings begin, and the end, int64 (count + 1,): lengths differ by at most one.

    Example:
        >>> cut(64, 3)
        array([ 0, 22, 43, 64])
    """
    lengths = np.full(count, bits // count)
    lengths[: bits % count] += 1
    return np.concatenate(([0], np.cumsum(lengths)))


def bucket_counts(starts: IntArray) -> IntArray:
    """How many buckets of each table differ in 0, 1, ... bits from a given one, int64 (count, longest + 1).

    Example:
        >>> bucket_counts(np.array([0, 3, 5]))
        array([[1, 3, 3, 1], [1, 2, 1, 0]])
    """
    lengths = np.diff(starts).tolist()
    return np.array([[math.comb(n, d) for d in range(max(lengths) + 1)] for n in lengths])


def buckets_within(starts: IntArray, radius: int) -> int:
    """How many buckets are visited until all codes within a radius are met.

    Example:
        >>> buckets_within(np.array([0, 3, 5]), 1), buckets_within(np.array([0, 3, 5]), 2)
        (2, 5)
    """
    counts = bucket_counts(starts)
    whole, more = divmod(radius, len(counts))
    return int(counts[:, :whole].sum() + counts[: more + 1, whole : whole + 1].sum())


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables over the first n rows of an index.

    Args:
        bits: the length of a code.
        begins: int32, 2^length + 1 for each table, one behind the other; see ``mih_kernels.py``.
        rows: int32 (m, n).

    Raises:
        FormatError: the arrays are no tables; a kernel would read beyond their end.
    """

    bits: int
    begins: NDArray[np.int32]
    rows: NDArray[np.int32]

    def __post_init__(self) -> None:
        fits = (
            self.rows.ndim == 2
            and 1 <= len(self.rows) <= self.bits
            and self.rows.dtype == self.begins.dtype == np.int32
        )
        fits = fits and self.begins.shape == (self.firsts[-1],)
        for begin, end in pairwise(self.firsts) if fits else ():
            of_table = self.begins[begin:end]
            fits &= of_table[0] == 0 and of_table[-1] == self.row_count and bool((np.diff(of_table) >= 0).all())
        if not fits or (self.row_count and not 0 <= self.rows.min() <= self.rows.max() < self.row_count):
            raise FormatError("its tables do not hold together")

    @property
    def row_count(self) -> int:
        """How many rows are in the tables."""
        return int(self.rows.shape[1])

    @property
    def starts(self) -> IntArray:
        """The bits at which substrings begin, and the end."""
        return cut(self.bits, len(self.rows))

    @property
    def firsts(self) -> IntArray:
        """Where each table begins in ``begins``, and the end."""
        return np.concatenate(([0], np.cumsum(2 ** np.diff(self.starts) + 1)))


def build(store: CodeStore, *, threads: int) -> Tables:
    """Sort all rows of a store, at most 2^31 - 1, into tables."""
    count = substring_count(store.bits, store.row_count)
    starts = cut(store.bits, count)
    begins = [np.zeros(2**length + 1, dtype=np.int32) for length in np.diff(starts).tolist()]
    rows = np.empty((count, store.row_count), dtype=np.int32)
    shares = [range(first, count, threads) for first in range(min(threads, count))]
    run_all([partial(_fill, store, starts, begins, rows, share) for share in shares])
    return Tables(store.bits, np.concatenate(begins), rows)


def _fill(
    store: CodeStore, starts: IntArray, begins: list[NDArray[np.int32]], rows: NDArray[np.int32], share: range
) -> None:
    from rmsh.index.mih_kernels import fill_table

    base, tail = (segment.reshape(-1) for segment in store.segments)
    for j in share:
        fill_table(base, tail, store.width, starts[j], starts[j + 1] - starts[j], begins[j], rows[j])
