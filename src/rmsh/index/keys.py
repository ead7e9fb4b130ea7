"""A hit as one number that sorts as hits do: the distance above bit 48, the row below."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmsh.index.hits import Hits, Neighbours

if TYPE_CHECKING:
    from rmsh.types import IntArray

__all__ = ["FAR", "ROW_BITS", "to_hits", "to_neighbours"]

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
