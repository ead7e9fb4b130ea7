"""A copy of a library, made while others write to it, and verified before it gets its name."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from rmsh.core.errors import RmshError
from rmsh.core.files import atomic
from rmsh.library.database import DATABASE, connect_reader, connect_writer, explained
from rmsh.library.folder import MODEL, new_folder, write_manifest
from rmsh.library.queries import generation_of
from rmsh.library.snapshot import SNAPSHOT, write_snapshot
from rmsh.library.verify import verify

if TYPE_CHECKING:
    from rmsh.library.library import Library
    from rmsh.model import Model

__all__ = ["backup"]


def backup(library: Library, out: Path) -> int:
    """Copy a library into a new folder: one state of it, whole.

    Pictures that lie in the library's own folder are copied; those in a source folder stay there.

    Returns:
        How many pictures were missing and could not be copied.

    Raises:
        InputError: there is something in the folder.
        RmshError: the disk is full, or the copy is not whole.
    """
    with new_folder(out) as unfinished:
        model = _copy_database(library, unfinished, out)
        model.save(unfinished / MODEL)
        with closing(connect_reader(unfinished)) as connection:
            missing = _copy_pictures(library.folder, unfinished, connection)
            write_snapshot(unfinished / SNAPSHOT, connection)
            write_manifest(unfinished, connection)
        problems = verify(unfinished).problems
        if problems:
            raise RmshError(f"The copy of {library.folder} is not whole, and was not kept: {problems[0]}")
        connect_writer(unfinished, timeout=0).close()  # a writer who closes last takes SQLite's own files away
    return missing


def _copy_database(library: Library, unfinished: Path, out: Path) -> Model:
    """Copy the database, and return the model that made the codes of the copy."""
    while True:
        model = library.model()
        with closing(sqlite3.connect(unfinished / DATABASE)) as copy:
            with library.reading() as connection, explained(out):
                connection.backup(copy)
            if generation_of(copy).fingerprint == model.fingerprint:
                return model  # otherwise other codes were put in meanwhile: once more


def _copy_pictures(folder: Path, unfinished: Path, connection: sqlite3.Connection) -> int:
    if connection.execute("SELECT source FROM library").fetchone()[0] is not None:
        return 0
    missing = 0
    for (picture,) in connection.execute("SELECT DISTINCT picture FROM items WHERE picture IS NOT NULL"):
        if (folder / picture).is_file():
            with (folder / picture).open("rb") as original, atomic(unfinished / picture) as copy:
                shutil.copyfileobj(original, copy)
        else:
            missing += 1
    return missing
