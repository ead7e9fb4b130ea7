"""Replacing the codes of a library by those of another model, while it is searched with the old ones.

New codes are stored next to the old ones, batch by batch in the order of rows, so an interrupted recoding continues
where it stopped. Items added meanwhile have later rows and are reached before the switch to the new codes. The old
codes remain until the library is compacted.

If the new model cannot encode an item, the library keeps its old codes. All other items get new codes, and recoding
can be completed once the item can be encoded or is removed.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rmsh.core.errors import CodesError, RmshError
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.core.types import Modality
from rmsh.library.folder import find_model, install_model, stage_model
from rmsh.library.items import Batch, Blobs, Item
from rmsh.library.queries import Generation, count_items, facts_of, generation_of, items_of_rows, select_codes
from rmsh.library.writing import insert_codes, log_new_codes
from rmsh.model import Model, load

if TYPE_CHECKING:
    from rmsh.codes import Codes
    from rmsh.library.library import Library

_WITHOUT_VECTORS = "SELECT row FROM codes WHERE row > ? AND generation = ? AND vectors IS NULL ORDER BY row LIMIT ?"
_WITHOUT_CODES = """
    SELECT row FROM items WHERE row > ?
    AND NOT EXISTS (SELECT 1 FROM codes WHERE codes.row = items.row AND generation = ?)
    ORDER BY row LIMIT ?
"""
_MAX_NAMED = 10

Encode: TypeAlias = Callable[[Sequence[Item]], Mapping[Modality, "Codes"]]  # items to codes, matched by ID


def recode(
    library: Library, model: Model, *, encode: Encode, batch: int = 1024, on_progress: OnProgress = ignore
) -> None:
    """Encode every item with another model, whose codes may have another length; call it again to continue.

    ``encode`` computes the codes of some items; if it returns none for an item, CodesError names it at the end, and the
    library keeps its old codes. ``on_progress`` is called with a Progress. With the model that the library has, items
    without vectors get them, if the library stores vectors.
    """
    if library.generation().fingerprint == model.fingerprint:
        with library.reading() as connection:
            store = facts_of(connection).store
        if model.has_embedding and store == "codes+vectors":
            _add_vectors(library, encode=encode, batch=batch, on_progress=on_progress)
        return
    start, last = time.perf_counter(), 0
    pending, done, total = _begin(library, model)
    while not _switch(library, pending, last):
        while items := _next_items(library, _WITHOUT_CODES, pending, last, batch):
            _write(library, items, encode(list(items.values())), pending)
            last, done = max(items), done + len(items)
            on_progress(Progress("recode", done, max(done, total), "item", time.perf_counter() - start))
    library.update_files()


def _next_items(library: Library, rows: str, generation: Generation, last: int, count: int) -> dict[int, Item]:
    """The first items after the row ``last`` that a statement selects, by row."""
    with library.reading() as connection:
        return items_of_rows(connection, (row for (row,) in connection.execute(rows, (last, generation.number, count))))


def _add_vectors(library: Library, *, encode: Encode, batch: int, on_progress: OnProgress) -> None:
    """Write the vectors of items that have none; the codes stay as they are."""
    start, last, generation = time.perf_counter(), 0, library.generation()
    total = library.count()
    while items := _next_items(library, _WITHOUT_VECTORS, generation, last, batch):
        made = _code_rows(items, encode(list(items.values())))
        with library.transaction() as connection:
            found = select_codes(connection, generation, items) if generation_of(connection) == generation else []
            stored = {each[0]: (each[2], each[3]) for each in found if generation.is_intact(each)}
            kept = [(row, *stored[row], image, text) for row, _, _, image, text in made if row in stored]
            insert_codes(connection, generation.number, kept)
        last = max(items)
        on_progress(Progress("add vectors", min(last, total), total, "item", time.perf_counter() - start))
    if last:
        with library.transaction() as connection:
            log_new_codes(connection)  # so that vectors lost with a damaged write-ahead log are noticed


def _begin(library: Library, model: Model) -> tuple[Generation, int, int]:
    """The generation to fill, new or interrupted, the number of its codes, and the number of items.

    An unfinished generation of another model is deleted.
    """
    with library.transaction() as connection:
        current = generation_of(connection)
        install_model(library.folder, current)  # otherwise a staged model would be lost
        stage_model(library.folder, model)
        total = count_items(connection)
        later = "SELECT generation, fingerprint, bits FROM generations WHERE generation > ?"
        started = connection.execute(later, (current.number,)).fetchall()
        for pending in map(Generation._make, started):
            if pending.fingerprint == model.fingerprint:
                count = "SELECT count(*) FROM codes WHERE generation = ?"
                (done,) = connection.execute(count, (pending.number,)).fetchone()
                return pending, done, total
            for table in ("codes", "vectors", "generations"):
                connection.execute(f"DELETE FROM {table} WHERE generation = ?", (pending.number,))  # noqa: S608
        new = "INSERT INTO generations (fingerprint, bits) VALUES (?, ?)"
        added = connection.execute(new, (model.fingerprint, model.bits))
        return Generation(int(added.lastrowid or 0), model.fingerprint, model.bits), 0, total


def _switch(library: Library, pending: Generation, last: int) -> bool:
    """Put the new codes to use, unless rows after ``last`` have none yet; CodesError if earlier rows have none."""
    with library.transaction() as connection:
        _check_pending(connection, pending)
        if _pending_rows(connection, pending, last, 1):
            return False
        if uncoded := _pending_rows(connection, pending, 0, _MAX_NAMED):
            names = ", ".join(repr(item.id) for item in items_of_rows(connection, uncoded).values())
            more = " and more" if len(uncoded) == _MAX_NAMED else ""
            raise CodesError(
                f"The new model has no code for {names}{more}, so the library keeps its old codes. All other items are "
                "encoded: correct or remove these items, and recode again."
            )
        load(find_model(library.folder, pending))  # raises if it was deleted or damaged meanwhile
        set_generation = "UPDATE library SET generation = :new, checksum = checksum_of(id, :new, source)"
        connection.execute(set_generation, {"new": pending.number})
        log_new_codes(connection)
        return True


def _pending_rows(connection: sqlite3.Connection, pending: Generation, last: int, limit: int) -> list[int]:
    """The first rows after one that have no new code."""
    return [row for (row,) in connection.execute(_WITHOUT_CODES, (last, pending.number, limit))]


def _write(library: Library, items: Mapping[int, Item], codes: Mapping[Modality, Codes], pending: Generation) -> None:
    """Write the new codes of items; items removed meanwhile are skipped."""
    made = _code_rows(items, codes)
    pending.check(pending.fingerprint, *codes.values())
    with library.transaction() as connection:
        _check_pending(connection, pending)
        insert_codes(connection, pending.number, made)


def _code_rows(items: Mapping[int, Item], codes: Mapping[Modality, Codes]) -> Iterator[Blobs]:
    """Rows with their new codes and vectors; items without any are skipped."""
    coded = {name for of_modality in codes.values() for name in of_modality.ids.tolist()}
    with_code = {row: item for row, item in items.items() if item.id in coded}
    return Batch(tuple(with_code.values()), codes, "").code_rows(with_code)


def _check_pending(connection: sqlite3.Connection, pending: Generation) -> None:
    found = connection.execute("SELECT 1 FROM generations WHERE generation = ?", (pending.number,))
    if found.fetchone() is None:
        raise RmshError("Another process started to recode this library with another model; let one of them finish.")
