"""The image files of a library: their state on disk, what they tell about themselves, and facets of these facts.

The table ``photos`` is additional: libraries that were made without it work as before, and `rmsh sync` fills it. A row
follows from its file, so a damaged one is ignored, and the next `rmsh sync` reads the file again. Facts are columns, so
that filters can compare them.

Facets count how many items have each label, camera, keyword and rating, and were taken in each month; every number is
what a filter by the same value finds. A filter by a label that no item has gets a hint.
"""

from __future__ import annotations

import difflib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from rmsh.features.photo import Photo
from rmsh.index.filters import And, Fact, Filter, Label, Not, Or
from rmsh.library.items import checksum_of, is_intact

if TYPE_CHECKING:
    from rmsh.library.queries import LabelEntry

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
    """An image file as it was when it was read last."""

    size: int  # bytes
    modified: int  # time of the last change, in nanoseconds
    hash: str  # SHA-256 of the content
    photo: Photo  # metadata and look of the image


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
        test = f"substr(date, 1, {len(fact.value)}) {fact.sign} ?"
    elif fact.name == "camera":
        test = text.format("camera")
    elif fact.name == "keyword":
        test = f"EXISTS (SELECT 1 FROM json_each(keywords) WHERE {text.format('value')})"  # noqa: S608
    else:
        test = f"{fact.name} {fact.sign} CAST(? AS REAL)"
    return f"SELECT row FROM photos WHERE {test}", fact.value  # noqa: S608  # name and sign are checked by Fact


MOST_VALUES = 100  # of a facet, the most frequent ones
_MOST_MONTHS = 1_200  # the last ones
_MOST_HINTS = 3
_MOST_COMPARED = 10_000  # labels that a misspelt one is compared with

_LABELS = "SELECT name, count FROM labels WHERE count > 0 ORDER BY 2 DESC, 1"
_FACTS = {  # cameras and keywords are compared regardless of case, as filters do
    "camera": "SELECT min(camera), count(*) FROM photos WHERE typeof(camera) = 'text' GROUP BY lower(camera)",
    "keyword": "SELECT min(value), count(DISTINCT row) FROM photos, json_each(keywords) GROUP BY lower(value)",
    "rating": "SELECT CAST(rating AS TEXT), count(*) FROM photos WHERE rating IS NOT NULL GROUP BY rating",
}
_MONTHS = "SELECT substr(date, 1, 7), count(*) FROM photos WHERE typeof(date) = 'text' GROUP BY 1 ORDER BY 1 DESC"


def count_photos(connection: sqlite3.Connection) -> int:
    """The number of image files whose facts are known."""
    return int(connection.execute("SELECT count(*) FROM photos").fetchone()[0]) if has_photos(connection) else 0


def facets_of(connection: sqlite3.Connection) -> dict[str, dict[str, int]]:
    """The number of items by value, for each facet that has values: label, camera, keyword, rating and month.

    The most frequent values come first, at most :data:`MOST_VALUES` and one more if there are more; of the months, such
    as "2024-06", the last ones.
    """
    statements = {"label": _LABELS}
    if has_photos(connection):
        statements |= {name: f"{counted} ORDER BY 2 DESC, 1" for name, counted in _FACTS.items()} | {"month": _MONTHS}
    limits = {"month": _MOST_MONTHS}
    found = {
        name: dict(connection.execute(f"{statement} LIMIT ?", (limits.get(name, MOST_VALUES + 1),)))
        for name, statement in statements.items()
    }
    return {name: counts for name, counts in found.items() if counts}


def label_hints(labels: Mapping[str, LabelEntry], where: Filter) -> list[str]:
    """A sentence for each label of a filter that no item has, with labels that it may mean.

    Example:
        >>> label_hints({"dog": None, "cat": None}, Label("dogg"))
        ['No item has the label dogg; did you mean dog?']
    """
    known = {label.lower(): label for label in islice(labels, _MOST_COMPARED)}
    hints = []
    for name in islice(dict.fromkeys(name for name in _labels_in(where) if name not in labels), _MOST_HINTS):
        near = " or ".join(known[each] for each in difflib.get_close_matches(name.lower(), known, n=3))
        hints.append(f"No item has the label {name}" + (f"; did you mean {near}?" if near else "."))
    return hints


def _labels_in(where: Filter) -> Iterator[str]:
    if isinstance(where, Label):
        yield where.value
    parts = where.parts if isinstance(where, (And, Or)) else (where.part,) if isinstance(where, Not) else ()
    for part in parts:
        yield from _labels_in(part)
