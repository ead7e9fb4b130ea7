"""Keeping views up to date: the first comes from the snapshot, or from the database where that cannot serve."""

from __future__ import annotations

import logging
import sqlite3
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.codes import to_words
from rmsh.errors import FormatError
from rmsh.library.reading import Generation, code_blocks, generation_of, last_change, log_reaches, ranges_removed
from rmsh.library.snapshot import SNAPSHOT, Snapshot, is_stale
from rmsh.library.view import Segment, View

if TYPE_CHECKING:
    from rmsh.index.stored import StoredIndex
    from rmsh.types import IntArray, Modality, WordArray

__all__ = ["Views", "open_snapshot"]

_log = logging.getLogger("rmsh.library")


class Views:
    """The newest view of each modality.

    Args:
        folder: of the library.
        engine: which index searches the codes.
    """

    def __init__(self, folder: Path, *, engine: type[StoredIndex]) -> None:
        self._folder = folder
        self._engine = engine
        self._newest: dict[Modality, View] = {}
        self._turn = threading.Lock()

    def at(self, connection: sqlite3.Connection, modality: Modality) -> View:
        """The view of what a connection sees; it may begin its transaction anew."""
        while True:
            seq = last_change(connection)
            view = self._newest.get(modality)
            if view is not None and view.seq == seq:
                return view
            with self._turn:
                view = self._newest.get(modality)
                if view is None or view.seq < seq:
                    view = self._newest[modality] = self._advanced(view, connection, modality, seq)
            if view.seq == seq:
                return view
            connection.rollback()  # another thread has seen a later state: see it too
            connection.execute("BEGIN")

    def _advanced(self, view: View | None, connection: sqlite3.Connection, modality: Modality, seq: int) -> View:
        if view is None or not log_reaches(connection, view.seq) or self._outgrown(view, connection):
            view = self._loaded(connection, modality, seq)
        removed = ranges_removed(connection, view.seq)
        rows, words = _added(connection, modality, generation=view.generation, after=view.last_row)
        return view.after(seq, removed=removed, rows=rows, words=words)

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
                return View(snapshot.stamp.seq, generation, base, empty, base_seq=snapshot.stamp.seq)
        except FormatError as error:
            _log.warning("%s; the codes are read from the database instead", error)
        arrays = _added(connection, modality, generation=generation, after=0)
        base = Segment.of(*arrays, bits=generation.bits, engine=self._engine)
        return View(seq, generation, base, empty, base_seq=seq)


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


def _added(
    connection: sqlite3.Connection, modality: Modality, *, generation: Generation, after: int
) -> tuple[IntArray, WordArray]:
    blocks = [
        (rows, to_words(packed))
        for rows, packed in code_blocks(connection, modality, generation=generation, after=after)
    ]
    rows, words = zip(*[_nothing(generation), *blocks], strict=True)
    return np.concatenate(rows), np.concatenate(words)


def _nothing(generation: Generation) -> tuple[IntArray, WordArray]:
    return np.empty(0, dtype=np.int64), np.empty((0, -(-generation.bits // 64)), dtype=np.uint64)
