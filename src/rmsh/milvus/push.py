"""Copy a library, or the shards of `rmsh encode`, to a Milvus server, and later only what has changed.

A push compares blocks of rows, several at a time: it reads the keys and digests of the collection, writes what is
missing or different, and at the end deletes what is no longer there, so that the new version of an updated item is
written before the old one is deleted. It keeps no record, so an interrupted push can be repeated without writing
anything twice. If the server is unavailable for a while, calls are repeated. While a push runs, a collection called
``NAME_push`` without entities is its lock.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rmsh.core.errors import InputError, RmshError
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.core.types import MODALITIES
from rmsh.library import queries
from rmsh.library.queries import Generation, generation_of
from rmsh.milvus.collection import entity_of, key_of
from rmsh.milvus.connection import Address
from rmsh.milvus.table import MAX_FOUND, Table, both
from rmsh.shards import MOST_ITEMS, Coded, Shards

if TYPE_CHECKING:
    from rmsh.library import Library

_ROWS = 8_000  # per block, so that one call returns the keys of both modalities
_PARALLEL = 4  # blocks
_BATCH = 1 << 22  # characters of strings per message; Milvus allows 64 MB
_PATIENCE = 600.0  # seconds without the server

# Rows from the first to before the second number, or all further ones, and what they should have.
_Block: TypeAlias = tuple[int, int | None, Iterable[tuple[int, Coded]]]


@dataclass
class Pushed:
    """The result of a push."""

    collection: str  # name of the collection that the address now refers to
    written: int = 0  # number of codes
    removed: int = 0
    former: list[str] = field(default_factory=list)  # remaining collections of other models


class _LibraryRows:
    """The rows of a library; a part is a block, given by its first row, and read in a transaction of its own."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._seen: int | None = None  # number of the last change
        self._top = 0  # first row of the last block
        with library.reading() as connection:
            self.owner, self.generation = queries.facts_of(connection).id, generation_of(connection)

    def parts(self) -> Sequence[int]:
        """The parts to copy: at first all of them, and then those that have changed meanwhile."""
        with self._library.reading() as connection:
            last = queries.last_row(connection)
            changes = [("", 0, last)] if self._seen is None else queries.changes_since(connection, self._seen)
            self._seen, self._top = queries.last_change(connection)[0], last // _ROWS * _ROWS
        firsts = {row for _, first, last in changes for row in range(first // _ROWS * _ROWS, last + 1, _ROWS)}
        return sorted(firsts, reverse=True)

    def blocks(self, part: int) -> Iterator[_Block]:
        with self._library.reading() as connection:
            if generation_of(connection) != self.generation:
                raise RmshError("The library was recoded during the push; push it again.")
            found = queries.coded_items(connection, part, part + _ROWS)
            vectors = queries.vectors_of_rows(connection, [row for row, *_ in found])
        rows = [
            (row, Coded(item, dict(zip(MODALITIES, codes, strict=True)), {m: vectors[m].get(row) for m in MODALITIES}))
            for row, item, *codes in found
        ]
        yield part, None if part >= self._top else part + _ROWS, rows


class _ShardRows:
    """The rows of shards, which are parts."""

    def __init__(self, shards: Shards) -> None:
        self._shards, about = shards, shards.manifest
        self._left = list(range(len(about["shards"])))
        self.owner, self.generation = about["id"], Generation(1, about["model"], about["bits"])

    def parts(self) -> Sequence[int]:
        left, self._left = self._left, []
        return left

    def blocks(self, part: int) -> Iterator[_Block]:
        first = part * MOST_ITEMS
        for rows in self._shards.read(part):
            yield first, first + len(rows), enumerate(rows, start=first)
            first += len(rows)
        yield first, (part + 1) * MOST_ITEMS if part + 1 < len(self._shards.manifest["shards"]) else None, ()


_Source: TypeAlias = _LibraryRows | _ShardRows


def push(
    source: Library | Shards, address: str, *, drop_former: bool = False, on_progress: OnProgress = ignore
) -> Pushed:
    """Make a collection equal to a library or shards; codes of a new model become visible when all of them are stored.

    ``drop_former`` drops collections of former models of this library; readers that have one open will fail.

    Raises:
        InputError: the address is invalid or belongs to another library, or an item is too large.
        FormatError: the collection was made by another program, or for approximate search by an older rmsh.
        RmshError: another push is running, or the server is unreachable or reports an error; repeat the push to
            continue.
    """
    alias = Address.parse(address)
    rows: _Source = _ShardRows(source) if isinstance(source, Shards) else _LibraryRows(source)
    with _locked(alias):
        table = _open_table(alias, rows.generation, owner=rows.owner)
        try:
            table.patience = _PATIENCE
            done = _copy(table, rows, on_progress)
            table.flush()
            table.set_alias(alias.name)
            done.former = _former(table, alias, owner=rows.owner, drop=drop_former)
        finally:
            table.close()
    return done


@contextmanager
def _locked(alias: Address) -> Iterator[None]:
    """Hold the lock of a name; one that was left behind by a process of this machine is removed."""
    place = Address(alias.server, f"{alias.name}_push")
    mine = {"host": socket.gethostname(), "process": os.getpid()}
    while (found := Table.find(place)) is not None:
        host, process, since = (found.about.get(name) for name in ("host", "process", "since"))
        gone = process == mine["process"] or not (Path("/proc") / str(process)).exists()
        if host != mine["host"] or sys.platform != "linux" or not gone:
            other = f"process {process} on {host}, since {since}"
            raise RmshError(f"{alias} is being pushed by {other}; wait for it. If it is gone, drop {place.name}.")
        found.drop()
    lock = Table.create(place, 8, **mine, since=datetime.now(UTC).isoformat(timespec="seconds"))
    try:
        yield
    finally:
        with suppress(RmshError):
            lock.drop()
        lock.close()


def _open_table(alias: Address, generation: Generation, *, owner: str) -> Table:
    """Open or create the collection to fill."""
    current = Table.find(alias)
    if current is not None and current.about.get("library") != owner:
        raise InputError(f"{alias} belongs to another library; give another name, or drop it in Milvus first.")
    target = Address(alias.server, f"{alias.name}_{generation.fingerprint}")
    table = Table.find(target)
    if table is None:
        about = {"model": generation.fingerprint, "generation": generation.number, "library": owner}
        table = Table.create(target, generation.bits, **about)
    table.prepare()
    return table


def _copy(table: Table, source: _Source, on_progress: OnProgress) -> Pushed:
    done, gone, begin = Pushed(table.address.name), set[int](), time.perf_counter()
    with ThreadPoolExecutor(_PARALLEL, thread_name_prefix="rmsh-push") as pool:
        while parts := source.parts():
            for count, (written, missing) in enumerate(pool.map(partial(_copy_part, table, source), parts), start=1):
                gone = (gone | missing) - written
                done.written += len(written)
                values = {"written": done.written}
                on_progress(Progress("push", count, len(parts), "part", time.perf_counter() - begin, values))
    table.delete(sorted(gone))
    done.removed = len(gone)
    return done


def _copy_part(table: Table, source: _Source, part: int) -> tuple[set[int], set[int]]:
    """Write the codes of a part that the collection lacks; returns their keys, and those of codes to delete."""
    written, gone = set[int](), set[int]()
    for first, end, rows in source.blocks(part):
        wanted = {entity["key"]: entity for row, coded in rows for entity in _entities(row, coded, table)}
        digests = _digests(table, first, end)
        gone |= digests.keys() - wanted.keys()
        changed = [entity for key, entity in wanted.items() if digests.get(key) != entity["digest"]]
        for modality in MODALITIES:
            for batch in _batches([each for each in changed if each["key"] % 2 == MODALITIES.index(modality)]):
                table.upsert(batch, partition=modality)
        written |= {entity["key"] for entity in changed}
    return written, gone


def _digests(table: Table, first: int, end: int | None) -> dict[int, int]:
    """The digests of the collection, by key, for rows from the first to before the end."""
    found: dict[int, int] = {}
    key, before = key_of(first, MODALITIES[0]), "" if end is None else f"key < {key_of(end, MODALITIES[0])}"
    while True:
        some = table.query(both(f"key >= {key}", before), ["key", "digest"])
        found |= {int(entity["key"]): int(entity["digest"]) for entity in some}
        if len(some) < MAX_FOUND:
            return found
        key = max(found) + 1


def _entities(row: int, coded: Coded, table: Table) -> Iterator[dict[str, Any]]:
    shared: dict[str, Any] = {"model": table.about["model"], "both": None not in coded.codes.values()}
    for modality, code in coded.codes.items():
        if code is not None:
            vector = (coded.vectors[modality] or b"") if table.has_vectors else None
            yield entity_of(row, coded.item, modality=modality, code=code, vector=vector, **shared)


def _batches(entities: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Split entities into messages by the length of their strings."""
    batch, size = list[dict[str, Any]](), 0
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
    for other in former if drop else ():
        other.drop()
    return [] if drop else [other.address.name for other in former]


def is_filled(name: str, alias: Address) -> bool:
    """Whether the name of a collection is that of the alias with a fingerprint."""
    return re.fullmatch(f"{alias.name}_[0-9a-f]{{16}}", name) is not None
