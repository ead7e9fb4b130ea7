"""Views: the codes of one modality after one change, ready for searching.

A view never changes; a newer state is a new view. Its base is the snapshot, memory-mapped and shared by all views that
follow from it, with a mask of the rows that still exist; its tail holds the codes added since. Rows increase through
base and tail, so equal distances are ordered by row. Without a usable snapshot, the base is read from the database.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.codes import to_words
from rmsh.core.errors import FormatError
from rmsh.core.types import MODALITIES
from rmsh.index.base import FAR, check_k, to_hits, to_keys
from rmsh.index.scan import Scan
from rmsh.library import queries
from rmsh.library.items import KeptWords
from rmsh.library.snapshot import is_stale, open_snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.codes import Codes
    from rmsh.core.types import BitArray, IntArray, Modality, WordArray
    from rmsh.index.base import Hits
    from rmsh.library.queries import Generation, LabelEntry
    from rmsh.library.snapshot import Snapshot

_FEW_REMOVED = 1024
_MOST_LABELLED = 1 << 22  # rows of labels that are kept in memory
_KEPT = 1 << 17  # rows whose vectors and words are kept in memory: at most 96 MB with the default model

_log = logging.getLogger("rmsh.library")


@dataclass(frozen=True, eq=False)
class Segment:
    """Consecutive codes: rows, int64 (n,) increasing, words, uint64 (n, width), and an index of the words."""

    rows: IntArray
    words: WordArray
    index: Scan
    alive: BitArray | None = None  # bool (n,): which rows still exist; None if all do

    @property
    def removed(self) -> int:
        """The number of rows that do not exist any more."""
        return 0 if self.alive is None else int(np.count_nonzero(~self.alive))

    def places(self, rows: IntArray) -> IntArray:
        """Where rows are in this segment, or would be."""
        first, last = (int(self.rows[end]) for end in (0, -1)) if len(self.rows) else (0, 0)
        if last - first == len(self.rows) - 1:  # without gaps, as long as nothing is removed
            return np.clip(rows - first, 0, len(self.rows))
        return np.searchsorted(self.rows, rows)

    def keys(self, hits: Hits) -> IntArray:
        """Hits of the index as sort keys of distance and library row (see index/base.py)."""
        return to_keys(self.rows[hits.rows], hits.distances)

    def nearest(self, codes: Codes, k: int, where: BitArray | None) -> IntArray:
        """Keys of the k nearest existing codes that pass a mask, int64 (queries, at most k), unsorted.

        An index is much faster without a mask. As long as few rows were removed, it therefore returns as many more
        hits, and the removed ones are dropped afterwards.
        """
        if self.alive is None or where is not None or (removed := self.removed) > _FEW_REMOVED:
            mask = where if self.alive is None else self.alive if where is None else self.alive & where
            return self.keys(self.index.search(codes, k, where=mask))
        hits = self.index.search(codes, k + removed)
        keys = np.where(self.alive[hits.rows], self.keys(hits), FAR)
        return np.sort(keys, axis=1)[:, : min(k, self.alive.size - removed)]


class KeptVectors:
    """Vectors that were compared before: reading and checking those of 600 rows takes longer than the rest of a search.

    Every row has one place, which another row may take. The vectors of a row never change within one history.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows = np.zeros(_KEPT, dtype=np.int64)  # the row at each place; 0, which is never a row, if there is none
        self._vectors: dict[Modality, NDArray[np.int8]] = {}  # (_KEPT, dimensions)

    def of(
        self, rows: IntArray, read: Callable[[list[int]], Mapping[Modality, Mapping[int, bytes]]]
    ) -> dict[Modality, NDArray[np.int8]]:
        """Vectors (n, dimensions) of distinct rows, zeros for those without one; ``read`` returns those not kept."""
        places, found = rows % _KEPT, {}
        with self._lock:
            known = self._rows[places] == rows
            kept = {modality: vectors.take(places, axis=0) for modality, vectors in self._vectors.items()}
        if known.all():
            return {modality: kept.get(modality, np.zeros((len(rows), 0), np.int8)) for modality in MODALITIES}
        missing = rows[~known].tolist()
        for modality, vectors in read(missing).items():
            new = queries.stack_vectors(missing, vectors)
            found[modality] = kept.get(modality, np.zeros((len(rows), new.shape[1]), np.int8))
            found[modality][~known] = new if new.size else 0
        present = ~known & np.logical_or.reduce([vectors.any(axis=1) for vectors in found.values()])
        with self._lock:
            self._rows[places[present]] = rows[present]
            for modality, stacked in found.items():
                if modality not in self._vectors and stacked.size:
                    self._vectors[modality] = np.zeros((_KEPT, stacked.shape[1]), np.int8)
                if stacked.size:
                    self._vectors[modality][places[present]] = stacked[present]
        return found


@dataclass(frozen=True, eq=False)
class View:
    """The codes of one modality after one change."""

    seq: int  # number of the change
    token: str  # token of the change
    generation: Generation
    base: Segment  # codes after an earlier change
    tail: Segment  # codes added since that still exist
    base_seq: int  # number of that earlier change
    mapped: Snapshot | None = None  # contains the base, unless that is in memory
    vectors: KeptVectors = field(default_factory=KeptVectors)  # shared by all views that follow from one
    words: KeptWords = field(default_factory=lambda: KeptWords(_KEPT))  # likewise

    def is_valid(self) -> bool:
        """Whether the mapped file is as it was when its checksums were compared."""
        return self.mapped is None or self.mapped.is_unchanged()

    def __len__(self) -> int:
        return len(self.base.rows) + len(self.tail.rows)

    def _segments(self, mask: BitArray | None) -> Iterator[tuple[Segment, BitArray | None]]:
        """Base and tail, each with its part of a mask."""
        size = len(self.base.rows)
        yield self.base, None if mask is None else mask[:size]
        yield self.tail, None if mask is None else mask[size:]

    def rows(self) -> IntArray:
        """The rows of all codes that exist, int64 (n,) increasing."""
        alive = slice(None) if self.base.alive is None else self.base.alive
        return np.concatenate((self.base.rows[alive], self.tail.rows))

    def mask_of(self, rows: Iterable[IntArray]) -> BitArray:
        """A mask over the codes of this view that admits some rows, given in increasing blocks."""
        mask = np.zeros(len(self), dtype=np.bool_)
        for block in rows:
            for segment, part in self._segments(mask):
                at = segment.places(block)
                inside = at < len(segment.rows)
                at, wanted = at[inside], block[inside]
                part[at[segment.rows[at] == wanted]] = True  # type: ignore[index]  # the mask is not None
        return mask

    def locate(self, rows: IntArray) -> tuple[IntArray, WordArray]:
        """Positions of rows in masks of this view, -1 for rows without a code, and their words, 0 for those."""
        places = np.full(len(rows), -1, dtype=np.int64)
        words = np.zeros((len(rows), self.base.words.shape[1]), dtype=np.uint64)
        for segment, offset in ((self.base, 0), (self.tail, len(self.base.rows))):
            if not len(segment.rows):
                continue
            at = segment.places(rows)
            found = np.flatnonzero(at < len(segment.rows))
            found = found[segment.rows[at[found]] == rows[found]]
            places[found], words[found] = at[found] + offset, segment.words[at[found]]
        return places, words

    def search(self, codes: Codes, k: int, *, where: BitArray | None = None) -> Hits:
        """The k nearest rows of each query that pass a mask."""
        check_k(k)
        found = [segment.nearest(codes, k, mask) for segment, mask in self._segments(where)]
        return to_hits(np.sort(np.concatenate(found, axis=1), axis=1)[:, :k])


class Views:
    """The newest view of each modality."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._newest: dict[Modality, View] = {}
        self._lock = threading.Lock()
        self._warned: set[str] = set()
        self._labels: tuple[tuple[int, str], Mapping[str, LabelEntry], dict[str, IntArray]] | None = None

    def warn(self, messages: Iterable[str]) -> None:
        """Log each message about damage once."""
        for message in messages:
            if message not in self._warned:
                self._warned.add(message)
                _log.warning("%s Until then, results do not include what is damaged.", message)

    def labels(self, connection: sqlite3.Connection) -> Mapping[str, LabelEntry]:
        """The labels in the state that a connection sees, read once per state; FormatError if they are damaged."""
        return self._labels_at(connection)[0]

    def rows_with_labels(self, connection: sqlite3.Connection, names: Iterable[str]) -> list[IntArray]:
        """The rows of each of some labels that exist, int64 (n,) increasing, read once per state while they are few."""
        labels, kept = self._labels_at(connection)
        found = []
        for label in (labels[name] for name in names if name in labels):
            if label.name not in kept:
                if sum(map(len, kept.values())) > _MOST_LABELLED:
                    kept.clear()
                blocks = [np.empty(0, dtype=np.int64), *queries.rows_of_label(connection, label)]
                kept[label.name] = np.concatenate(blocks)
            found.append(kept[label.name])
        return found

    def _labels_at(self, connection: sqlite3.Connection) -> tuple[Mapping[str, LabelEntry], dict[str, IntArray]]:
        """The labels in the state that a connection sees, and the rows of those that were used."""
        change = queries.last_change(connection)
        known = self._labels
        if known is None or known[0] != change:
            known = self._labels = change, queries.labels_by_name(connection), {}
        return known[1:]

    def at(self, connection: sqlite3.Connection, modality: Modality) -> View:
        """The view of the state that a connection sees; its transaction may be restarted."""
        view = self._newest.get(modality)
        change = queries.last_change(connection)
        if view is not None and (view.seq, view.token) == change and view.is_valid():
            return view
        with self._lock:
            view = self._newest.get(modality)
            if view is not None and not view.is_valid():
                _log.warning("the snapshot of %s was overwritten by another program; it is read again", self._folder)
                view = None
            if view is not None and view.seq >= change[0]:
                # Either another thread has seen a later state, or the database was restored from a backup. Views are
                # replaced only under this lock, so a transaction that starts now sees at least their state.
                connection.rollback()
                connection.execute("BEGIN")
                change = queries.last_change(connection)
            if view is None or (view.seq, view.token) != change:
                view = self._newest[modality] = self._advance(view, connection, modality)
            return view

    def _advance(self, view: View | None, connection: sqlite3.Connection, modality: Modality) -> View:
        """The view of the current state, from an earlier view if possible."""
        try:
            if view is None or not self._can_advance(view, connection):
                view = self._load(connection, modality)
            return self._with_changes(view, connection, modality)
        except FormatError as error:
            _log.warning("%s Until then, all codes are read from the database.", error)
            return self._load(connection, modality, with_snapshot=False)

    def _with_changes(self, view: View, connection: sqlite3.Connection, modality: Modality) -> View:
        """An earlier view with the changes since; FormatError if the log of changes is damaged."""
        base, tail = view.base, view.tail
        removed = queries.is_removed(connection, base.rows, since=view.seq)
        if removed.any():
            base = replace(base, alive=~removed if base.alive is None else base.alive & ~removed)
        last_row = max([*base.rows[-1:].tolist(), *tail.rows[-1:].tolist()], default=0)
        rows, words = self._read(connection, modality, after=last_row)
        kept = ~queries.is_removed(connection, tail.rows, since=view.seq)
        if len(rows) or not kept.all():
            words = np.concatenate((tail.words[kept], words))
            index = Scan.over(words, view.generation.bits)
            tail = Segment(np.concatenate((tail.rows[kept], rows)), words, index)
        seq, token = queries.last_change(connection)
        return replace(view, seq=seq, token=token, base=base, tail=tail)

    def _can_advance(self, view: View, connection: sqlite3.Connection) -> bool:
        """Whether the log leads from a view to the current state, unless much has changed and a newer snapshot exists.

        The database may have been restored from a backup: the token shows whether its history includes that of the
        view.
        """
        if not queries.has_change(connection, view.seq, view.token):
            return False
        if any(kind == "recode" for kind, _, _ in queries.changes_since(connection, view.seq)):
            return False
        if not is_stale(len(view.tail.rows) + view.base.removed, len(view.base.rows)):
            return True
        try:
            snapshot = open_snapshot(self._folder, connection)
        except FormatError:
            return True
        return snapshot is None or snapshot.stamp.seq <= view.base_seq

    def _load(self, connection: sqlite3.Connection, modality: Modality, *, with_snapshot: bool = True) -> View:
        """A view of the snapshot, or else of the current state."""
        generation, (seq, token) = queries.generation_of(connection), queries.last_change(connection)
        snapshot, arrays = None, None
        try:
            snapshot = open_snapshot(self._folder, connection) if with_snapshot else None
            if snapshot is not None:
                arrays = snapshot.arrays(modality)
                seq, token = snapshot.stamp.seq, snapshot.stamp.token
        except FormatError as error:
            _log.warning("%s; the codes are read from the database instead", error)
        rows, words = arrays or self._read(connection, modality, after=0)
        base = Segment(rows, words, Scan.over(words, generation.bits))
        tail = Segment(rows[:0], words[:0], Scan.over(words[:0], generation.bits))
        mapped = snapshot if arrays and snapshot is not None and snapshot.mapped is not None else None
        return View(seq, token, generation, base, tail, seq, mapped)

    def _read(self, connection: sqlite3.Connection, modality: Modality, *, after: int) -> tuple[IntArray, WordArray]:
        """Rows greater than ``after`` and their words, from the database, without damaged ones."""
        damaged: list[str] = []
        rows: list[IntArray] = [np.empty(0, dtype=np.int64)]
        words: list[WordArray] = [np.empty((0, -(-queries.generation_of(connection).bits // 64)), dtype=np.uint64)]
        for found, packed in queries.code_blocks(connection, modality, after=after, on_damage=damaged.append):
            rows.append(found)
            words.append(to_words(packed))
        self.warn(damaged)
        return np.concatenate(rows), np.concatenate(words)
