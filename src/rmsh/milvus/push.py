"""Bringing a library to a Milvus server, and later what changed since.

A push compares a block of rows at a time: it asks which keys with which digests are there, writes what is missing or
other, and removes what the library no longer has. What it did needs no record, so a push that was cut off goes on when
it is started again, and never writes anything twice. Later rows come first: of an item that was updated, the new form
is there before the old one goes.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rmsh.core.errors import InputError
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.core.types import MODALITIES
from rmsh.library.queries import generation_of, items_of_rows
from rmsh.milvus.collection import COLUMNS, entity_of, filled, is_filled, key_of
from rmsh.milvus.connection import Address, Settings
from rmsh.milvus.filters import both
from rmsh.milvus.table import MOST, Table

if TYPE_CHECKING:
    from rmsh.library.queries import Generation
    from rmsh.library.reader import Reader

_ROWS = MOST // len(MODALITIES)  # in a block: Milvus tells so many keys in one call
_BATCH = 1 << 22  # characters of texts in one message; Milvus takes 64 MB


@dataclass
class Pushed:
    """What a push did.

    Args:
        collection: the name of the collection that the address stands for now.
        written: how many codes were written.
        removed: how many were removed.
        former: collections of other models that are still there.
    """

    collection: str
    written: int = 0
    removed: int = 0
    former: list[str] = field(default_factory=list)


def push(
    library: Reader,
    address: str,
    *,
    lists: int | None = None,
    drop_former: bool = False,
    on_progress: OnProgress = ignore,
) -> Pushed:
    """Make a collection what the library is now; who searches it meanwhile finds what was there before.

    Args:
        library: open, for reading.
        address: ``http(s)://HOST:PORT/NAME``.
        lists: 0 for an exact collection, otherwise the number of lists of an approximate one; None to leave it.
        drop_former: whether to drop collections of former models of this library; who has one open cannot go on.
        on_progress: told after every block.

    Raises:
        InputError: the address is none, or holds another library, or an item is too large.
        RmshError: the server cannot be reached, or refuses; what was written stays, and another push goes on.
    """
    place = Address.parse(address)
    with library.reading() as connection:
        (name,) = connection.execute("SELECT id FROM library").fetchone()
        generation = generation_of(connection)
        table = _table(place, generation, library=name, lists=lists)
        try:
            done = _bring(table, connection, generation=generation, on_progress=on_progress)
            table.flush()
            table.set_alias(place.name)
            done.former = _former(table, place, library=name, drop=drop_former)
        finally:
            table.close()
    return done


def _table(place: Address, generation: Generation, *, library: str, lists: int | None) -> Table:
    """The collection to fill: the one that is there, or a new one."""
    settings = Settings.read()
    shown = Table.find(place, settings=settings)
    if shown is not None and shown.about.get("library") != library:
        raise InputError(f"{place} holds another library; give another name, or drop it in Milvus first.")
    goal = filled(place, generation.fingerprint)
    there = Table.find(goal, settings=settings)
    if there is None:
        about = {"model": generation.fingerprint, "generation": generation.number, "library": library}
        return Table.create(
            goal, generation.bits, settings=settings, columns=COLUMNS, partitions=MODALITIES, lists=lists or 0, **about
        )
    if lists is not None and there.about["lists"] != lists:
        raise InputError(
            f"{goal} was made with {there.about['lists']} lists, {lists} were asked for; leave that out, or drop the "
            "collection in Milvus first."
        )
    there.prepare(COLUMNS, MODALITIES)
    return there


def _bring(table: Table, connection: sqlite3.Connection, *, generation: Generation, on_progress: OnProgress) -> Pushed:
    (last,) = connection.execute("SELECT coalesce(max(row), 0) FROM items").fetchone()
    done, begin = Pushed(table.address.name), time.perf_counter()
    starts = range(last // _ROWS * _ROWS, -1, -_ROWS)
    done.removed += _remove_behind(table, key_of(starts[0] + _ROWS, MODALITIES[0]))
    for count, start in enumerate(starts, 1):
        here = {entity["key"]: entity for entity in _entities(connection, generation, start)}
        there = _digests(table, start)
        gone = sorted(there.keys() - here.keys())
        changed = [entity for key, entity in here.items() if there.get(key) != entity["digest"]]
        _write(table, changed)
        table.delete(gone)
        done.written, done.removed = done.written + len(changed), done.removed + len(gone)
        values = {"written": done.written, "removed": done.removed}
        on_progress(Progress("push", count, len(starts), "block", time.perf_counter() - begin, values))
    return done


def _remove_behind(table: Table, key: int) -> int:
    """Remove keys from one on: rows the library has not given yet, as after it was put back from a backup."""
    removed = 0
    while found := table.query(f"key >= {key}", ["key"]):
        table.delete([int(entity["key"]) for entity in found])
        removed += len(found)
    return removed


def _digests(table: Table, start: int) -> dict[int, int]:
    """Keys and digests that are there of the block of rows that begins at one."""
    first, end = (key_of(row, MODALITIES[0]) for row in (start, start + _ROWS))
    found = table.query(both(f"key >= {first}", f"key < {end}"), ["key", "digest"])
    return {int(entity["key"]): int(entity["digest"]) for entity in found}


def _entities(connection: sqlite3.Connection, generation: Generation, start: int) -> Iterator[dict[str, Any]]:
    found = connection.execute(
        "SELECT row, image, text FROM codes WHERE generation = ? AND row >= ? AND row < ? ORDER BY row",
        (generation.number, start, start + _ROWS),
    ).fetchall()
    items = items_of_rows(connection, [row for row, _, _ in found])
    for row, *codes in found:
        for modality, code in zip(MODALITIES, codes, strict=True):
            if code is not None:
                paired = None not in codes
                yield entity_of(
                    row, items[row], modality=modality, code=code, model=generation.fingerprint, both=paired
                )


def _write(table: Table, entities: Sequence[dict[str, Any]]) -> None:
    for modality in MODALITIES:
        of_modality = [each for each in entities if each["key"] % 2 == MODALITIES.index(modality)]
        for batch in _batches(of_modality):
            table.upsert(batch, partition=modality)


def _batches(entities: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Entities that go into one message, by the length of their strings."""
    batch: list[dict[str, Any]] = []
    size = 0
    for entity in entities:
        length = sum(map(len, (entity["id"], entity["text"], entity["picture"], *entity["labels"])))
        if batch and size + length > _BATCH:
            yield batch
            batch, size = [], 0
        batch.append(entity)
        size += length
    if batch:
        yield batch


def _former(table: Table, place: Address, *, library: str, drop: bool) -> list[str]:
    """Collections of other models of this library, those that were not dropped."""
    kept = []
    for name in table.neighbours():
        if name == table.address.name or not is_filled(name, place):
            continue
        other = Table.find(Address(place.server, name), settings=Settings.read())
        if other is None or other.about.get("library") != library:
            continue
        if drop:
            other.drop()
        else:
            kept.append(name)
    return kept
