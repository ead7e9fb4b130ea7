"""Facets: how many items of a library have each label, camera, keyword and rating, and were taken in each month.

Every number is what a filter by the same value finds. A filter by a label that no item has gets a hint.
"""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from rmsh.index.filters import And, Label, Not, Or
from rmsh.library.photos import has_photos
from rmsh.library.queries import last_change

if TYPE_CHECKING:
    from rmsh.index.filters import Filter
    from rmsh.library.queries import LabelEntry

MOST_VALUES = 100  # of a facet, the most frequent ones
_MOST_MONTHS = 1_200  # the last ones
_MOST_HINTS = 3
_MOST_COMPARED = 10_000  # labels that a misspelt one is compared with

State: TypeAlias = tuple[int, str, int]

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


def state_of(connection: sqlite3.Connection) -> State:
    """Changes whenever facets and duplicates may change; `rmsh sync` can add facts to items that stay as they are."""
    return *last_change(connection), count_photos(connection)


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
    unknown = dict.fromkeys(name for name in _labels_in(where) if name not in labels)
    return [_hint(name, labels) for name in islice(unknown, _MOST_HINTS)]


def _labels_in(where: Filter) -> Iterator[str]:
    if isinstance(where, Label):
        yield where.value
    parts = where.parts if isinstance(where, (And, Or)) else (where.part,) if isinstance(where, Not) else ()
    for part in parts:
        yield from _labels_in(part)


def _hint(name: str, labels: Mapping[str, LabelEntry]) -> str:
    known = {label.lower(): label for label in islice(labels, _MOST_COMPARED)}
    near = " or ".join(known[each] for each in difflib.get_close_matches(name.lower(), known, n=3))
    return f"No item has the label {name}; did you mean {near}?" if near else f"No item has the label {name}."
