"""Brute-force search in numpy: all distances, then a stable sort; the reference for all other indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmsh.core.types import BitArray, IntArray, WordArray
from rmsh.index.base import Hits, Neighbours, StoredIndex

if TYPE_CHECKING:
    from collections.abc import Iterator


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
        hits = [(rows[:k], distances[:k]) for rows, distances in self._ranked(words, where)]
        return Hits(*map(np.stack, zip(*hits, strict=True)))

    def _within(self, words: WordArray, radius: int, where: BitArray | None) -> Neighbours:
        counts, hits = [0], []
        for rows, distances in self._ranked(words, where):
            counts.append(int(np.count_nonzero(distances <= radius)))
            hits.append((rows[: counts[-1]], distances[: counts[-1]]))
        return Neighbours(np.cumsum(counts), *map(np.concatenate, zip(*hits, strict=True)))

    def _ranked(self, words: WordArray, where: BitArray | None) -> Iterator[tuple[IntArray, IntArray]]:
        """For each query the admitted rows and their distances, nearest first."""
        admitted = np.ones(self.row_count, dtype=np.bool_)
        for mask in (self.alive, where):
            admitted &= True if mask is None else mask
        rows = np.flatnonzero(admitted)
        codes = np.concatenate(self.segments)[rows]
        for query in words:
            distances = np.bitwise_count(query ^ codes).sum(axis=1, dtype=np.int64)
            order = np.argsort(distances, kind="stable")  # equal distances stay ordered by row
            yield rows[order], distances[order]
