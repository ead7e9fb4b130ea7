"""The contract of an index: what is added, found and refused.

Conventions, stated here and nowhere else; every index follows them, and ``brute.py`` is the oracle of all others:

- An item is known by its *row*: an int64, given by ``add`` in increasing order from 0. A removed row is never given
  again, not even after saving and opening; ``row_count`` is the number of rows ever given, ``len(index)`` the number
  of items that are there.
- The ids of the given ``Codes`` are not kept. Who owns the items, such as a library, owns the mapping from row to id.
- A distance is the number of differing bits: an integer, smaller is nearer. Equal distances are ordered by row, so
  that there is exactly one right answer, and every exact index gives it to the last tie.
- ``search`` gives the k nearest; k is at least 1, and where it is larger than the number of items that may be found,
  these are what is returned. ``within`` gives all at a distance of at most ``radius``, 0 or more.
- An empty index, an empty set of queries and a mask that admits nothing give results of the right shape without hits.
- ``where`` is a boolean mask over rows, (row_count,): only rows where it is True are found. What it says about removed
  rows has no effect. A filter (``filters.py``) is for those who know labels, ids and texts; they turn it into a mask.
- ``remove`` takes rows that are there; otherwise it names the row and removes nothing. A row given twice is one row.
- Codes of another length are refused, and so are k, radius, rows and masks that are not what they should be.
- Several threads may search at once. Who adds or removes meanwhile needs a lock of their own.
- ``save`` leaves a folder that is there whole or not at all; ``open`` brings back items, rows and their numbering.

What a search gives: the nearest items of each query, or all within a radius; unsorted results cannot exist.

A hit as one number that sorts as hits do: the distance above bit 48, the row below.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from rmsh.core.errors import CodesError, InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.codes import Codes
    from rmsh.core.types import BitArray, IntArray


@dataclass(frozen=True, eq=False)
class Hits:
    """The nearest items of Q queries, nearest first.

    Args:
        rows: int64 (Q, k).
        distances: int32 (Q, k), increasing along a query, and rows increasing where they are equal.

    Raises:
        InputError: the shapes differ, or hits are not in their order.

    Example:
        >>> Hits(np.array([[4, 7]]), np.array([[0, 2]])).distances
        array([[0, 2]], dtype=int32)
    """

    rows: IntArray
    distances: NDArray[np.int32]

    def __post_init__(self) -> None:
        rows, distances = _integers(self.rows, self.distances, 2)
        if not _in_order(rows, distances).all():
            raise InputError("Hits are not sorted by distance and row, or one occurs twice; sort them first.")
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "distances", distances)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """All items within a radius of Q queries: as many as there are, one query behind the other.

    Args:
        offsets: int64 (Q + 1,); the hits of query q are at ``offsets[q]:offsets[q + 1]``.
        rows: int64 (hits,).
        distances: int32 (hits,), in order as those of :class:`Hits`.

    Raises:
        InputError: the shapes differ, or hits are not in their order.

    Example:
        >>> found = Neighbours(np.array([0, 2, 2]), np.array([4, 7]), np.array([0, 1]))
        >>> len(found), found.of(0), found.of(1)[0].size
        (2, (array([4, 7]), array([0, 1], dtype=int32)), 0)
    """

    offsets: IntArray
    rows: IntArray
    distances: NDArray[np.int32]

    def __post_init__(self) -> None:
        rows, distances = _integers(self.rows, self.distances, 1)
        offsets = np.asarray(self.offsets, dtype=np.int64)
        ends = (int(offsets[0]), int(offsets[-1])) if offsets.size and offsets.ndim == 1 else None
        if ends != (0, rows.size) or (np.diff(offsets) < 0).any():
            raise InputError(f"Offsets {offsets} were given for {rows.size} hits; they rise from 0 to {rows.size}.")
        starts = np.zeros(rows.size + 1, dtype=np.bool_)
        starts[offsets] = True
        if not (_in_order(rows, distances) | starts[1 : rows.size]).all():
            raise InputError("Neighbours are not sorted by distance and row, or one occurs twice; sort them first.")
        for name, value in (("offsets", offsets), ("rows", rows), ("distances", distances)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return self.offsets.size - 1

    def of(self, query: int) -> tuple[IntArray, NDArray[np.int32]]:
        """Rows and distances of one query."""
        hits = slice(self.offsets[query], self.offsets[query + 1])
        return self.rows[hits], self.distances[hits]


def _integers(rows: Any, distances: Any, ndim: int) -> tuple[IntArray, NDArray[np.int32]]:
    rows, distances = np.asarray(rows), np.asarray(distances)
    if rows.shape != distances.shape or rows.ndim != ndim or rows.dtype.kind != "i" or distances.dtype.kind not in "iu":
        raise InputError(
            f"Rows of {rows.dtype} {rows.shape} and distances of {distances.dtype} {distances.shape} were given; both "
            f"are integers of the same shape, with {ndim} axes."
        )
    return rows.astype(np.int64, copy=False), distances.astype(np.int32, copy=False)


def _in_order(rows: IntArray, distances: NDArray[np.int32]) -> BitArray:
    """Whether each hit but the first stands rightly behind the one before it."""
    farther = distances[..., 1:] > distances[..., :-1]
    later: BitArray = farther | (distances[..., 1:] == distances[..., :-1]) & (rows[..., 1:] > rows[..., :-1])
    return later


ROW_BITS = 48  # with at most 512 as distance, 10 bits more: a key stays positive
FAR = np.iinfo(np.int64).max  # no hit: behind every key


def to_hits(keys: IntArray) -> Hits:
    """Hits of sorted keys, int64 (Q, k).

    Example:
        >>> to_hits(np.array([[3 << 48 | 7]])).distances
        array([[3]], dtype=int32)
    """
    return Hits(keys & ((1 << ROW_BITS) - 1), (keys >> ROW_BITS).astype(np.int32))


def to_neighbours(owners: IntArray, keys: IntArray, *, queries: int) -> Neighbours:
    """Neighbours of keys in any order, each with the number of its query.

    Example:
        >>> found = to_neighbours(np.array([1, 1]), np.array([2 << 48, 1 << 48 | 5]), queries=2)
        >>> found.offsets, found.rows
        (array([0, 0, 2]), array([5, 0]))
    """
    order = np.lexsort((keys, owners))
    offsets = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=queries))))
    hits = keys[order]
    return Neighbours(offsets, hits & ((1 << ROW_BITS) - 1), (hits >> ROW_BITS).astype(np.int32))


class Index(Protocol):
    """What every index does; the conventions are at the top of this file."""

    @property
    def bits(self) -> int:
        """The length of a code."""

    @property
    def row_count(self) -> int:
        """How many rows were ever given; masks have this length."""

    def __len__(self) -> int:
        """How many items are there."""

    def add(self, codes: Codes) -> IntArray:
        """Add codes, and return the rows they got, int64 (n,)."""

    def remove(self, rows: IntArray) -> None:
        """Remove the items of these rows."""

    def search(self, codes: Codes, k: int, *, where: BitArray | None = None) -> Hits:
        """The k nearest items of each query."""

    def within(self, codes: Codes, radius: int, *, where: BitArray | None = None) -> Neighbours:
        """All items at a distance of at most ``radius`` of each query."""

    def save(self, folder: Path) -> None:
        """Write the index into a folder, in place of one that is there."""

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Read what :meth:`save` wrote."""


def check_length(codes: Codes, bits: int) -> None:
    """Refuse codes of another length than the index holds."""
    if codes.bits != bits:
        raise CodesError(f"Codes of {codes.bits} bits were given to an index of {bits} bits; use the model it is of.")


def check_k(k: int) -> int:
    """Return the number of neighbours to find, or refuse it.

    Example:
        >>> check_k(10)
        10
    """
    return _whole(k, 1, "neighbours (k) were asked for")


def check_radius(radius: int) -> int:
    """Return a radius, or refuse it; one beyond the length of a code finds everything.

    Example:
        >>> check_radius(0)
        0
    """
    return _whole(radius, 0, "is no radius")


def _whole(value: Any, least: int, wrong: str) -> int:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise InputError(f"{value!r} {wrong}; give a whole number of at least {least}.")
    return int(value)


def check_rows(rows: Any) -> IntArray:
    """Return rows as int64 (n,), or refuse what is no list of rows."""
    array = np.asarray(rows)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"Rows of {array.dtype} {array.shape} were given; give whole numbers of shape (n,).")
    return array.astype(np.int64)


def no_such_row(row: int, count: int) -> InputError:
    """The refusal to remove a row that an index of so many items does not have."""
    return InputError(
        f"The row {row} is not in this index of {count} items; give rows that were added and not removed since."
    )


def check_mask(where: Any, row_count: int) -> BitArray:
    """Return a mask over rows as bool (row_count,), or refuse what is none.

    Example:
        >>> check_mask([True, False], 2)
        array([ True, False])
    """
    mask = np.asarray(where)
    if mask.dtype != np.bool_ or mask.shape != (row_count,):
        received = f"A mask of {mask.dtype} {mask.shape}" if mask.ndim else f"{where!r}"
        raise InputError(
            f"{received} was given as where; an index of codes takes a boolean mask over its {row_count} rows, and a "
            "filter of labels, ids or texts is for a library."
        )
    return np.ascontiguousarray(mask)
