"""The conventions of an index, and the values that a search returns.

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
above them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.core.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, IntArray


@dataclass(frozen=True, eq=False)
class Hits:
    """The nearest items of Q queries, nearest first.

    Args:
        rows: int64 (Q, k).
        distances: int32 (Q, k), increasing along each query; equal distances are ordered by row.

    Raises:
        InputError: the shapes differ, or the hits are not sorted.

    Example:
        >>> Hits(np.array([[4, 7]]), np.array([[0, 2]])).distances
        array([[0, 2]], dtype=int32)
    """

    rows: IntArray
    distances: NDArray[np.int32]

    def __post_init__(self) -> None:
        rows, distances = _as_integers(self.rows, self.distances, 2)
        if not _is_sorted(rows, distances).all():
            raise InputError("Hits are not sorted by distance and row, or contain duplicates; sort them first.")
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "distances", distances)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """All items within a radius of Q queries, concatenated query by query.

    Args:
        offsets: int64 (Q + 1,); the hits of query q are at ``offsets[q]:offsets[q + 1]``.
        rows: int64 (hits,).
        distances: int32 (hits,), sorted within each query as in :class:`Hits`.

    Raises:
        InputError: the shapes differ, or the hits are not sorted.

    Example:
        >>> found = Neighbours(np.array([0, 2, 2]), np.array([4, 7]), np.array([0, 1]))
        >>> len(found), found.of(0), found.of(1)[0].size
        (2, (array([4, 7]), array([0, 1], dtype=int32)), 0)
    """

    offsets: IntArray
    rows: IntArray
    distances: NDArray[np.int32]

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


def to_hits(keys: IntArray) -> Hits:
    """Convert the sorted keys of an index, int64 (Q, k), to hits; to save time, they are not checked again."""
    hits = object.__new__(Hits)
    hits.__dict__.update(rows=keys & ((1 << ROW_BITS) - 1), distances=(keys >> ROW_BITS).astype(np.int32))
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


def check_radius(radius: int) -> int:
    """Return the radius or raise InputError; a radius above the number of bits finds everything."""
    return _check_integer("radius", radius, 0)


def _check_integer(name: str, value: Any, least: int) -> int:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise InputError(f"Got {name} = {value!r}; give an integer of at least {least}.")
    return int(value)
