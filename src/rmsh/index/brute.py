"""Brute-force search in numpy: all distances, then a stable sort; the reference for all other indexes.

It needs no compiled code, so it also replaces the scan if numba is not installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from rmsh.index.base import Hits, Neighbours
from rmsh.index.store import StoredIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, IntArray, WordArray
    from rmsh.index.store import CodeStore

_BLOCK_BYTES = 32 << 20  # of the distances of a block of queries, and of the words compared at once


class Brute(StoredIndex):
    """The exact index in numpy.

    Example:
        >>> from rmsh.codes import Codes
        >>> index = Brute(3)
        >>> index.add(Codes.from_values([[1, 1, 1], [1, 1, -1], [1, -1, 1]]))
        array([0, 1, 2])
        >>> index.search(Codes.from_values([[1, 1, 1]]), 2).rows
        array([[0, 1]])
    """

    def _nearest(self, words: WordArray, k: int, where: BitArray | None) -> Hits:
        rows = _admitted_rows(self._store, where)
        found, distances = [], []
        for block in _distances(self._store, words, rows):
            order = np.argsort(block, axis=1, kind="stable")[:, :k]  # stable: equal distances stay ordered by row
            found.append(rows[order])
            distances.append(np.take_along_axis(block, order, axis=1))
        return Hits(np.concatenate(found), np.concatenate(distances))

    def _within(self, words: WordArray, radius: int, where: BitArray | None) -> Neighbours:
        rows = _admitted_rows(self._store, where)
        found, distances, counts = [], [], [0]
        for block in _distances(self._store, words, rows):
            for row_distances in block:
                near = np.flatnonzero(row_distances <= radius)
                near = near[np.argsort(row_distances[near], kind="stable")]
                found.append(rows[near])
                distances.append(row_distances[near])
                counts.append(len(near))
        return Neighbours(np.cumsum(counts), np.concatenate(found), np.concatenate(distances))


def _admitted_rows(store: CodeStore, where: BitArray | None) -> IntArray:
    """The rows that are stored and admitted by the mask, in increasing order."""
    admitted = np.ones(store.row_count, dtype=np.bool_)
    for mask in (store.alive, where):
        admitted &= True if mask is None else mask
    return np.flatnonzero(admitted)


def _distances(store: CodeStore, words: WordArray, rows: IntArray) -> Iterator[NDArray[np.int16]]:
    """Distances to the given rows, int16 (block, len(rows)), for one block of queries at a time."""
    base, tail = store.segments
    split = int(np.searchsorted(rows, len(base)))
    codes = ((base, rows[:split], slice(0, split)), (tail, rows[split:] - len(base), slice(split, None)))
    size = max(1, _BLOCK_BYTES // (8 * store.width * len(rows)))
    for start in range(0, len(words), size):
        queries = words[start : start + size]
        block = np.empty((len(queries), len(rows)), dtype=np.int16)
        for segment, local, columns in codes:
            _compare(queries, segment, local, out=block[:, columns])
        yield block


def _compare(queries: WordArray, segment: WordArray, rows: IntArray, *, out: NDArray[np.int16]) -> None:
    step = max(1, _BLOCK_BYTES // (8 * segment.shape[1] * len(queries)))
    for start in range(0, len(rows), step):
        some = segment[rows[start : start + step]]
        differing = np.bitwise_count(queries[:, None, :] ^ some[None, :, :])
        out[:, start : start + step] = differing.sum(axis=2, dtype=np.int16)
