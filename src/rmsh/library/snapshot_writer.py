"""Keeping the snapshot near the truth: it is written anew where it is missing, damaged, or too many rows behind."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from rmsh.core.errors import FormatError, RmshError
from rmsh.core.types import MODALITIES
from rmsh.library.snapshot import SNAPSHOT, is_stale, write_snapshot
from rmsh.library.views import open_snapshot

if TYPE_CHECKING:
    from rmsh.library.database import Readers

_log = logging.getLogger("rmsh.library")


class SnapshotKeeper:
    """Writes the snapshot of a library that is open for writing.

    Args:
        folder: of the library.
        readers: connections to see the database by.
    """

    def __init__(self, folder: Path, readers: Readers) -> None:
        self._folder = folder
        self._readers = readers
        self._damaged = False
        self._count, self._behind = self._measured()
        if self._damaged:
            self.renew()
        else:
            self.changed(0)

    def _measured(self) -> tuple[int, int]:
        """How many rows the snapshot has, and by how many it is behind; every bit of it is checked."""
        with self._readers.reading() as connection:
            try:
                snapshot = open_snapshot(self._folder, connection)
                if snapshot is not None:
                    count = max(len(snapshot.arrays(modality)[0]) for modality in MODALITIES)
                    behind = "SELECT coalesce(sum(last - first + 1), 0) FROM changes WHERE seq > ?"
                    return count, int(connection.execute(behind, (snapshot.stamp.seq,)).fetchone()[0])
            except FormatError as error:
                _log.warning("%s; it is rewritten", error)
                self._damaged = True
            return 0, int(connection.execute("SELECT coalesce(max(row), 0) FROM items").fetchone()[0])

    def changed(self, rows: int) -> None:
        """Take note that rows were added or removed, and write the snapshot where it has fallen behind."""
        self._behind += rows
        if is_stale(self._behind, self._count):
            self.renew()

    def renew(self) -> None:
        """Write the snapshot; where that fails, the database serves, and it is tried again after as many changes."""
        self._behind = 0
        try:
            self.write()
        except RmshError as error:
            _log.warning("the snapshot could not be written: %s", error)

    def write(self) -> None:
        """Write the snapshot.

        Raises:
            RmshError: it cannot be written; the old one is still there.
        """
        with self._readers.reading() as connection:
            self._count = write_snapshot(self._folder / SNAPSHOT, connection)
        self._behind = 0
