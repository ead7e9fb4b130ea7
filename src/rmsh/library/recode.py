"""Giving a library the codes of another model, while it is searched with the old ones, in one swap at the end.

New codes are written beside the old ones, batch by batch in the order of rows, so that a recoding which was stopped
goes on where it was. Items added meanwhile have later rows and are reached before the swap. The old codes stay until
the library is compacted.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rmsh.errors import RmshError
from rmsh.library.folder import find_model, settle, stage_model
from rmsh.library.items import Batch, Item
from rmsh.library.reading import Generation, generation_of, items_of_rows
from rmsh.library.writing import log
from rmsh.progress import OnProgress, Progress, ignore
from rmsh.types import Modality

if TYPE_CHECKING:
    from rmsh.codes import Codes
    from rmsh.library.library import Library
    from rmsh.model import Model

__all__ = ["Encode", "recode"]

_WAITING = """
    SELECT row FROM items WHERE NOT EXISTS (SELECT 1 FROM codes WHERE codes.row = items.row AND generation = ?)
    ORDER BY row LIMIT 1
"""

Encode: TypeAlias = Callable[[Sequence[Item]], Mapping[Modality, "Codes"]]  # items to codes, matched by id


def recode(
    library: Library, model: Model, *, encode: Encode, batch: int = 1024, on_progress: OnProgress = ignore
) -> None:
    """Code every item anew; given again after it was stopped, it goes on.

    Args:
        library: open for writing; others may add, update and remove meanwhile.
        model: the new model, whose codes may be longer or shorter.
        encode: makes the codes of some items with it, at least one an item.
        batch: how many items are coded and written at once.
        on_progress: is told how far it is.

    Raises:
        CodesError: an item got no code, or one of another length than the model's.
        RmshError: another process began a recoding with another model.
    """
    if library.generation().fingerprint == model.fingerprint:
        return
    pending, start = _begin(library, model), time.perf_counter()
    done, total = _counts(library, pending)
    while (waiting := _swap(library, pending)) is not None:
        last = waiting - 1
        while items := _next_items(library, last, batch):
            given = list(items.values())
            _write(library, items, Batch(tuple(given), encode(given), model.fingerprint), pending)
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


def _swap(library: Library, pending: Generation) -> int | None:
    """Put the new codes in the place of the old ones, or return the first row that still waits for its code."""
    with library.transaction() as connection:
        _check_pending(connection, pending)
        waiting = connection.execute(_WAITING, (pending.number,)).fetchone()
        if waiting is not None:
            return int(waiting[0])
        find_model(library.folder, pending)  # refuses where somebody has taken it away
        connection.execute("UPDATE library SET generation = ?", (pending.number,))
        log(connection, "recode", [0])
        return None


def _next_items(library: Library, last: int, batch: int) -> dict[int, Item]:
    """The items that follow a row, by row."""
    with library.reading() as connection:
        rows = connection.execute("SELECT row FROM items WHERE row > ? ORDER BY row LIMIT ?", (last, batch))
        return items_of_rows(connection, [row for (row,) in rows])


def _write(library: Library, items: Mapping[int, Item], coded: Batch, pending: Generation) -> None:
    """Write the new codes of items; one that was removed meanwhile is passed over."""
    pending.check(coded.model, *coded.codes.values())
    codes = zip(items, coded.blobs("image"), coded.blobs("text"), strict=True)
    with library.transaction() as connection:
        _check_pending(connection, pending)
        connection.executemany(
            "INSERT INTO codes (row, generation, image, text) SELECT row, ?, ?, ? FROM items WHERE row = ? "
            "ON CONFLICT DO NOTHING",
            [(pending.number, image, text, row) for row, image, text in codes],
        )


def _check_pending(connection: sqlite3.Connection, pending: Generation) -> None:
    found = connection.execute("SELECT 1 FROM generations WHERE generation = ?", (pending.number,))
    if found.fetchone() is None:
        raise RmshError("Another process began to recode this library with another model; let one of them end first.")
