"""Copy a library to a Milvus server, and later only what has changed.

A push compares a block of rows at a time: it reads the keys and digests of the collection, writes what is missing or
different, and deletes what the library no longer has. It keeps no record, so an interrupted push can be repeated
without writing anything twice. Later rows come first: the new version of an updated item is written before the old one
is deleted.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rmsh.core.errors import InputError
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.core.types import MODALITIES
from rmsh.library.queries import coded_items, generation_of, last_row, library_id, vectors_of_rows
from rmsh.milvus.collection import entity_of, key_of
from rmsh.milvus.connection import Address
from rmsh.milvus.table import MAX_FOUND, Table, both

if TYPE_CHECKING:
    from rmsh.library import Library
    from rmsh.library.queries import Generation

_ROWS = MAX_FOUND // len(MODALITIES)  # per block, so that one call returns all keys
_BATCH = 1 << 22  # characters of strings per message; Milvus allows 64 MB


@dataclass
class Pushed:
    """The result of a push."""

    collection: str  # name of the collection that the address now refers to
    written: int = 0  # number of codes
    removed: int = 0
    former: list[str] = field(default_factory=list)  # remaining collections of other models


def push(library: Library, address: str, *, drop_former: bool = False, on_progress: OnProgress = ignore) -> Pushed:
    """Make a collection equal to the library; codes of a new model become visible only when all of them are stored.

    ``drop_former`` drops collections of former models of this library; readers that have one open will fail.

    Raises:
        InputError: the address is invalid or belongs to another library, or an item is too large.
        FormatError: the collection was made by another program, or for approximate search by an older rmsh.
        RmshError: the server is unreachable or reports an error; repeat the push to continue.
    """
    alias = Address.parse(address)
    with library.reading() as connection:
        owner = library_id(connection)
        table = _open_table(alias, generation_of(connection), owner=owner)
        try:
            done = _copy(table, connection, on_progress)
            table.flush()
            table.set_alias(alias.name)
            done.former = _former(table, alias, owner=owner, drop=drop_former)
        finally:
            table.close()
    return done


def _open_table(alias: Address, generation: Generation, *, owner: str) -> Table:
    """Open or create the collection to fill."""
    current = Table.find(alias)
    if current is not None and current.about.get("library") != owner:
        raise InputError(f"{alias} belongs to another library; give another name, or drop it in Milvus first.")
    target = Address(alias.server, f"{alias.name}_{generation.fingerprint}")
    table = Table.find(target)
    if table is None:
        about = {"model": generation.fingerprint, "generation": generation.number, "library": owner}
        return Table.create(target, generation.bits, **about)
    table.prepare()
    return table


def _copy(table: Table, connection: sqlite3.Connection, on_progress: OnProgress) -> Pushed:
    done, begin = Pushed(table.address.name), time.perf_counter()
    starts = range(last_row(connection) // _ROWS * _ROWS, -1, -_ROWS)
    done.removed += _delete_from(table, key_of(starts[0] + _ROWS, MODALITIES[0]))
    for count, start in enumerate(starts, 1):
        wanted = {entity["key"]: entity for entity in _entities(connection, start, table=table)}
        first, end = (key_of(row, MODALITIES[0]) for row in (start, start + _ROWS))
        found = table.query(both(f"key >= {first}", f"key < {end}"), ["key", "digest"])
        digests = {int(entity["key"]): int(entity["digest"]) for entity in found}
        gone = sorted(digests.keys() - wanted.keys())
        changed = [entity for key, entity in wanted.items() if digests.get(key) != entity["digest"]]
        for modality in MODALITIES:
            for batch in _batches([each for each in changed if each["key"] % 2 == MODALITIES.index(modality)]):
                table.upsert(batch, partition=modality)
        table.delete(gone)
        done.written, done.removed = done.written + len(changed), done.removed + len(gone)
        values = {"written": done.written, "removed": done.removed}
        on_progress(Progress("push", count, len(starts), "block", time.perf_counter() - begin, values))
    return done


def _delete_from(table: Table, key: int) -> int:
    """Delete all keys from one on: rows that the library has not assigned yet, as after restoring a backup."""
    removed = 0
    while found := table.query(f"key >= {key}", ["key"]):
        table.delete([int(entity["key"]) for entity in found])
        removed += len(found)
    return removed


def _entities(connection: sqlite3.Connection, start: int, *, table: Table) -> Iterator[dict[str, Any]]:
    """The entities that the block of rows from ``start`` on should have."""
    found = coded_items(connection, start, start + _ROWS)
    vectors = vectors_of_rows(connection, [row for row, *_ in found])
    for row, item, *codes in found:
        shared: dict[str, Any] = {"model": table.about["model"], "both": None not in codes}
        for modality, code in zip(MODALITIES, codes, strict=True):
            if code is not None:
                vector = bytes(vectors[modality].get(row, b"")) if table.has_vectors else None
                yield entity_of(row, item, modality=modality, code=code, vector=vector, **shared)


def _batches(entities: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Split entities into messages by the length of their strings."""
    batch: list[dict[str, Any]] = []
    size = 0
    for entity in entities:
        strings = (entity["id"], entity["text"], entity["picture"], entity.get("vector", ""), *entity["labels"])
        length = sum(map(len, strings))
        if batch and size + length > _BATCH:
            yield batch
            batch, size = [], 0
        batch.append(entity)
        size += length
    if batch:
        yield batch


def _former(table: Table, alias: Address, *, owner: str, drop: bool) -> list[str]:
    """Drop the collections of other models of this library, or return their names."""
    others = [name for name in table.list_collections() if name != table.address.name and is_filled(name, alias)]
    tables = [Table(Address(alias.server, name)) for name in others]
    former = [other for other in tables if other.about.get("library") == owner]
    if not drop:
        return [other.address.name for other in former]
    for other in former:
        other.drop()
    return []


def is_filled(name: str, alias: Address) -> bool:
    """Whether the name of a collection is that of the alias with a fingerprint."""
    return re.fullmatch(f"{alias.name}_[0-9a-f]{{16}}", name) is not None
