"""Giving a library the codes of another model, while it is searched with the old ones, in one swap at the end.

New codes are written beside the old ones, batch by batch in the order of rows, so that a recoding which was stopped
goes on where it was. Items added meanwhile have later rows and are reached before the swap. The old codes stay until
the library is compacted.

Every item of a library has a code. One that the new model can make none of keeps the old codes in their place: the
others get theirs, and the recoding ends when it can be coded, or is gone.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rmsh.core.errors import CodesError, RmshError
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.core.types import Modality
from rmsh.library.checksums import codes_checksum
from rmsh.library.folder import find_model, settle, stage_model
from rmsh.library.items import Batch, Item
from rmsh.library.queries import Generation, generation_of, items_of_rows
from rmsh.library.writing import log

if TYPE_CHECKING:
    from rmsh.codes import Codes
    from rmsh.library.library import Library
    from rmsh.model import Model

__all__ = ["Encode", "recode"]

_WAITING = """
    SELECT row FROM items WHERE row > ?
    AND NOT EXISTS (SELECT 1 FROM codes WHERE codes.row = items.row AND generation = ?)
    ORDER BY row LIMIT ?
"""
_MOST_NAMED = 10

Encode: TypeAlias = Callable[[Sequence[Item]], Mapping[Modality, "Codes"]]  # items to codes, matched by id


def recode(
    library: Library, model: Model, *, encode: Encode, batch: int = 1024, on_progress: OnProgress = ignore
) -> None:
    """Code every item anew; given again after it was stopped, it goes on.

    Args:
        library: open for writing; others may add, update and remove meanwhile.
        model: the new model, whose codes may be longer or shorter.
        encode: makes the codes of some items with it, at least one an item that can be coded.
        batch: how many items are coded and written at once.
        on_progress: is told how far it is.

    Raises:
        CodesError: an item got no code, while all others did; or one got a code of another length than the model's.
        RmshError: another process began a recoding with another model.
    """
    if library.generation().fingerprint == model.fingerprint:
        return
    pending, start = _begin(library, model), time.perf_counter()
    (done, total), last = _counts(library, pending), 0
    while not _swap(library, pending, last):
        while items := _next_items(library, pending, last, batch):
            _write(library, items, encode(list(items.values())), pending)
            last, done = max(items), done + len(items)
            on_progress(Progress("recode", done, max(done, total), "item", time.perf_counter() - start))
    library.settle()


def _begin(library: Library, model: Model) -> Generation:
    """The generation to fill: one that was begun with this model, or a new one in place of any other."""
    with library.transaction() as connection:
        current = generation_of(connection)
        settle(library.folder, current)  # a model that waits for its place is not to be lost
        stage_model(library.folder, model)
        for number, fingerprint in connection.execute(
            "SELECT generation, fingerprint FROM generations WHERE generation > ?", (current.number,)
        ).fetchall():
            if fingerprint == model.fingerprint:
                return Generation(number, fingerprint, model.bits)
            connection.execute("DELETE FROM codes WHERE generation = ?", (number,))
            connection.execute("DELETE FROM generations WHERE generation = ?", (number,))
        added = connection.execute(
            "INSERT INTO generations (fingerprint, bits) VALUES (?, ?)", (model.fingerprint, model.bits)
        )
        return Generation(int(added.lastrowid or 0), model.fingerprint, model.bits)


def _counts(library: Library, pending: Generation) -> tuple[int, int]:
    """How many items have their new code, and how many there are."""
    with library.reading() as connection:
        done = connection.execute("SELECT count(*) FROM codes WHERE generation = ?", (pending.number,)).fetchone()[0]
        return done, connection.execute("SELECT count(*) FROM items").fetchone()[0]


def _swap(library: Library, pending: Generation, last: int) -> bool:
    """Put the new codes in the place of the old ones, unless rows after the last one still wait for theirs.

    Raises:
        CodesError: only rows that were passed already have none.
    """
    with library.transaction() as connection:
        _check_pending(connection, pending)
        if _waiting(connection, pending, last, 1):
            return False
        if without := _waiting(connection, pending, 0, _MOST_NAMED):
            raise CodesError(_uncoded([item.id for item in items_of_rows(connection, without).values()]))
        find_model(library.folder, pending)  # refuses where somebody has taken it away
        connection.execute("UPDATE library SET generation = ?", (pending.number,))
        log(connection, "recode", [0])
        return True


def _waiting(connection: sqlite3.Connection, pending: Generation, last: int, most: int) -> list[int]:
    """The first rows after one that have no new code."""
    return [row for (row,) in connection.execute(_WAITING, (last, pending.number, most))]


def _uncoded(ids: Sequence[str]) -> str:
    more = " and more" if len(ids) == _MOST_NAMED else ""
    return (
        f"The new model has no code for {', '.join(map(repr, ids))}{more}, and the library keeps its old codes; all "
        "others are coded: mend or remove these items, and recode again."
    )


def _next_items(library: Library, pending: Generation, last: int, batch: int) -> dict[int, Item]:
    """The items after a row that have no new code, by row."""
    with library.reading() as connection:
        return items_of_rows(connection, _waiting(connection, pending, last, batch))


def _write(library: Library, items: Mapping[int, Item], codes: Mapping[Modality, Codes], pending: Generation) -> None:
    """Write the new codes of items; one without any, and one that was removed meanwhile, is passed over."""
    given = {name for of_modality in codes.values() for name in of_modality.ids.tolist()}
    with_code = {row: item for row, item in items.items() if item.id in given}
    coded = Batch(tuple(with_code.values()), codes, pending.fingerprint)
    pending.check(coded.model, *coded.codes.values())
    blobs = zip(with_code, coded.blobs("image"), coded.blobs("text"), strict=True)
    with library.transaction() as connection:
        _check_pending(connection, pending)
        connection.executemany(
            "INSERT INTO codes (row, generation, image, text, checksum) "
            "SELECT row, ?, ?, ?, ? FROM items WHERE row = ? ON CONFLICT DO NOTHING",
            [
                (pending.number, image, text, codes_checksum(row, pending.number, image, text), row)
                for row, image, text in blobs
            ],
        )


def _check_pending(connection: sqlite3.Connection, pending: Generation) -> None:
    found = connection.execute("SELECT 1 FROM generations WHERE generation = ?", (pending.number,))
    if found.fetchone() is None:
        raise RmshError("Another process began to recode this library with another model; let one of them end first.")
