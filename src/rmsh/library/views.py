"""Keeping views up to date: the first comes from the snapshot, or from the database where that cannot serve.

The codes of one modality at one change, ready to be searched; a view never changes, a newer state is a new view.

The base is the snapshot, memory-mapped and shared by all views that follow from it; the tail is what was added since;
a mask tells which rows are still there. Rows increase through base and tail, so equal distances are ordered by row.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.codes import to_words
from rmsh.core.errors import FormatError
from rmsh.index.base import FAR, ROW_BITS, check_k, to_hits, to_neighbours
from rmsh.library.queries import (
    Generation,
    change_token,
    code_blocks,
    damaged_code,
    generation_of,
    last_change,
    log_reaches,
    ranges_removed,
)
from rmsh.library.snapshot import SNAPSHOT, Snapshot, is_stale

if TYPE_CHECKING:
    from rmsh.codes import Codes
    from rmsh.core.types import BitArray, IntArray, Modality, WordArray
    from rmsh.index.base import Hits, Neighbours
    from rmsh.index.store import StoredIndex
    from rmsh.library.queries import Generation
    from rmsh.library.warnings import Warnings

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
        token: of that change.
        generation: of the codes.
        base: codes of an earlier change.
        tail: codes added since.
        base_seq: that earlier change.
        alive: bool (len(base) + len(tail),), which of them are still there; None where all are.
    """

    seq: int
    token: str
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

    def after(self, seq: int, *, token: str, removed: IntArray, rows: IntArray, words: WordArray) -> View:
        """The view at a later change, given the ranges of rows removed since, and the rows added with their words."""
        tail = self.tail
        if len(rows):
            joined = np.concatenate((tail.rows, rows)), np.concatenate((tail.words, words))
            tail = Segment.of(*joined, bits=self.generation.bits, engine=type(tail.index))
        if self.alive is None and not len(removed):
            return replace(self, seq=seq, token=token, tail=tail)
        known = np.ones(len(self), dtype=np.bool_) if self.alive is None else self.alive
        alive = np.concatenate((known, np.ones(len(rows), dtype=np.bool_)))
        later = replace(self, seq=seq, token=token, tail=tail, alive=alive)
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


_log = logging.getLogger("rmsh.library")


class Views:
    """The newest view of each modality.

    Args:
        folder: of the library.
        engine: which index searches the codes.
        warnings: where damaged codes are reported.
    """

    def __init__(self, folder: Path, *, engine: type[StoredIndex], warnings: Warnings) -> None:
        self._folder = folder
        self._warnings = warnings
        self._engine = engine
        self._newest: dict[Modality, View] = {}
        self._turn = threading.Lock()

    def at(self, connection: sqlite3.Connection, modality: Modality) -> View:
        """The view of what a connection sees; its transaction may be restarted."""
        view = self._newest.get(modality)
        seq = last_change(connection)
        if view is not None and _is_of(view, connection, seq):
            return view
        with self._turn:
            view = self._newest.get(modality)
            if view is not None and view.seq >= seq:
                # Either another thread has seen a later state, or the database was restored from a backup. Views are
                # replaced under this lock only, so a transaction that starts now sees at least what they show.
                connection.rollback()
                connection.execute("BEGIN")
                seq = last_change(connection)
            if view is None or not _is_of(view, connection, seq):
                view = self._newest[modality] = self._advanced(view, connection, modality, seq)
            return view

    def _advanced(self, view: View | None, connection: sqlite3.Connection, modality: Modality, seq: int) -> View:
        if view is None or not _leads_to(view, connection, seq) or self._outgrown(view, connection):
            view = self._loaded(connection, modality, seq)
        removed = ranges_removed(connection, view.seq)
        rows, words = self._added(connection, modality, generation=view.generation, after=view.last_row)
        return view.after(seq, token=change_token(connection, seq), removed=removed, rows=rows, words=words)

    def _outgrown(self, view: View, connection: sqlite3.Connection) -> bool:
        """Whether much has changed since the base of a view, and there is a newer snapshot to be the next base."""
        if not is_stale(view.behind, len(view.base.rows)):
            return False
        try:
            snapshot = open_snapshot(self._folder, connection)
        except FormatError:
            return False
        return snapshot is not None and snapshot.stamp.seq > view.base_seq

    def _loaded(self, connection: sqlite3.Connection, modality: Modality, seq: int) -> View:
        """A first view: of the snapshot, or of now."""
        generation = generation_of(connection)
        empty = Segment.of(*_nothing(generation), bits=generation.bits, engine=self._engine)
        try:
            snapshot = open_snapshot(self._folder, connection)
            if snapshot is not None:
                arrays = snapshot.arrays(modality)
                base = Segment.of(*arrays, bits=generation.bits, engine=self._engine)
                stamp = snapshot.stamp
                return View(stamp.seq, stamp.token, generation, base, empty, base_seq=stamp.seq)
        except FormatError as error:
            _log.warning("%s; the codes are read from the database instead", error)
        arrays = self._added(connection, modality, generation=generation, after=0)
        base = Segment.of(*arrays, bits=generation.bits, engine=self._engine)
        return View(seq, change_token(connection, seq), generation, base, empty, base_seq=seq)

    def _added(
        self, connection: sqlite3.Connection, modality: Modality, *, generation: Generation, after: int
    ) -> tuple[IntArray, WordArray]:
        """Rows and words after a row, without those that are damaged."""

        def warn(row: int) -> None:
            self._warnings.about([damaged_code(connection, row)])

        blocks = [
            (rows, to_words(packed))
            for rows, packed in code_blocks(connection, modality, generation=generation, after=after, on_damage=warn)
        ]
        rows, words = zip(*[_nothing(generation), *blocks], strict=True)
        return np.concatenate(rows), np.concatenate(words)


def _is_of(view: View, connection: sqlite3.Connection, seq: int) -> bool:
    """Whether a view shows the state after a change, which is the last one."""
    return view.seq == seq and view.token == change_token(connection, seq)


def _leads_to(view: View, connection: sqlite3.Connection, seq: int) -> bool:
    """Whether the log tells how to get from a view to the state after a change.

    The database may have been restored from a backup: the token shows whether its history includes that of the view.
    """
    return view.seq <= seq and view.token == change_token(connection, view.seq) and log_reaches(connection, view.seq)


def open_snapshot(folder: Path, connection: sqlite3.Connection) -> Snapshot | None:
    """The snapshot of a library, or None where there is none, or one of another state than the log goes back to.

    Raises:
        FormatError: it is damaged.
    """
    try:
        snapshot = Snapshot(folder / SNAPSHOT)
    except OSError:
        return None
    return snapshot if snapshot.shows(connection) else None


def _nothing(generation: Generation) -> tuple[IntArray, WordArray]:
    return np.empty(0, dtype=np.int64), np.empty((0, -(-generation.bits // 64)), dtype=np.uint64)
