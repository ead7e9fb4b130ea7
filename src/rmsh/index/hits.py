"""What a search gives: the nearest items of each query, or all within a radius; unsorted results cannot exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.types import BitArray, IntArray

__all__ = ["Hits", "Neighbours"]


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
