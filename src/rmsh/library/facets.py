"""Facets: how many items of a library have each label, camera, keyword and rating, and were taken in each month.

Every number is what a filter by the same value finds. A filter by a label that no item has gets a hint.
"""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rmsh.index.filters import And, Label, Not, Or
from rmsh.library.photos import has_photos
from rmsh.library.queries import last_change

if TYPE_CHECKING:
    from rmsh.index.filters import Filter
    from rmsh.library.queries import LabelEntry

MOST_VALUES = 100  # of a facet
_MOST_MONTHS = 1_200
_MOST_HINTS = 3
_MOST_COMPARED = 10_000  # labels that a misspelt one is compared with

State: TypeAlias = tuple[int, str, int]

# Cameras and keywords are compared regardless of case, as filters do.
_COUNTS = {
    "label": "SELECT name, count AS n FROM labels WHERE count > 0",
    "camera": "SELECT min(camera), count(*) AS n FROM photos WHERE typeof(camera) = 'text' GROUP BY lower(camera)",
    "keyword": "SELECT min(value), count(DISTINCT row) AS n FROM photos, json_each(keywords) GROUP BY lower(value)",
    "rating": "SELECT CAST(rating AS TEXT), count(*) AS n FROM photos WHERE rating IS NOT NULL GROUP BY rating",
}
_MONTHS = "SELECT substr(date, 1, 7) AS month, count(*) FROM photos WHERE typeof(date) = 'text' GROUP BY month"


class Facets(NamedTuple):
    """The number of items with each value, the most frequent values first.

    Args:
        photos: number of image files whose facts are known.
        values: by facet and value; at most :data:`MOST_VALUES` of each, and one more if there are more.
        months: by month, such as "2024-06", the last ones.
    """

    photos: int
    values: dict[str, dict[str, int]]
    months: dict[str, int]


def state_of(connection: sqlite3.Connection) -> State:
    """Changes whenever facets and duplicates may change; `rmsh sync` can add facts to items that stay as they are."""
    return *last_change(connection), _count_photos(connection)


def _count_photos(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM photos").fetchone()[0]) if has_photos(connection) else 0


def facets_of(connection: sqlite3.Connection) -> Facets:
    """The facets of a library; those that no item has are left out."""
    photos = _count_photos(connection)
    limit = " ORDER BY n DESC, 1 LIMIT ?"
    statements = _COUNTS if photos else {"label": _COUNTS["label"]}
    found = {
        name: dict(connection.execute(statement + limit, (MOST_VALUES + 1,))) for name, statement in statements.items()
    }
    last = connection.execute(f"{_MONTHS} ORDER BY month DESC LIMIT ?", (_MOST_MONTHS,)).fetchall() if photos else []
    return Facets(photos, {name: counts for name, counts in found.items() if counts}, dict(reversed(last)))


def label_hints(labels: Mapping[str, LabelEntry], where: Filter) -> list[str]:
    """A sentence for each label of a filter that no item has, with labels that it may mean.

    Example:
        >>> label_hints({"dog": None, "cat": None}, Label("dogg"))
        ['No item has the label dogg; did you mean dog?']
    """
    unknown = dict.fromkeys(name for name in _labels_in(where) if name not in labels)
    return [_hint(name, labels) for name in islice(unknown, _MOST_HINTS)]


def _labels_in(where: Filter) -> Iterator[str]:
    if isinstance(where, Label):
        yield where.value
    parts = where.parts if isinstance(where, (And, Or)) else (where.part,) if isinstance(where, Not) else ()
    for part in parts:
        yield from _labels_in(part)


def _hint(name: str, labels: Mapping[str, LabelEntry]) -> str:
    if not labels:
        return f"No item has the label {name}; this library has no labels."
    known = {label.lower(): label for label in islice(labels, _MOST_COMPARED)}
    near = " or ".join(known[each] for each in difflib.get_close_matches(name.lower(), known, n=3))
    return f"No item has the label {name}; did you mean {near}?" if near else f"No item has the label {name}."
