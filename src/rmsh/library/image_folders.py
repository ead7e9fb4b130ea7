"""The image folders of a library: the one that it was built from, and further folders, images and metadata files.

The path of an image in a further folder begins with the name of that folder, see :func:`rmsh.data.records.locate`. The
table ``folders`` is additional: a library without it has one folder. Where a library and a folder may be moved
together, the way from one to the other is stored too, and followed first.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rmsh.core.errors import FormatError
from rmsh.library.items import checksum_of, is_intact
from rmsh.library.queries import image_folder

if TYPE_CHECKING:
    import sqlite3

_CREATE = """
CREATE TABLE IF NOT EXISTS folders (
    name TEXT PRIMARY KEY,
    path TEXT NOT NULL,
    near TEXT,
    checksum INTEGER NOT NULL
)
"""


def image_folders(connection: sqlite3.Connection, library: Path, *, of: str | None = None) -> dict[str, Path]:
    """Where the images of a library are, by name; the first folder is "". Empty if the library keeps its own images.

    ``of`` is the path of one image, whose folder and the first are returned.

    Raises:
        FormatError: a place is damaged.
    """
    first = image_folder(connection)
    if first is None:
        return {}
    found, home = {"": Path(first)}, library.resolve()
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'folders'").fetchone() is None:
        return found
    chosen, values = ("", ()) if of is None else ("WHERE name IN ('', ?)", (of.partition("/")[0],))
    for *stored, checksum in connection.execute(f"SELECT * FROM folders {chosen}", values):  # noqa: S608
        if not is_intact(stored, checksum):
            raise FormatError(f"The list of image folders of {library} is damaged; restore a backup.")
        name, path, near = stored
        found[name] = Path(path)
        if near is not None and (moved := Path(os.path.normpath(home / near))).exists():
            found[name] = moved
    return found


def set_folder(connection: sqlite3.Connection, library: Path, name: str, path: Path, near: str | None = None) -> None:
    """Store where an image folder of a library is; inside a write transaction.

    ``near`` is the way from the library to the folder; by default that to a folder next to the library, below it or
    around it.
    """
    home, path = library.resolve(), path.resolve()
    if near is None and (path.is_relative_to(home.parent) or home.is_relative_to(path)):
        near = Path(os.path.relpath(path, home)).as_posix()
    values = (name, str(path), near)
    connection.execute(_CREATE)
    connection.execute("INSERT OR REPLACE INTO folders VALUES (?, ?, ?, ?)", (*values, checksum_of(*values)))
    if not name:
        statement = "UPDATE library SET source = ?1, checksum = checksum_of(id, generation, ?1)"
        connection.execute(statement, (str(path),))


def forget_folder(connection: sqlite3.Connection, name: str) -> None:
    """Forget a further folder unless an item has an image in it; inside a write transaction."""
    used = "SELECT 1 FROM items WHERE picture = ?1 OR substr(picture, 1, length(?1) + 1) = ?1 || '/'"
    connection.execute(f"DELETE FROM folders WHERE name = ?1 AND NOT EXISTS ({used})", (name,))  # noqa: S608
