"""The conventions of an index, the values that a search returns, and the class that all indexes share.

These conventions hold for every index and are stated only here; ``brute.py`` is the reference implementation.

- **Rows.** An item is identified by its *row*, an int64. ``add`` assigns rows in increasing order from 0. The row of a
  removed item is never reused. ``row_count`` is the number of rows ever assigned; ``len(index)`` is the number of items
  currently stored.
- **Ids.** An index ignores the ids of the ``Codes`` it receives. Its owner, such as a library, maps rows to ids.
- **Distance.** The distance is the number of differing bits: an integer, and smaller is nearer. Equal distances are
  ordered by row, so every search has exactly one correct result, and all exact indexes return it.
- **Limits.** ``search`` returns the k nearest items, k >= 1, or all of them if fewer than k are admitted. ``within``
  returns all items at a distance of at most ``radius`` >= 0.
- **Nothing to find.** An empty index, an empty batch of queries and a mask that admits no row are not errors. The
  result has the right shape and contains no hits.
- **Masks.** ``where`` is a boolean mask over rows, (row_count,); only rows where it is True are found. Its values at
  removed rows are ignored. The owner of the items turns filters by label, id or text (``filters.py``) into masks.
- **Removal.** ``remove`` requires that every row is stored; otherwise it raises, names the row and removes nothing.
  Duplicate rows count once.
- **Errors.** Codes of another length raise CodesError. An invalid k, radius, list of rows or mask raises InputError.
- **Threads.** Searches may run concurrently. Adding or removing items at the same time requires external locking.

Kernels represent a hit as one int64 *key* that sorts by distance, then row: the row in the lowest 48 bits, the distance
above them. They receive read-only arrays: numba compiles separately for writable and read-only arrays, and a
memory-mapped base is read-only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmsh.codes import Codes, check_bits
from rmsh.core.errors import CodesError, InputError
from rmsh.core.types import BitArray, IntArray, WordArray


@dataclass(frozen=True, eq=False)
class Hits:
    """The nearest items of Q queries, nearest first; InputError if the shapes differ, or the hits are not sorted.

    Example:
        >>> Hits(np.array([[4, 7]]), np.array([[0, 2]])).distances
        array([[0, 2]], dtype=int32)
    """

    rows: IntArray  # (Q, k)
    distances: NDArray[np.int32]  # (Q, k), increasing along each query; equal distances are ordered by row

    def __post_init__(self) -> None:
        rows, distances = _as_integers(self.rows, self.distances, 2)
        if not _is_sorted(rows, distances).all():
            raise InputError("Hits are not sorted by distance and row, or contain duplicates; sort them first.")
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "distances", distances)

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, query: int) -> tuple[IntArray, NDArray[np.int32]]:
        """Rows and distances of one query."""
        return self.rows[query], self.distances[query]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """All items within a radius of Q queries, concatenated query by query; InputError as for :class:`Hits`.

    Example:
        >>> found = Neighbours(np.array([0, 2, 2]), np.array([4, 7]), np.array([0, 1]))
        >>> len(found), found.of(0), found.of(1)[0].size
        (2, (array([4, 7]), array([0, 1], dtype=int32)), 0)
    """

    offsets: IntArray  # (Q + 1,); the hits of query q are at offsets[q]:offsets[q + 1]
    rows: IntArray  # (hits,)
    distances: NDArray[np.int32]  # (hits,), sorted within each query as in Hits

    def __post_init__(self) -> None:
        rows, distances = _as_integers(self.rows, self.distances, 1)
        offsets = np.asarray(self.offsets, dtype=np.int64)
        ends = (int(offsets[0]), int(offsets[-1])) if offsets.size and offsets.ndim == 1 else None
        if ends != (0, rows.size) or (np.diff(offsets) < 0).any():
            raise InputError(f"Got offsets {offsets} for {rows.size} hits; they must increase from 0 to {rows.size}.")
        starts = np.zeros(rows.size + 1, dtype=np.bool_)
        starts[offsets] = True
        if not (_is_sorted(rows, distances) | starts[1 : rows.size]).all():
            raise InputError("Neighbours are not sorted by distance and row, or contain duplicates; sort them first.")
        for name, value in (("offsets", offsets), ("rows", rows), ("distances", distances)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return self.offsets.size - 1

    def of(self, query: int) -> tuple[IntArray, NDArray[np.int32]]:
        """Rows and distances of one query."""
        hits = slice(self.offsets[query], self.offsets[query + 1])
        return self.rows[hits], self.distances[hits]


def _as_integers(rows: Any, distances: Any, ndim: int) -> tuple[IntArray, NDArray[np.int32]]:
    rows, distances = np.asarray(rows), np.asarray(distances)
    if rows.shape != distances.shape or rows.ndim != ndim or rows.dtype.kind != "i" or distances.dtype.kind not in "iu":
        raise InputError(
            f"Got rows of {rows.dtype} {rows.shape} and distances of {distances.dtype} {distances.shape}; both must be "
            f"integer arrays of the same shape with {ndim} axes."
        )
    return rows.astype(np.int64, copy=False), distances.astype(np.int32, copy=False)


def _is_sorted(rows: IntArray, distances: NDArray[np.int32]) -> BitArray:
    """Whether each hit but the first ranks after its predecessor."""
    keys = to_keys(rows, distances)
    return keys[..., 1:] > keys[..., :-1]


ROW_BITS = 48  # distances of at most 512 need 10 bits more, so a key stays positive
FAR = np.iinfo(np.int64).max  # stands for "no hit": sorts after every key


def to_keys(rows: IntArray, distances: NDArray[np.int32]) -> IntArray:
    """Convert rows and distances to keys, int64."""
    keys: IntArray = distances.astype(np.int64) << ROW_BITS | rows
    return keys


def to_hits(keys: IntArray, split: Callable[[IntArray], tuple[IntArray, NDArray[np.int32]]] | None = None) -> Hits:
    """Convert the sorted keys of an index, int64 (Q, k), to hits; to save time, they are not checked again.

    ``split`` returns their rows and distances; one compiled for it takes less time than numpy for a few keys.
    """
    hits = object.__new__(Hits)
    rows, distances = split(keys) if split else (keys & ((1 << ROW_BITS) - 1), (keys >> ROW_BITS).astype(np.int32))
    hits.__dict__.update(rows=rows, distances=distances)
    return hits


def to_neighbours(owners: IntArray, keys: IntArray, *, queries: int) -> Neighbours:
    """Convert unsorted keys, each with the number of its query, to neighbours.

    Example:
        >>> found = to_neighbours(np.array([1, 1]), np.array([2 << 48, 1 << 48 | 5]), queries=2)
        >>> found.offsets, found.rows
        (array([0, 0, 2]), array([5, 0]))
    """
    order = np.lexsort((keys, owners))
    offsets = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=queries))))
    hits = keys[order]
    return Neighbours(offsets, hits & ((1 << ROW_BITS) - 1), (hits >> ROW_BITS).astype(np.int32))


def check_k(k: int) -> int:
    """Return k, the number of neighbours to find, or raise InputError."""
    return _check_integer("k", k, 1)


def _check_integer(name: str, value: Any, least: int) -> int:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise InputError(f"Got {name} = {value!r}; give an integer of at least {least}.")
    return int(value)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view


class _GrowingArray:
    """An array that grows along its first axis; ``filled`` is its content."""

    def __init__(self, start: NDArray[Any]) -> None:
        self._buffer = start
        self.filled = start

    def append(self, more: NDArray[Any]) -> None:
        old, new = len(self.filled), len(self.filled) + len(more)
        if new > len(self._buffer):
            buffer = np.empty((max(new, 2 * old), *self._buffer.shape[1:]), dtype=self._buffer.dtype)
            buffer[:old] = self.filled
            self._buffer = buffer
        self._buffer[old:new] = more
        self.filled = self._buffer[:new]


class StoredIndex(ABC):
    """A searchable set of codes of 1 to 512 ``bits``, in memory; indexes differ only in how they search.

    Rows 0 to m - 1 are in the base, which may be memory-mapped, and later ones in the tail. Appending never touches the
    base. The tail doubles its capacity when it is full, so adding n codes one by one copies about 2 n codes.
    """

    def __init__(self, bits: int) -> None:
        self.bits = check_bits(bits)
        self.width = -(-self.bits // 64)  # words per code
        self._tail = _GrowingArray(np.empty((0, self.width), dtype=np.uint64))
        # base and tail, (rows, width) each; the first row of the tail follows the last of the base
        self.segments: tuple[WordArray, WordArray] = (read_only(self._tail.filled), read_only(self._tail.filled))
        self._alive: _GrowingArray | None = None  # bool (row_count,); None until a row is removed
        self._count = 0

    @classmethod
    def over(cls, words: WordArray, bits: int, **options: Any) -> Self:
        """Create an index over existing codes, such as a memory-mapped file, without copying them.

        Words are C-contiguous uint64 (n, ceil(bits / 64)), with the rows 0 to n - 1; options are for the constructor.
        """
        index = cls(bits, **options)
        if words.dtype != np.uint64 or words.shape[1:] != (index.width,) or not words.flags.c_contiguous:
            raise CodesError(f"Got a base of {words.dtype} {words.shape}; give C-contiguous uint64 (n, {index.width}).")
        index.segments = (read_only(np.asarray(words)), index.segments[1])  # a plain array over the memory map
        index._count = len(words)
        return index

    def __len__(self) -> int:
        """Number of items."""
        return self._count

    @property
    def row_count(self) -> int:
        """Number of rows ever assigned; masks have this length."""
        return len(self.segments[0]) + len(self.segments[1])

    @property
    def alive(self) -> BitArray | None:
        """Which rows are stored, bool (row_count,); None until a row is removed."""
        return None if self._alive is None else read_only(self._alive.filled)

    def add(self, codes: Codes) -> IntArray:
        """Add codes and return their rows, int64 (n,)."""
        self._check_length(codes)
        first = self.row_count
        self._tail.append(codes.words())
        self.segments = (self.segments[0], read_only(self._tail.filled))
        if self._alive is not None:
            self._alive.append(np.ones(len(codes), dtype=np.bool_))
        self._count += len(codes)
        return np.arange(first, self.row_count, dtype=np.int64)

    def remove(self, rows: ArrayLike) -> None:
        """Remove the items with these rows: all of them, or none if one is unknown."""
        array = np.asarray(rows)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InputError(f"Got rows of {array.dtype} {array.shape}; give integers of shape (n,).")
        array = np.unique(array.astype(np.int64))
        known = (array >= 0) & (array < self.row_count)
        if self._alive is not None:
            known[known] = self._alive.filled[array[known]]
        if not known.all():
            raise InputError(f"Row {array[~known][0]} is not in this index of {len(self)} items; give stored rows.")
        if self._alive is None:
            self._alive = _GrowingArray(np.ones(self.row_count, dtype=np.bool_))
        self._alive.filled[array] = False
        self._count -= len(array)

    def search(self, codes: Codes, k: int, *, where: BitArray | None = None) -> Hits:
        """Find the k nearest items of each query."""
        self._check_length(codes)
        mask, admitted = self._check_mask(where)
        found = min(check_k(k), admitted)
        if not found or not len(codes):
            return Hits(np.empty((len(codes), found), np.int64), np.empty((len(codes), found), np.int32))
        return self._nearest(codes.words(), found, mask)

    def within(self, codes: Codes, radius: int, *, where: BitArray | None = None) -> Neighbours:
        """Find all items at a distance of at most ``radius`` from each query."""
        self._check_length(codes)
        mask, admitted = self._check_mask(where)
        limit = min(_check_integer("radius", radius, 0), self.bits)
        if not admitted or not len(codes):
            return Neighbours(np.zeros(len(codes) + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))
        return self._within(codes.words(), limit, mask)

    @abstractmethod
    def _nearest(self, words: WordArray, k: int, where: BitArray | None) -> Hits:
        """The k nearest items of at least one query; at least k items are admitted."""

    @abstractmethod
    def _within(self, words: WordArray, radius: int, where: BitArray | None) -> Neighbours:
        """All items within a radius of at most ``bits`` of at least one query; at least one item is admitted."""

    def _check_length(self, codes: Codes) -> None:
        if codes.bits != self.bits:
            raise CodesError(f"Got codes of {codes.bits} bits for an index of {self.bits} bits; use its model.")

    def _check_mask(self, where: Any) -> tuple[BitArray | None, int]:
        """The mask, and the number of items that it admits."""
        if where is None:
            return None, len(self)
        mask = np.asarray(where)
        if mask.dtype != np.bool_ or mask.shape != (self.row_count,):
            received = f"a mask of {mask.dtype} {mask.shape}" if mask.ndim else repr(where)
            raise InputError(
                f"Got {received} for where; an index takes a boolean mask over its {self.row_count} rows. To filter by "
                "label, id or text, search a library."
            )
        admitted = mask if self._alive is None else mask & self._alive.filled
        return np.ascontiguousarray(mask), int(np.count_nonzero(admitted))
