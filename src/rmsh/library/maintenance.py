"""Maintenance of a library: compact it, describe it, upgrade it from an older format."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rmsh.core.errors import FormatError, InputError
from rmsh.core.types import Store
from rmsh.data.records import folder_name, locate
from rmsh.library import queries, schema
from rmsh.library.database import DATABASE, connect_writer, translate_errors, write_acknowledged
from rmsh.library.folder import image_folders, set_folder, update_files
from rmsh.library.snapshot import SNAPSHOT, Snapshot, open_snapshot
from rmsh.library.verify import find_damage, is_text_index_intact

if TYPE_CHECKING:
    from rmsh.library.library import Library

_COUNTS = {
    "items": "SELECT count(*) FROM items",
    "labels": "SELECT count(*) FROM labels",
    "image codes": "SELECT count(image) FROM codes JOIN library USING (generation)",
    "text codes": "SELECT count(text) FROM codes JOIN library USING (generation)",
    "codes kept of older models": "SELECT count(*) FROM codes WHERE generation < (SELECT generation FROM library)",
    "codes ready of the next model": "SELECT count(*) FROM codes WHERE generation > (SELECT generation FROM library)",
}
_VECTOR_COUNTS = {
    "image vectors": "SELECT count(image) FROM vectors JOIN library USING (generation)",
    "text vectors": "SELECT count(text) FROM vectors JOIN library USING (generation)",
}


def compact(library: Library) -> None:
    """Delete codes of older models and unused labels, shorten the log, write the snapshot, and shrink the files.

    The codes of an unfinished recoding are kept. Each step is complete in itself and safe to interrupt. A damaged
    database raises FormatError; the snapshot, which may have the only intact copy, is then not overwritten.
    """
    with library.transaction() as connection:
        for message in find_damage(library.folder, connection).messages:
            raise FormatError(message)
        update_files(library.folder, connection)
        for table in ("codes", "vectors", "generations"):
            connection.execute(f"DELETE FROM {table} WHERE generation < (SELECT generation FROM library)")  # noqa: S608
        used = "SELECT 1 FROM item_labels WHERE item_labels.label = labels.label"
        connection.execute(f"DELETE FROM labels WHERE NOT EXISTS ({used})")  # noqa: S608
        command = "optimize" if is_text_index_intact(connection) else "rebuild"
        connection.execute("INSERT INTO texts (texts) VALUES (?)", (command,))
        for unfinished in library.folder.glob(".*.tmp"):  # left by a killed process
            with suppress(OSError):
                unfinished.unlink()
    library.write_snapshot()
    with library.transaction() as connection:
        # The change of the snapshot remains in the log, because its token identifies the snapshot.
        connection.execute("DELETE FROM changes WHERE seq < ?", (Snapshot(library.folder / SNAPSHOT).stamp.seq,))
    with library.maintenance() as connection:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@dataclass(frozen=True)
class Description:
    """The contents of a library."""

    id: str
    format: int  # version of the files
    model: str  # fingerprint of the model
    bits: int
    generation: int  # 1, plus the number of times the library was recoded
    source: str | None  # folder of the images; None for the folder of the library
    folders: dict[str, str]  # all image folders by name, the first one as ""
    store: Store  # whether vectors are stored next to the codes
    bytes_per_item: dict[str, float]  # of codes and of vectors, on average
    changes: int  # number of the last change
    counts: dict[str, int]
    snapshot: str  # whether the snapshot is in use, and if not, why
    bytes: dict[str, int]  # file sizes


def describe(library: Library) -> Description:
    """Describe a library; counting reads the whole database."""
    with library.reading() as connection:
        generation, facts = queries.generation_of(connection), queries.facts_of(connection)
        seq, _ = queries.last_change(connection)
        counts = _COUNTS | (_VECTOR_COUNTS if queries.has_vectors(connection) else {})
        files = sorted(path for path in library.folder.rglob("*") if path.is_file())
        return Description(
            id=facts.id,
            format=schema.VERSION,
            model=generation.fingerprint,
            bits=generation.bits,
            generation=generation.number,
            source=facts.source,
            folders={name: str(path) for name, path in image_folders(connection, library.folder).items()},
            store=facts.store,
            bytes_per_item=bytes_per_item(connection),
            changes=seq,
            counts={name: int(connection.execute(sql).fetchone()[0]) for name, sql in counts.items()},
            snapshot=_snapshot_state(library, connection, seq),
            bytes={path.relative_to(library.folder).as_posix(): path.stat().st_size for path in files},
        )


def bytes_per_item(connection: sqlite3.Connection) -> dict[str, float]:
    """The average size of the codes and of the vectors of an item."""
    size = "SELECT total(length(image)) + total(length(text)) FROM {} JOIN library USING (generation)"
    items = max(queries.count_items(connection), 1)
    return {table: connection.execute(size.format(table)).fetchone()[0] / items for table in ("codes", "vectors")}


def _snapshot_state(library: Library, connection: sqlite3.Connection, seq: int) -> str:
    try:
        snapshot = open_snapshot(library.folder, connection)
    except FormatError:
        return "damaged; codes are read from the database"
    if snapshot is None:
        other = "of another state" if (library.folder / SNAPSHOT).exists() else "none"
        return f"{other}; codes are read from the database"
    return "up to date" if snapshot.stamp.seq == seq else f"{seq - snapshot.stamp.seq:,} changes behind"


def upgrade(folder: Path, *, timeout: float = 30.0) -> tuple[int, int]:
    """Upgrade a library in place, rewrite its manifest if necessary, and return the format before and after."""
    if not (folder / DATABASE).is_file():
        raise FormatError(f"{folder} has no {DATABASE}, which contains the items; give the folder of a library.")
    with translate_errors(folder), closing(connect_writer(folder, timeout=timeout)) as connection:
        connection.execute("BEGIN IMMEDIATE")  # all or nothing, even if the process is killed
        version = schema.version_of(connection, folder)
        try:
            schema.migrate(connection, version)
        except sqlite3.OperationalError as error:
            if "user-defined function" not in str(error):
                raise
            raise FormatError(f"The database of the library {folder} has a damaged value; {schema.RESTORE}.") from error
        update_files(folder, connection)
        connection.execute("COMMIT")
        write_acknowledged(folder, *queries.last_change(connection))
    return version, schema.VERSION


def relocate(library: Library, folder: Path) -> tuple[int, int]:
    """Name the new place of an image folder; returns how many images are there, and how many are expected.

    Of several folders, it is the one with most images there; a folder that is missing comes first.

    Raises:
        InputError: the library keeps its own images, or none of them is in the folder.
    """
    with library.reading() as connection:
        folders = image_folders(connection, library.folder)
        if not folders:
            raise InputError(f"The library {library.folder} keeps its own images, which move with it.")
        pictures = [name for (name,) in connection.execute("SELECT picture FROM items WHERE picture IS NOT NULL")]
    images: dict[str, list[str]] = {name: [] for name in folders}
    for picture in pictures:
        images[folder_name(picture, folders)].append(picture)
    present = {
        name: sum(locate(picture, folder, {name: folder} if name else {})[1].is_file() for picture in images[name])
        for name in folders
    }
    chosen = max(folders, key=lambda name: (present[name] > 0, not folders[name].exists(), present[name]))
    if pictures and not present[chosen]:
        some = f"{len(pictures):,} images of the library {library.folder}, such as {pictures[0]}"
        raise InputError(f"{folder} has none of the {some}; give the folder that contains them.")
    with library.transaction() as connection:
        set_folder(connection, library.folder, chosen, folder)
    return present[chosen], len(images[chosen])
