"""Compacting a library: what nobody needs any more goes, the snapshot is of now, the files are small again.

What a library holds: counts, sizes, whose codes, and the state of its snapshot.

Bringing a library of an older format to the present one, and putting back a manifest that was lost.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.core.errors import FormatError
from rmsh.core.types import MODALITIES
from rmsh.library import schema
from rmsh.library.damage import check_undamaged
from rmsh.library.database import DATABASE, connect_writer, explained
from rmsh.library.folder import settle, write_manifest
from rmsh.library.queries import generation_of, last_change
from rmsh.library.restoring import finish_restore
from rmsh.library.schema import VERSION
from rmsh.library.snapshot import SNAPSHOT, Snapshot
from rmsh.library.verify import texts_agree
from rmsh.library.views import open_snapshot

if TYPE_CHECKING:
    from rmsh.library.library import Library

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
        FormatError: the database is damaged; the snapshot, which may hold the only intact copy, is not overwritten.
        RmshError: the disk is full, or another writer does not finish; nothing is lost.
    """
    with library.transaction() as connection:
        check_undamaged(library.folder, connection)
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


_COUNTS = {
    "items": "SELECT count(*) FROM items",
    "labels": "SELECT count(*) FROM labels",
    "image codes": "SELECT count(image) FROM codes JOIN library USING (generation)",
    "text codes": "SELECT count(text) FROM codes JOIN library USING (generation)",
    "codes kept of older models": "SELECT count(*) FROM codes WHERE generation < (SELECT generation FROM library)",
    "codes ready of the next model": "SELECT count(*) FROM codes WHERE generation > (SELECT generation FROM library)",
}


@dataclass(frozen=True)
class Description:
    """What a library holds.

    Args:
        id: names the library.
        format: the version of its files.
        model: the fingerprint of the model that made its codes.
        bits: the length of a code.
        generation: how often it was given other codes, counted from 1.
        source: the folder of its pictures; None for its own.
        changes: the number of its last change.
        counts: how many there are of what.
        snapshot: whether the snapshot serves, and if not, why.
        bytes: the size of each file.
    """

    id: str
    format: int
    model: str
    bits: int
    generation: int
    source: str | None
    changes: int
    counts: dict[str, int]
    snapshot: str
    bytes: dict[str, int]


def describe(library: Library) -> Description:
    """Look at a library; counting reads the whole database."""
    with library.reading() as connection:
        name, source = connection.execute("SELECT id, source FROM library").fetchone()
        generation, seq = generation_of(connection), last_change(connection)
        counts = {what: int(connection.execute(sql).fetchone()[0]) for what, sql in _COUNTS.items()}
        snapshot = _snapshot_state(library, connection, seq)
    files = sorted(path for path in library.folder.rglob("*") if path.is_file())
    sizes = {path.relative_to(library.folder).as_posix(): path.stat().st_size for path in files}
    return Description(
        id=name,
        format=VERSION,
        model=generation.fingerprint,
        bits=generation.bits,
        generation=generation.number,
        source=source,
        changes=seq,
        counts=counts,
        snapshot=snapshot,
        bytes=sizes,
    )


def _snapshot_state(library: Library, connection: sqlite3.Connection, seq: int) -> str:
    try:
        snapshot = open_snapshot(library.folder, connection)
    except FormatError:
        return "damaged; codes are read from the database"
    if snapshot is None:
        other = "of another state" if (library.folder / SNAPSHOT).exists() else "none"
        return f"{other}; codes are read from the database"
    return "up to date" if snapshot.stamp.seq == seq else f"{seq - snapshot.stamp.seq:,} changes behind"


_WITH_CHECKSUMS = 2  # the first format whose rows have checksums


def upgrade(folder: Path, *, timeout: float = 30.0) -> tuple[int, int]:
    """Upgrade a library in place; one that is up to date stays as it is.

    Returns:
        The format it had, and the format it has.

    Raises:
        FormatError: it is no library, is damaged, or is of a newer rmsh.
    """
    finish_restore(folder)
    if not (folder / DATABASE).is_file():
        raise FormatError(
            f"{folder} has no {DATABASE}, which holds all items of a library; give the folder of a library."
        )
    with explained(folder), closing(connect_writer(folder, timeout=timeout)) as connection:
        connection.execute("BEGIN IMMEDIATE")  # everything or nothing, whenever the process is killed
        version = schema.version_of(connection, folder)
        if version < _WITH_CHECKSUMS:
            _correct_codes(folder, connection)
        try:
            schema.migrate(connection, version)
        except sqlite3.OperationalError as error:
            if "user-defined function" not in str(error):
                raise
            raise FormatError(
                f"The database of the library {folder} holds a value that cannot be read as it was written; restore a "
                "backup with `rmsh library restore`."
            ) from error
        settle(folder, generation_of(connection))
        write_manifest(folder, connection)
        connection.execute("COMMIT")
    return version, schema.VERSION


def _correct_codes(folder: Path, connection: sqlite3.Connection) -> None:
    """Take codes from an intact snapshot where they differ, so that no checksum is computed over a damaged code.

    Format 1 has no checksums in the database; those of the snapshot show which side is right, and rows never change.
    """
    try:
        snapshot = open_snapshot(folder, connection)
        arrays = {} if snapshot is None else {modality: snapshot.arrays(modality) for modality in MODALITIES}
    except FormatError:
        return
    generation = generation_of(connection)
    for modality, (rows, words) in arrays.items():
        packed = words.astype("<u8", copy=False).view(np.uint8)[:, : -(-generation.bits // 8)]
        connection.executemany(
            f"UPDATE codes SET {modality} = ?1 WHERE row = ?2 AND generation = ?3 AND {modality} IS NOT ?1",  # noqa: S608
            ((code.tobytes(), row, generation.number) for code, row in zip(packed, rows.tolist(), strict=True)),
        )
