"""Brute-force search in numpy: all distances, then a stable sort; the reference for all other indexes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from rmsh.index.base import Hits, Neighbours
from rmsh.index.store import StoredIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, IntArray, WordArray

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
        found, distances = [], []
        for rows, block in self._distances(words, where):
            order = np.argsort(block, axis=1, kind="stable")[:, :k]  # stable: equal distances stay ordered by row
            found.append(rows[order])
            distances.append(np.take_along_axis(block, order, axis=1))
        return Hits(np.concatenate(found), np.concatenate(distances))

    def _within(self, words: WordArray, radius: int, where: BitArray | None) -> Neighbours:
        found, distances, counts = [], [], [0]
        for rows, block in self._distances(words, where):
            for row_distances in block:
                near = np.flatnonzero(row_distances <= radius)
                near = near[np.argsort(row_distances[near], kind="stable")]
                found.append(rows[near])
                distances.append(row_distances[near])
                counts.append(len(near))
        return Neighbours(np.cumsum(counts), np.concatenate(found), np.concatenate(distances))

    def _distances(self, words: WordArray, where: BitArray | None) -> Iterator[tuple[IntArray, NDArray[np.int16]]]:
        """The admitted rows and the distances to them, int16 (block, rows), for one block of queries at a time."""
        admitted = np.ones(self.row_count, dtype=np.bool_)
        for mask in (self.alive, where):
            admitted &= True if mask is None else mask
        rows, (base, tail) = np.flatnonzero(admitted), self.segments
        size = max(1, _BLOCK_BYTES // (8 * self.width * len(rows)))
        step = max(1, _BLOCK_BYTES // (8 * self.width * min(size, len(words))))
        for start in range(0, len(words), size):
            queries = words[start : start + size]
            block = np.empty((len(queries), len(rows)), dtype=np.int16)
            for first in range(0, len(rows), step):
                some = rows[first : first + step]
                split = int(np.searchsorted(some, len(base)))
                codes = np.concatenate((base[some[:split]], tail[some[split:] - len(base)]))
                differing = np.bitwise_count(queries[:, None, :] ^ codes[None, :, :])
                block[:, first : first + step] = differing.sum(axis=2, dtype=np.int16)
            yield rows, block
