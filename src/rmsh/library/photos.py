"""The image files of a library: their state on disk, and what they tell about themselves.

The table ``photos`` is additional: libraries that were made without it work as before, and `rmsh sync` fills it. A row
follows from its file, so a damaged one is ignored, and the next `rmsh sync` reads the file again. Facts are columns, so
that filters can compare them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rmsh.features.photo import Photo
from rmsh.library.items import checksum_of, is_intact

if TYPE_CHECKING:
    from rmsh.index.filters import Fact

_CREATE = """
CREATE TABLE IF NOT EXISTS photos (
    row INTEGER PRIMARY KEY REFERENCES items ON DELETE CASCADE,
    size INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    hash TEXT NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    look TEXT NOT NULL,
    date TEXT,
    camera TEXT,
    latitude REAL,
    longitude REAL,
    keywords TEXT NOT NULL,
    caption TEXT,
    rating INTEGER,
    checksum INTEGER NOT NULL
)
"""


@dataclass(frozen=True)
class ImageFile:
    """An image file as it was when it was read last.

    Args:
        size: number of bytes.
        modified: time of the last change, in nanoseconds.
        hash: SHA-256 of the content.
        photo: what the file tells.
    """

    size: int
    modified: int
    hash: str
    photo: Photo


def has_photos(connection: sqlite3.Connection) -> bool:
    """Whether the library has the table."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'photos'").fetchone() is not None


def insert_photos(connection: sqlite3.Connection, files: Mapping[int, ImageFile]) -> None:
    """Store the files of rows, in place of earlier ones; inside a write transaction."""
    if not files:
        return
    connection.execute(_CREATE)
    stored = [(row, *_to_values(file)) for row, file in files.items()]
    marks = ", ".join("?" * (len(stored[0]) + 1))
    statement = f"INSERT OR REPLACE INTO photos VALUES ({marks})"  # noqa: S608
    connection.executemany(statement, [(*values, checksum_of(*values)) for values in stored])


def _to_values(file: ImageFile) -> tuple[Any, ...]:
    photo = file.photo
    place = photo.place or (None, None)
    facts = (photo.date, photo.camera, *place, json.dumps(photo.keywords), photo.caption, photo.rating)
    return file.size, file.modified, file.hash, photo.width, photo.height, photo.look.hex(), *facts


def read_photos(connection: sqlite3.Connection, rows: Iterable[int] | None = None) -> Iterator[tuple[int, ImageFile]]:
    """Row and file of all or some rows, by increasing row; damaged ones are left out."""
    if not has_photos(connection):
        return
    chosen = "" if rows is None else "WHERE row IN (SELECT value FROM json_each(?))"
    values = () if rows is None else (json.dumps([int(row) for row in rows]),)
    statement = f"SELECT * FROM photos {chosen} ORDER BY row"  # noqa: S608
    for *stored, checksum in connection.execute(statement, values):
        if is_intact(stored, checksum):
            yield stored[0], _to_file(*stored[1:])


def _to_file(size: int, modified: int, digest: str, width: int, height: int, look: str, *facts: Any) -> ImageFile:
    date, camera, latitude, longitude, keywords, caption, rating = facts
    place = None if latitude is None else (latitude, longitude)
    photo = Photo(width, height, bytes.fromhex(look), date, camera, place, tuple(json.loads(keywords)), caption, rating)
    return ImageFile(size, modified, digest, photo)


def damaged_photos(connection: sqlite3.Connection) -> list[int]:
    """Rows whose values do not match their checksum."""
    if not has_photos(connection):
        return []
    found = connection.execute("SELECT * FROM photos")
    return [int(stored[0]) for *stored, checksum in found if not is_intact(stored, checksum)]


def rows_with_fact(connection: sqlite3.Connection, fact: Fact) -> tuple[str, str]:
    """A statement that selects the rows whose image file satisfies a condition, with one parameter, and its value."""
    if not has_photos(connection):
        return "SELECT row FROM items WHERE row < 0 AND ? <> ''", fact.value
    contains = fact.sign == "~"
    text = "instr(lower({0}), lower(?)) > 0" if contains else "lower({0}) = lower(?)"
    if fact.name == "date":
        test = f"substr(date, 1, length(?1)) {fact.sign} ?1"
    elif fact.name == "camera":
        test = text.format("camera")
    elif fact.name == "keyword":
        test = f"EXISTS (SELECT 1 FROM json_each(keywords) WHERE {text.format('value')})"  # noqa: S608
    else:
        test = f"{fact.name} {fact.sign} CAST(? AS REAL)"
    return f"SELECT row FROM photos WHERE {test}", fact.value  # noqa: S608  # name and sign are checked by Fact
