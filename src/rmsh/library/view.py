"""The codes of one modality at one change, ready to be searched; a view never changes, a newer state is a new view.

The base is the snapshot, memory-mapped and shared by all views that follow from it; the tail is what was added since;
a mask tells which rows are still there. Rows increase through base and tail, so equal distances are ordered by row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rmsh.index.base import check_k
from rmsh.index.keys import FAR, ROW_BITS, to_hits, to_neighbours

if TYPE_CHECKING:
    from rmsh.codes import Codes
    from rmsh.index.hits import Hits, Neighbours
    from rmsh.index.stored import StoredIndex
    from rmsh.library.reading import Generation
    from rmsh.types import BitArray, IntArray, WordArray

__all__ = ["Segment", "View"]

_FEW_REMOVED = 1024


@dataclass(frozen=True, eq=False)
class Segment:
    """Codes that lie together: rows, int64 (n,) increasing, words, uint64 (n, width), and an index of them."""

    rows: IntArray
    words: WordArray
    index: StoredIndex

    @classmethod
    def of(cls, rows: IntArray, words: WordArray, *, bits: int, engine: type[StoredIndex]) -> Segment:
        """Index words without copying them."""
        return cls(rows, words, engine.over(words, bits))

    def keys(self, hits: Hits | Neighbours) -> IntArray:
        """Hits of the index as keys (see keys.py) that hold rows of the library."""
        keys: IntArray = hits.distances.astype(np.int64) << ROW_BITS | self.rows[hits.rows]
        return keys

    def places(self, rows: IntArray) -> IntArray:
        """Where some rows, increasing, are in this segment; rows that are elsewhere are left out."""
        at = np.searchsorted(self.rows, rows)
        inside = at < len(self.rows)
        found: IntArray = at[inside][self.rows[at[inside]] == rows[inside]]
        return found


@dataclass(frozen=True, eq=False)
class View:
    """The codes of one modality at one change.

    Args:
        seq: the change.
        generation: of the codes.
        base: codes of an earlier change.
        tail: codes added since.
        base_seq: that earlier change.
        alive: bool (len(base) + len(tail),), which of them are still there; None where all are.
    """

    seq: int
    generation: Generation
    base: Segment
    tail: Segment
    base_seq: int
    alive: BitArray | None = None

    def __len__(self) -> int:
        return len(self.base.rows) + len(self.tail.rows)

    @property
    def last_row(self) -> int:
        """The last row of all, 0 where there is none."""
        return int(max(self.base.rows[-1:].sum(), self.tail.rows[-1:].sum()))

    @property
    def behind(self) -> int:
        """How many rows were added to the base, or removed, since."""
        removed = 0 if self.alive is None else int(np.count_nonzero(~self.alive))
        return len(self.tail.rows) + removed

    def places(self) -> IntArray:
        """Where the codes are that are still there, int64, increasing: first through the base, then the tail."""
        return np.arange(len(self)) if self.alive is None else np.flatnonzero(self.alive)

    def take(self, places: IntArray) -> tuple[IntArray, WordArray]:
        """Rows and words at some places, given increasing."""
        split = int(np.searchsorted(places, len(self.base.rows)))
        parts = (self.base, places[:split]), (self.tail, places[split:] - len(self.base.rows))
        rows, words = zip(*((segment.rows[at], segment.words[at]) for segment, at in parts), strict=True)
        return np.concatenate(rows), np.concatenate(words)

    def after(self, seq: int, *, removed: IntArray, rows: IntArray, words: WordArray) -> View:
        """The view at a later change, given the ranges of rows removed since, and the rows added with their words."""
        tail = self.tail
        if len(rows):
            joined = np.concatenate((tail.rows, rows)), np.concatenate((tail.words, words))
            tail = Segment.of(*joined, bits=self.generation.bits, engine=type(tail.index))
        if self.alive is None and not len(removed):
            return replace(self, seq=seq, tail=tail)
        known = np.ones(len(self), dtype=np.bool_) if self.alive is None else self.alive
        alive = np.concatenate((known, np.ones(len(rows), dtype=np.bool_)))
        later = replace(self, seq=seq, tail=tail, alive=alive)
        for part, segment in zip(later._split(alive), (later.base, later.tail), strict=True):
            for begin, end in np.searchsorted(segment.rows, removed + np.array([0, 1])):
                part[begin:end] = False
        return later

    def mask_of(self, rows: IntArray) -> BitArray:
        """A mask over the codes of this view that admits some rows, given increasing."""
        mask = np.zeros(len(self), dtype=np.bool_)
        for part, segment in zip(self._split(mask), (self.base, self.tail), strict=True):
            part[segment.places(rows)] = True
        return mask

    def _split(self, mask: BitArray) -> tuple[BitArray, BitArray]:
        """The parts of a mask that are of the base and of the tail."""
        return mask[: len(self.base.rows)], mask[len(self.base.rows) :]

    def _parts(self, where: BitArray | None) -> list[tuple[Segment, BitArray | None, BitArray | None]]:
        """Both segments, each with the masks of what is still there and of what may be found in it."""
        alive, admitted = ((None, None) if mask is None else self._split(mask) for mask in (self.alive, where))
        return list(zip((self.base, self.tail), alive, admitted, strict=True))

    def search(self, codes: Codes, k: int, *, where: BitArray | None = None) -> Hits:
        """The k nearest rows of each query that pass a mask."""
        found = [_nearest(*part, codes=codes, k=check_k(k)) for part in self._parts(where)]
        return to_hits(np.sort(np.concatenate(found, axis=1), axis=1)[:, :k])

    def within(self, codes: Codes, radius: int, *, where: BitArray | None = None) -> Neighbours:
        """All rows at a distance of at most ``radius`` of each query that pass a mask."""
        owners, keys = [], []
        for segment, alive, admitted in self._parts(where):
            near = segment.index.within(codes, radius, where=admitted)
            there = slice(None) if alive is None else alive[near.rows]
            owners.append(np.repeat(np.arange(len(codes)), np.diff(near.offsets))[there])
            keys.append(segment.keys(near)[there])
        return to_neighbours(np.concatenate(owners), np.concatenate(keys), queries=len(codes))


def _nearest(segment: Segment, alive: BitArray | None, admitted: BitArray | None, *, codes: Codes, k: int) -> IntArray:
    """Keys of the k nearest of a segment that are there and admitted, or of all, int64 (Q, at most k), unsorted.

    An index passes over a mask much faster where there is none. While few rows were removed, it is asked for so many
    more, and those of them that are gone are dropped.
    """
    removed = 0 if alive is None else int(np.count_nonzero(~alive))
    if admitted is None and removed <= _FEW_REMOVED:
        hits = segment.index.search(codes, k + removed)
        if alive is None or not removed:
            return segment.keys(hits)
        keys = np.where(alive[hits.rows], segment.keys(hits), FAR)
        return np.sort(keys, axis=1)[:, : min(k, alive.size - removed)]
    masks = [mask for mask in (alive, admitted) if mask is not None]
    return segment.keys(segment.index.search(codes, k, where=np.logical_and.reduce(masks)))
