"""Exact multi-index hashing (Norouzi, Punjani and Fleet, 2012): look only where near codes can be.

A code within r bits of a query agrees with it up to r / m bits in one of m substrings, so tables of substrings lead to
all near codes. This pays where neighbours are near compared to the length of a code, as in clustered codes; where they
are not, more buckets would be visited than there are codes. A query therefore has a budget, and is scanned when it is
spent. Rows added since the tables were built are scanned, and the tables are built anew when these are many.

The tables of multi-index hashing: each sorts the rows by one substring of their codes.

A code is cut into m substrings of at most about log2(n) bits, so that a bucket holds a few rows. A table is an array of
rows sorted by bucket, and an array of where each bucket begins.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rmsh.core.errors import ConfigError, FormatError
from rmsh.index.base import FAR, to_hits, to_neighbours
from rmsh.index.scan import Scan, has_kernels, kernel_inputs, nearest_keys, run_all, within_keys
from rmsh.index.store import sealed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, IntArray, WordArray
    from rmsh.index.base import Hits, Neighbours
    from rmsh.index.store import CodeStore

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
    from rmsh.index._kernels.mih import fill_table

    base, tail = (segment.reshape(-1) for segment in store.segments)
    for j in share:
        fill_table(base, tail, store.width, starts[j], starts[j + 1] - starts[j], begins[j], rows[j])


_FRESH_ROWS = 4096  # added since the tables were built: so many, or a quarter, are scanned before building anew
_WORDS_A_VISIT = 32  # how many words the scan reads in the time of one visit to memory at random


class MultiIndex(Scan):
    """The exact index that looks where near codes can be.

    Args:
        bits: the length of a code, 1 to 512.
        threads: how many to use at most; all where None.
        budget: how many buckets and codes a query may visit before it is scanned; None: as many as take about as long.

    Example:
        >>> from rmsh.codes import Codes
        >>> index = MultiIndex(3, threads=1)
        >>> rows = index.add(Codes.from_values([[1, 1, 1], [1, 1, -1], [1, -1, 1]]))
        >>> index.search(Codes.from_values([[1, 1, 1]]), 2).rows
        array([[0, 1]])
    """

    kind: ClassVar[str] = "mih"

    def __init__(self, bits: int, *, threads: int | None = None, budget: int | None = None) -> None:
        super().__init__(bits, threads=threads)
        if budget is not None and (not isinstance(budget, int) or budget < 0):
            raise ConfigError(f"A budget of {budget!r} visits was given; give a whole number of at least 0, or None.")
        self.budget = budget
        self._tables: Tables | None = None
        self._building = threading.Lock()

    def _nearest(self, words: WordArray, k: int, where: BitArray | None) -> Hits:
        tables = self._current_tables() if k <= self._visits() else None  # k codes are k visits at least
        if tables is None:
            return super()._nearest(words, k, where)
        hits, certain = self._probe(tables, words, where, k=k, radius=self.bits)
        keys = np.full((len(words), k), FAR)
        for of_query, met in zip(keys, hits, strict=True):
            of_query[: len(met)] = np.sort(met)[:k]
        scan = partial(nearest_keys, self._store, k=k, where=where, threads=self.threads)
        if certain.any() and tables.row_count < self.row_count:
            later = scan(words[certain], first=tables.row_count)
            keys[certain] = np.sort(np.concatenate((keys[certain], later), axis=1), axis=1)[:, :k]
        if not certain.all():
            keys[~certain] = scan(words[~certain])
        return to_hits(keys)

    def _within(self, words: WordArray, radius: int, where: BitArray | None) -> Neighbours:
        tables = self._current_tables()
        if tables is None:
            return super()._within(words, radius, where)
        keys, certain = self._probe(tables, words, where, k=self.row_count + 1, radius=radius)
        owners = [np.repeat(np.arange(len(words)), [len(met) for met in keys])]
        for queries, first in ((certain, tables.row_count), (~certain, 0)):
            if queries.any() and first < self.row_count:
                scanned, more = within_keys(
                    self._store, words[queries], radius, where=where, threads=self.threads, first=first
                )
                owners.append(np.flatnonzero(queries)[scanned])
                keys.append(more)
        return to_neighbours(np.concatenate(owners), np.concatenate(keys), queries=len(words))

    def _current_tables(self) -> Tables | None:
        """Tables over all rows but a few, or None where there can be none."""
        if not has_kernels() or not 0 < self.row_count <= MOST_ROWS:
            return None
        with self._building:
            held = 0 if self._tables is None else self._tables.row_count
            if self._tables is None or self.row_count - held > max(_FRESH_ROWS, held // 4):
                self._tables = build(self._store, threads=self.threads)
            return self._tables

    def _visits(self) -> int:
        """How many buckets and codes a query may visit before it is scanned."""
        return self.row_count * self._store.width // _WORDS_A_VISIT if self.budget is None else self.budget

    def _probe(
        self, tables: Tables, words: WordArray, where: BitArray | None, *, k: int, radius: int
    ) -> tuple[list[IntArray], BitArray]:
        """Keys of the hits of each query among the rows in the tables, and whether they are certain, or none."""
        base, tail, alive, mask = kernel_inputs(self._store, where)
        inputs = (base, tail, tables.begins, tables.rows, tables.starts, tables.firsts, bucket_counts(tables.starts))
        shares = np.array_split(words, min(self.threads, len(words)))
        tasks = [partial(_probe_share, share, *inputs, alive, mask, k, radius, self._visits()) for share in shares]
        done = run_all(tasks)
        return [met for keys, _ in done for met in keys], np.concatenate([certain for _, certain in done])

    def _derived(self) -> dict[str, NDArray[Any]]:
        tables = self._current_tables()
        return {} if tables is None else {"begins": tables.begins, "rows": tables.rows}

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        if {"begins", "rows"} <= set(arrays):
            self._tables = Tables(self.bits, arrays["begins"], arrays["rows"])
            if self._tables.row_count > self.row_count:
                raise FormatError("its tables are of more rows than it has")


def _probe_share(words: WordArray, *inputs: Any) -> tuple[list[IntArray], BitArray]:
    from rmsh.index._kernels.mih import probe

    keys, ends, certain = probe(sealed(words), *inputs)
    return np.split(keys, ends[:-1]), certain
