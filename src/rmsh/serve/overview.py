"""What the page shows besides hits: facets and months to narrow down by, and duplicates. Computed once per state.

A collection on a Milvus server has neither: it does not know image files, and its labels are not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rmsh.core.errors import InputError
from rmsh.library.duplicates import KINDS, groups_in, state_of
from rmsh.library.library import Library
from rmsh.library.photos import MOST_VALUES, count_photos, facets_of, read_photos
from rmsh.library.queries import intact_items, rows_of_ids
from rmsh.serve.limits import ProblemError, Turns
from rmsh.serve.schemas import Duplicates, Facets, Grouping

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmsh.library.duplicates import Group
    from rmsh.search.searcher import ItemStore

T = TypeVar("T")

_MOST_COMPARED = 200_000  # images; each takes about a kilobyte of memory while they are compared
_MOST_SHOWN = 24  # images of a group
_WAITING = 8


class _PerState(Generic[T]):
    """A value that is computed once per state of a library, by one request at a time; the others wait for it."""

    def __init__(self, make: Callable[[Library], T]) -> None:
        self._make = make
        self._turns = Turns(1, _WAITING)
        self._kept: tuple[tuple[int, str, int], T] | None = None

    def of(self, library: Library) -> T:
        with library.reading() as connection:
            state = state_of(connection)
        if (kept := self._kept) is None or kept[0] != state:
            with self._turns.turn():
                if (kept := self._kept) is None or kept[0] != state:
                    kept = self._kept = state, self._make(library)
        return kept[1]


class Overview:
    """Facets and duplicates of what is served."""

    def __init__(self, store: ItemStore) -> None:
        self._library = store if isinstance(store, Library) else None
        self._facets = _PerState(_facets)
        self._groups = _PerState(_groups)

    def facets(self) -> Facets:
        """What results can be narrowed down by; nothing for a collection."""
        return Facets(photos=0, facets=[], months=[]) if self._library is None else self._facets.of(self._library)

    def duplicates(self, grouping: Grouping) -> Duplicates:
        """A page of groups; ProblemError 404 if image files are unknown, 409 if they are many, 503 if others wait."""
        if self._library is None:
            raise ProblemError(404, "A collection has no data about image files; serve the library folder instead.")
        found = self._groups.of(self._library)
        chosen = [group for group in found if grouping.kind in (None, group.kind)]
        end = grouping.skip + grouping.k
        kinds = [group.kind for group in found]
        return Duplicates.model_validate(
            {
                "counts": {kind: kinds.count(kind) for kind in KINDS},
                "more": len(chosen) > end,
                "groups": _described(self._library, chosen[grouping.skip : end]),
            }
        )


def _described(library: Library, groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Groups with the facts of their images; images that were removed meanwhile are left out."""
    shown = [name for group in groups for name in group.ids[:_MOST_SHOWN]]
    with library.reading() as connection:
        rows = rows_of_ids(connection, shown, thorough=False)
        items, _ = intact_items(connection, rows.values())
        files = dict(read_photos(connection, rows.values()))
    images = {
        name: {"id": name, "text": items[row].text, "bytes": files[row].size, **vars(files[row].photo)}
        for name, row in rows.items()
        if row in items and row in files
    }
    return [
        {"kind": kind, "count": len(ids), "images": [images[name] for name in ids[:_MOST_SHOWN] if name in images]}
        for kind, ids in ((group.kind, group.ids) for group in groups)
    ]


def _facets(library: Library) -> Facets:
    with library.reading() as connection:
        photos, values = count_photos(connection), facets_of(connection)
    months = dict(sorted(values.pop("month", {}).items()))
    facets = [
        {"name": name, "values": _counts(counts)[:MOST_VALUES], "more": len(counts) > MOST_VALUES}
        for name, counts in values.items()
    ]
    return Facets.model_validate({"photos": photos, "facets": facets, "months": _counts(months)})


def _counts(numbers: dict[str, int]) -> list[dict[str, Any]]:
    return [{"value": value, "count": count} for value, count in numbers.items()]


def _groups(library: Library) -> list[Group]:
    with library.reading() as connection:
        photos = count_photos(connection)
    if photos > _MOST_COMPARED:
        most = f"a server compares at most {_MOST_COMPARED:,}; use `rmsh duplicates` on the command line"
        raise ProblemError(409, f"The library has {photos:,} images; {most}.")
    try:
        return groups_in(library)
    except InputError:  # its message contains the path of the library
        raise ProblemError(404, "The library has no data about its image files; run `rmsh sync` first.") from None
