"""Views: the codes of one modality after one change, ready for searching.

A view never changes; a newer state is a new view. Its base is the snapshot, memory-mapped and shared by all views that
follow from it; its tail holds the codes added since; a mask shows which rows still exist. Rows increase through base
and tail, so equal distances are ordered by row. Without a usable snapshot, the base is read from the database.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.codes import to_words
from rmsh.core.errors import FormatError
from rmsh.index.base import FAR, ROW_BITS, check_k, to_hits, to_neighbours
from rmsh.library.queries import (
    change_token,
    code_blocks,
    damaged_codes_message,
    generation_of,
    last_change,
    log_covers,
    ranges_removed,
)
from rmsh.library.snapshot import is_stale, open_snapshot

if TYPE_CHECKING:
    from rmsh.codes import Codes
    from rmsh.core.types import BitArray, IntArray, Modality, WordArray
    from rmsh.index.base import Hits, Neighbours
    from rmsh.index.store import StoredIndex
    from rmsh.library.queries import Generation

_FEW_REMOVED = 1024

_log = logging.getLogger("rmsh.library")


@dataclass(frozen=True, eq=False)
class Segment:
    """Consecutive codes: rows, int64 (n,) increasing, words, uint64 (n, width), and an index of the words."""

    rows: IntArray
    words: WordArray
    index: StoredIndex

    @classmethod
    def of(cls, rows: IntArray, words: WordArray, *, bits: int, engine: type[StoredIndex]) -> Segment:
        """Index words without copying them."""
        return cls(rows, words, engine.over(words, bits))

    def keys(self, hits: Hits | Neighbours) -> IntArray:
        """Hits of the index as sort keys of distance and library row (see index/base.py)."""
        keys: IntArray = hits.distances.astype(np.int64) << ROW_BITS | self.rows[hits.rows]
        return keys

    def positions(self, rows: IntArray) -> IntArray:
        """The positions of some increasing rows in this segment; other rows are ignored."""
        at = np.searchsorted(self.rows, rows)
        inside = at < len(self.rows)
        found: IntArray = at[inside][self.rows[at[inside]] == rows[inside]]
        return found

    def nearest(self, codes: Codes, k: int, *, alive: BitArray | None, where: BitArray | None) -> IntArray:
        """Keys of the k nearest codes that pass both masks, int64 (queries, at most k), unsorted.

        An index is much faster without a mask. As long as few rows were removed, it therefore returns so many more
        hits, and the removed ones are dropped afterwards.
        """
        removed = 0 if alive is None else int(np.count_nonzero(~alive))
        if where is None and removed <= _FEW_REMOVED:
            hits = self.index.search(codes, k + removed)
            if alive is None or not removed:
                return self.keys(hits)
            keys = np.where(alive[hits.rows], self.keys(hits), FAR)
            return np.sort(keys, axis=1)[:, : min(k, alive.size - removed)]
        masks = [mask for mask in (alive, where) if mask is not None]
        return self.keys(self.index.search(codes, k, where=np.logical_and.reduce(masks)))


@dataclass(frozen=True, eq=False)
class View:
    """The codes of one modality after one change."""

    seq: int  # number of the change
    token: str  # token of the change
    generation: Generation
    base: Segment  # codes after an earlier change
    tail: Segment  # codes added since
    base_seq: int  # number of that earlier change
    alive: BitArray | None = None  # bool (len(base) + len(tail),): which rows still exist; None if all do

    def __len__(self) -> int:
        return len(self.base.rows) + len(self.tail.rows)

    @property
    def last_row(self) -> int:
        """The last row, 0 if there is none."""
        return int(max(self.base.rows[-1:].sum(), self.tail.rows[-1:].sum()))

    @property
    def behind(self) -> int:
        """The number of rows added or removed since the base."""
        removed = 0 if self.alive is None else int(np.count_nonzero(~self.alive))
        return len(self.tail.rows) + removed

    def after(self, seq: int, *, token: str, removed: IntArray, rows: IntArray, words: WordArray) -> View:
        """The view after a later change, given the ranges of removed rows and the added rows with their words."""
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

    def mask_of(self, rows: Iterable[IntArray]) -> BitArray:
        """A mask over the codes of this view that admits some rows, given in increasing blocks."""
        mask = np.zeros(len(self), dtype=np.bool_)
        for block in rows:
            for part, segment in zip(self._split(mask), (self.base, self.tail), strict=True):
                part[segment.positions(block)] = True
        return mask

    def _split(self, mask: BitArray) -> tuple[BitArray, BitArray]:
        """The parts of a mask that belong to the base and to the tail."""
        return mask[: len(self.base.rows)], mask[len(self.base.rows) :]

    def _parts(self, where: BitArray | None) -> list[tuple[Segment, BitArray | None, BitArray | None]]:
        """Base and tail, each with its parts of the two masks: existing rows, and rows that pass the filter."""
        alive, admitted = ((None, None) if mask is None else self._split(mask) for mask in (self.alive, where))
        return list(zip((self.base, self.tail), alive, admitted, strict=True))

    def search(self, codes: Codes, k: int, *, where: BitArray | None = None) -> Hits:
        """The k nearest rows of each query that pass a mask."""
        check_k(k)
        found = [segment.nearest(codes, k, alive=alive, where=mask) for segment, alive, mask in self._parts(where)]
        return to_hits(np.sort(np.concatenate(found, axis=1), axis=1)[:, :k])

    def within(self, codes: Codes, radius: int, *, where: BitArray | None = None) -> Neighbours:
        """All rows within a distance of ``radius`` of each query that pass a mask."""
        owners, keys = [], []
        for segment, alive, admitted in self._parts(where):
            near = segment.index.within(codes, radius, where=admitted)
            existing = slice(None) if alive is None else alive[near.rows]
            owners.append(np.repeat(np.arange(len(codes)), np.diff(near.offsets))[existing])
            keys.append(segment.keys(near)[existing])
        return to_neighbours(np.concatenate(owners), np.concatenate(keys), queries=len(codes))


class DamageLog:
    """Logs each message about a damaged item once."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def warn(self, messages: Iterable[str]) -> None:
        """Log the messages that are new."""
        for message in messages:
            if message not in self._known:
                self._known.add(message)
                _log.warning("%s Until then, results do not include it.", message)


class Views:
    """The newest view of each modality."""

    def __init__(self, folder: Path, *, engine: type[StoredIndex], damage: DamageLog) -> None:
        self._folder = folder
        self._engine = engine
        self._damage = damage
        self._newest: dict[Modality, View] = {}
        self._lock = threading.Lock()

    def at(self, connection: sqlite3.Connection, modality: Modality) -> View:
        """The view of the state that a connection sees; its transaction may be restarted."""
        view = self._newest.get(modality)
        seq = last_change(connection)
        if view is not None and _is_current(view, connection, seq):
            return view
        with self._lock:
            view = self._newest.get(modality)
            if view is not None and view.seq >= seq:
                # Either another thread has seen a later state, or the database was restored from a backup. Views are
                # replaced only under this lock, so a transaction that starts now sees at least their state.
                connection.rollback()
                connection.execute("BEGIN")
                seq = last_change(connection)
            if view is None or not _is_current(view, connection, seq):
                view = self._newest[modality] = self._advance(view, connection, modality, seq)
            return view

    def _advance(self, view: View | None, connection: sqlite3.Connection, modality: Modality, seq: int) -> View:
        if view is None or not _can_advance(view, connection, seq) or self._has_newer_base(view, connection):
            view = self._load(connection, modality, seq)
        removed = ranges_removed(connection, view.seq)
        rows, words = self._read(connection, modality, after=view.last_row)
        return view.after(seq, token=change_token(connection, seq), removed=removed, rows=rows, words=words)

    def _has_newer_base(self, view: View, connection: sqlite3.Connection) -> bool:
        """Whether much has changed since the base of a view, and there is a newer snapshot."""
        if not is_stale(view.behind, len(view.base.rows)):
            return False
        try:
            snapshot = open_snapshot(self._folder, connection)
        except FormatError:
            return False
        return snapshot is not None and snapshot.stamp.seq > view.base_seq

    def _load(self, connection: sqlite3.Connection, modality: Modality, seq: int) -> View:
        """A view of the snapshot, or else of the current state."""
        generation = generation_of(connection)
        arrays, token = None, change_token(connection, seq)
        try:
            snapshot = open_snapshot(self._folder, connection)
            if snapshot is not None:
                arrays = snapshot.arrays(modality)
                seq, token = snapshot.stamp.seq, snapshot.stamp.token
        except FormatError as error:
            _log.warning("%s; the codes are read from the database instead", error)
        if arrays is None:
            arrays = self._read(connection, modality, after=0)
        base = Segment.of(*arrays, bits=generation.bits, engine=self._engine)
        tail = Segment.of(*_no_codes(generation), bits=generation.bits, engine=self._engine)
        return View(seq, token, generation, base, tail, base_seq=seq)

    def _read(self, connection: sqlite3.Connection, modality: Modality, *, after: int) -> tuple[IntArray, WordArray]:
        """Rows greater than ``after`` and their words, from the database, without damaged ones."""

        def warn(row: int) -> None:
            self._damage.warn([damaged_codes_message(connection, row)])

        generation = generation_of(connection)
        blocks = [
            (rows, to_words(packed))
            for rows, packed in code_blocks(connection, modality, generation=generation, after=after, on_damage=warn)
        ]
        rows, words = zip(*[_no_codes(generation), *blocks], strict=True)
        return np.concatenate(rows), np.concatenate(words)


def _is_current(view: View, connection: sqlite3.Connection, seq: int) -> bool:
    """Whether a view shows the state after the last change, whose number is ``seq``."""
    return view.seq == seq and view.token == change_token(connection, seq)


def _can_advance(view: View, connection: sqlite3.Connection, seq: int) -> bool:
    """Whether the log leads from a view to the last change.

    The database may have been restored from a backup: the token shows whether its history includes that of the view.
    """
    return view.seq <= seq and view.token == change_token(connection, view.seq) and log_covers(connection, view.seq)


def _no_codes(generation: Generation) -> tuple[IntArray, WordArray]:
    return np.empty(0, dtype=np.int64), np.empty((0, -(-generation.bits // 64)), dtype=np.uint64)
