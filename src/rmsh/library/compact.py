"""Compacting a library: what nobody needs any more goes, the snapshot is of now, the files are small again."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from rmsh.library.folder import settle, write_manifest
from rmsh.library.reading import generation_of
from rmsh.library.snapshot import SNAPSHOT, Snapshot
from rmsh.library.verify import texts_agree

if TYPE_CHECKING:
    from rmsh.library.library import Library

__all__ = ["compact"]

_NEEDLESS = (
    "DELETE FROM codes WHERE generation < (SELECT generation FROM library)",
    "DELETE FROM generations WHERE generation < (SELECT generation FROM library)",
    "DELETE FROM labels WHERE NOT EXISTS (SELECT 1 FROM item_labels WHERE item_labels.label = labels.label)",
)


def compact(library: Library) -> None:
    """Drop codes of older models and labels of no item, shorten the log, write the snapshot, give space back.

    A recoding that is not finished keeps its codes. Every step is whole by itself, and may be the last one before a
    power cut.

    Raises:
        InputError: the library is open for reading only.
        RmshError: the disk is full, or another writer does not finish; nothing is lost.
    """
    with library.transaction() as connection:
        settle(library.folder, generation_of(connection))
        write_manifest(library.folder, connection)
        for statement in _NEEDLESS:
            connection.execute(statement)
        way = "optimize" if texts_agree(connection) else "rebuild"
        connection.execute("INSERT INTO texts (texts) VALUES (?)", (way,))
        for unfinished in library.folder.glob(".*.tmp"):  # left by who was killed
            with suppress(OSError):
                unfinished.unlink()
    library.write_snapshot()
    with library.transaction() as connection:
        # The change the snapshot is of stays: by its token the snapshot is known.
        connection.execute("DELETE FROM changes WHERE seq < ?", (Snapshot(library.folder / SNAPSHOT).stamp.seq,))
    with library.maintenance() as connection:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
