"""Exact multi-index hashing (Norouzi, Punjani and Fleet, 2012), for finding all items within a small radius.

A code within r bits of a query differs from it by at most r / m bits in one of m substrings, so tables of substrings
lead to all near codes. This pays off if neighbours are near compared with the number of bits, as in searches for near
duplicates. The nearest neighbours of learned codes are usually too far away: more buckets would be visited than there
are codes. A query therefore has a budget, and falls back to a scan when it is spent.

A code is cut into m substrings of at most about log2(n) bits, so that a bucket contains a few rows. A table is an array
of rows sorted by bucket, and an array of bucket boundaries. Rows added after the tables were built are scanned, and the
tables are rebuilt when there are many such rows.
"""

from __future__ import annotations

import math
import threading
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rmsh.core.errors import ConfigError
from rmsh.index.base import FAR, read_only, to_hits, to_neighbours
from rmsh.index.scan import Scan, run_all

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, IntArray, WordArray
    from rmsh.index.base import Hits, Neighbours

_MAX_ROWS = np.iinfo(np.int32).max
_SHORTEST, _LONGEST = 4, 24  # bits of a substring; a table has one bucket per value
_NEW_ROWS = 4096  # the tables are rebuilt when more rows than this, and more than a quarter, are new
_WORDS_PER_VISIT = 32  # words that a scan reads in the time of one random memory access


class MultiIndex(Scan):
    """The exact index that visits only codes which share a similar substring with the query.

    Args:
        bits: number of bits per code, 1 to 512.
        threads: maximum number of threads; None uses all available.
        budget: buckets and codes that a query may visit before it is scanned; None visits about as many as take the
            time of a scan.

    Raises:
        ConfigError: ``threads`` or ``budget`` is out of range.

    Example:
        >>> from rmsh.codes import Codes
        >>> index = MultiIndex(3, threads=1)
        >>> rows = index.add(Codes.from_values([[1, 1, 1], [1, 1, -1], [1, -1, 1]]))
        >>> index.search(Codes.from_values([[1, 1, 1]]), 2).rows
        array([[0, 1]])
    """

    def __init__(self, bits: int, *, threads: int | None = None, budget: int | None = None) -> None:
        super().__init__(bits, threads=threads)
        if budget is not None and (not isinstance(budget, int) or budget < 0):
            raise ConfigError(f"Got budget = {budget!r}; give an integer of at least 0, or None.")
        self.budget = budget
        self._tables: Tables | None = None
        self._building = threading.Lock()

    def _nearest(self, words: WordArray, k: int, where: BitArray | None) -> Hits:
        tables = self._current_tables() if k <= self._visits() else None  # k codes take at least k visits
        if tables is None:
            return super()._nearest(words, k, where)
        hits, complete = self._probe(tables, words, where, k=k, radius=self.bits)
        keys = np.full((len(words), k), FAR)
        for query_keys, found in zip(keys, hits, strict=True):
            query_keys[: len(found)] = np.sort(found)[:k]
        if complete.any() and tables.row_count < self.row_count:
            later = self._nearest_keys(words[complete], k, where, tables.row_count)
            keys[complete] = np.sort(np.concatenate((keys[complete], later), axis=1), axis=1)[:, :k]
        if not complete.all():
            keys[~complete] = self._nearest_keys(words[~complete], k, where)
        return to_hits(keys)

    def _within(self, words: WordArray, radius: int, where: BitArray | None) -> Neighbours:
        tables = self._current_tables()
        if tables is None:
            return super()._within(words, radius, where)
        keys, complete = self._probe(tables, words, where, k=self.row_count + 1, radius=radius)
        owners = [np.repeat(np.arange(len(words)), [len(found) for found in keys])]
        for queries, first in ((complete, tables.row_count), (~complete, 0)):
            if queries.any() and first < self.row_count:
                scanned, more = self._within_keys(words[queries], radius, where, first)
                owners.append(np.flatnonzero(queries)[scanned])
                keys.append(more)
        return to_neighbours(np.concatenate(owners), np.concatenate(keys), queries=len(words))

    def _current_tables(self) -> Tables | None:
        """Tables over all rows but a few new ones, or None if tables are not possible."""
        if not 0 < self.row_count <= _MAX_ROWS:
            return None
        with self._building:
            covered = 0 if self._tables is None else self._tables.row_count
            if self._tables is None or self.row_count - covered > max(_NEW_ROWS, covered // 4):
                self._tables = build_tables(self)
            return self._tables

    def _visits(self) -> int:
        """Number of buckets and codes that a query may visit before it is scanned."""
        return self.row_count * self.width // _WORDS_PER_VISIT if self.budget is None else self.budget

    def _probe(
        self, tables: Tables, words: WordArray, where: BitArray | None, *, k: int, radius: int
    ) -> tuple[list[IntArray], BitArray]:
        """Keys of each query's hits in the tables, and whether they are complete; a query over budget has none."""
        from rmsh.index._kernels.mih import probe

        inputs = (*self._kernel_inputs(where), *tables, k, radius, self._visits())
        shares = np.array_split(words, min(self.threads, len(words)))
        done = run_all([partial(probe, read_only(share), *inputs) for share in shares])
        hits = [found for keys, ends, _ in done for found in np.split(keys, ends[:-1])]
        return hits, np.concatenate([complete for _, _, complete in done])


class Tables(NamedTuple):
    """One table per substring over the first n rows of an index; m is the number of tables."""

    bounds: NDArray[np.int32]  # 2^length + 1 bucket boundaries per table, concatenated
    rows: NDArray[np.int32]  # (m, n), sorted by bucket
    starts: IntArray  # (m + 1,), the bits at which substrings begin, and the end
    firsts: IntArray  # (m,), where the boundaries of each table begin
    counts: IntArray  # (m, longest + 1), number of buckets that differ from a given one in 0, 1, ... bits

    @property
    def row_count(self) -> int:
        """Number of rows in the tables."""
        return int(self.rows.shape[1])


def build_tables(index: Scan) -> Tables:
    """Sort all rows of an index, at most 2^31 - 1, into tables."""
    from rmsh.index._kernels.mih import fill_table

    count = substring_count(index.bits, index.row_count)
    starts = substring_starts(index.bits, count)
    lengths = np.diff(starts).tolist()
    bounds = [np.zeros(2**length + 1, dtype=np.int32) for length in lengths]
    rows = np.empty((count, index.row_count), dtype=np.int32)
    base, tail = (segment.reshape(-1) for segment in index.segments)

    def fill(share: range) -> None:
        for j in share:
            fill_table(base, tail, index.width, starts[j], starts[j + 1] - starts[j], bounds[j], rows[j])

    run_all([partial(fill, range(first, count, index.threads)) for first in range(min(index.threads, count))])
    firsts = np.cumsum([0, *map(len, bounds[:-1])])
    counts = np.array([[math.comb(length, d) for d in range(max(lengths) + 1)] for length in lengths])
    return Tables(np.concatenate(bounds), rows, starts, firsts, counts)


def substring_count(bits: int, rows: int) -> int:
    """Number of substrings: the fewest for which no table has more buckets than rows.

    Example:
        >>> substring_count(64, 1_000_000), substring_count(128, 1_000_000), substring_count(16, 1_000_000)
        (4, 7, 1)
    """
    return math.ceil(bits / min(max(math.log2(max(rows, 1)), _SHORTEST), _LONGEST))


def substring_starts(bits: int, count: int) -> IntArray:
    """Where substrings begin, and the end, int64 (count + 1,); their lengths differ by at most one.

    Example:
        >>> substring_starts(64, 3)
        array([ 0, 22, 43, 64])
    """
    lengths = np.full(count, bits // count)
    lengths[: bits % count] += 1
    return np.concatenate(([0], np.cumsum(lengths)))
