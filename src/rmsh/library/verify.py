"""Checking a library for damage: database, full-text index, items, codes, snapshot, model and manifest.

The checksum of a row is computed when the row is written, and the snapshot is only ever written from rows that match
their checksums. Where the two differ, a row that matches its checksum is right; otherwise the snapshot is right, if it
matches its own checksums.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.codes import to_words
from rmsh.core.errors import FormatError, RmshError
from rmsh.core.types import MODALITIES
from rmsh.library.database import connect_reader, connect_writer, primary_code, translate_errors
from rmsh.library.folder import check_is_library, find_model, read_manifest
from rmsh.library.queries import (
    CODE_ROW,
    VECTOR_ROW,
    code_blocks,
    damaged_code_rows,
    generation_of,
    has_vectors,
    id_of_row,
    intact_items,
    is_removed,
    library_id,
)
from rmsh.library.schema import check_version, is_code_row_intact
from rmsh.library.snapshot import open_snapshot
from rmsh.model import load

if TYPE_CHECKING:
    from rmsh.core.types import IntArray, Modality, WordArray
    from rmsh.library.snapshot import Snapshot

_MAX_REPORTED = 10  # problems of one kind
_BLOCK = 1 << 14  # items in memory at once


@dataclass(frozen=True)
class Verification:
    """The checks that were made, and a message for each problem found."""

    checked: tuple[str, ...]
    problems: tuple[str, ...]


def verify(folder: Path) -> Verification:
    """Check every part of a library without changing it; FormatError if there is no library."""
    check_is_library(folder)
    checks: dict[str, Callable[[Path, sqlite3.Connection], Iterator[str]]] = {
        "database": _check_database,
        "full-text index": _check_texts,
        "items, codes and snapshot": _check_rows,
        "vectors": _check_vectors,
        "model": _check_model,
        "manifest": _check_manifest,
    }
    if not os.access(folder, os.W_OK):
        del checks["full-text index"]  # SQLite checks it over a writable connection only
    problems: list[str] = []
    try:
        read_manifest(folder)
        with translate_errors(folder), closing(connect_reader(folder)) as connection:
            check_version(connection, folder)
            connection.execute("BEGIN")
            for check in checks.values():
                try:
                    with translate_errors(folder):
                        problems += itertools.islice(check(folder, connection), _MAX_REPORTED + 1)
                except RmshError as error:
                    problems.append(str(error))
    except RmshError as error:
        return Verification(("manifest and database",), (str(error),))
    return Verification(tuple(checks), tuple(dict.fromkeys(problems)))


def _check_database(folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    for (found,) in connection.execute(f"PRAGMA integrity_check({_MAX_REPORTED})"):
        if found != "ok":
            yield f"The database of {folder} is damaged ({found}); restore a backup with `rmsh library restore`."
    for table, _, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"An entry of {table} has no {parent}; restore a backup with `rmsh library restore`."


def _check_texts(folder: Path, _connection: sqlite3.Connection) -> Iterator[str]:
    with closing(connect_writer(folder, timeout=30.0)) as connection:
        if not is_text_index_intact(connection):
            yield "The full-text index does not match the texts; `rmsh library compact` rebuilds it."


def is_text_index_intact(connection: sqlite3.Connection) -> bool:
    """Whether the full-text index matches the texts; needs a writable connection."""
    try:
        connection.execute("INSERT INTO texts (texts, rank) VALUES ('integrity-check', 1)")
    except sqlite3.DatabaseError as error:
        if primary_code(error) != sqlite3.SQLITE_CORRUPT:
            raise
        return False
    return True


def _check_rows(folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    damage = find_damage(folder, connection)
    yield from damage.messages[:_MAX_REPORTED]
    if damage.snapshot_problem:
        yield damage.snapshot_problem


def _check_vectors(_folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    for row in sorted({row for row, _ in damaged_vectors(connection)}):
        name = id_of_row(connection, row)
        yield f"The vectors of the item {name!r} (row {row}) do not match their checksum; run `rmsh library repair`."


def damaged_vectors(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    """Row and generation of vectors that do not match their checksum."""
    found = connection.execute(VECTOR_ROW) if has_vectors(connection) else ()
    return [each[:2] for each in found if not is_code_row_intact(*each)]


def _check_model(folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    generation = generation_of(connection)
    bits = load(find_model(folder, generation)).bits
    if bits != generation.bits:
        yield (
            f"The model has {bits} bits, the codes of the library {generation.bits}; restore a backup with "
            "`rmsh library restore`."
        )


def _check_manifest(folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    manifest = read_manifest(folder)
    # The manifest may name an older model if recoding was interrupted; the next writer completes it.
    known = connection.execute(
        "SELECT fingerprint, bits FROM generations WHERE generation <= (SELECT generation FROM library)"
    ).fetchall()
    if manifest.get("id") != library_id(connection) or (manifest.get("model"), manifest.get("bits")) not in known:
        yield f"manifest.json of {folder} does not match the database; `rmsh library upgrade` rewrites it."


@dataclass(frozen=True, eq=False)
class SnapshotCodes:
    """The codes of an intact snapshot, without rows that were removed since; none if there is no such snapshot."""

    bits: int
    of: Mapping[Modality, tuple[IntArray, WordArray]]  # rows, int64 (n,) increasing, and words, uint64 (n, width)

    def packed(self, row: int) -> tuple[bytes | None, ...]:
        """The image code and the text code of a row as the database stores them, or None."""
        codes: list[bytes | None] = []
        for rows, words in self.of.values():
            at = int(np.searchsorted(rows, row))
            exists = at < len(rows) and rows[at] == row
            codes.append(words[at].astype("<u8").tobytes()[: -(-self.bits // 8)] if exists else None)
        return tuple(codes)


@dataclass(frozen=True, eq=False)
class Damage:
    """The damaged rows of a library."""

    messages: tuple[str, ...]  # about the database, one per damaged or missing item and row of codes
    items: Collection[int]  # rows whose item is damaged or missing
    codes: Collection[tuple[int, int]]  # row and generation of codes that are damaged or missing
    snapshot: SnapshotCodes
    snapshot_problem: str | None  # a message if the snapshot is damaged, or differs from intact rows


def find_damage(folder: Path, connection: sqlite3.Connection) -> Damage:
    """Compare every row with its checksum, and the snapshot with the database.

    Damage to the structure of the database raises sqlite3.DatabaseError.
    """
    snapshot, problem = _read_snapshot(folder, connection)
    tables = "SELECT row FROM items UNION SELECT row FROM codes UNION SELECT row FROM item_labels"
    mentioned = np.unique(np.concatenate([_rows(connection, tables), *(rows for rows, _ in snapshot.of.values())]))
    items: dict[int, str] = {}
    for begin in range(0, len(mentioned), _BLOCK):
        items |= intact_items(connection, mentioned[begin : begin + _BLOCK])[1]
    bits = dict(connection.execute("SELECT generation, bits FROM generations"))
    damaged = {
        each[:2]
        for each in connection.execute(CODE_ROW)
        if each[1] not in bits or damaged_code_rows([each], bits[each[1]])
    }
    current = generation_of(connection).number
    coded = _rows(connection, "SELECT row FROM codes WHERE generation = ?", current)
    missing = {(row, current) for row in np.setdiff1d(mentioned, coded, assume_unique=True).tolist()}
    messages = list(items.values())
    for row in sorted({row for row, _ in damaged | missing}):
        name = id_of_row(connection, row)
        if name is None:
            continue  # the whole item is missing, which was reported above
        state = "are missing" if (row, current) in missing else "do not match their checksum"
        if any(snapshot.packed(row)):
            remedy = "the snapshot has an intact copy: run `rmsh library repair`."
        else:
            remedy = "run `rmsh library repair --backup BACKUP`."
        messages.append(f"The codes of the item {name!r} (row {row}) {state} in the database; {remedy}")
    return Damage(tuple(messages), items.keys(), damaged | missing, snapshot, problem)


def _read_snapshot(folder: Path, connection: sqlite3.Connection) -> tuple[SnapshotCodes, str | None]:
    """The codes of the snapshot, and a message if it is damaged or differs from the database."""
    bits = generation_of(connection).bits
    empty = np.empty(0, dtype=np.int64), np.empty((0, -(-bits // 64)), dtype=np.uint64)
    kept = dict.fromkeys(MODALITIES, empty)
    try:
        snapshot = open_snapshot(folder, connection)
        if snapshot is None:
            return SnapshotCodes(bits, kept), None
        arrays = {modality: snapshot.arrays(modality) for modality in MODALITIES}
    except FormatError as error:
        problem = f"{error}; searches use the database instead, and `rmsh library compact` rewrites it."
        return SnapshotCodes(bits, kept), problem
    for modality, (rows, words) in arrays.items():
        alive = ~is_removed(connection, rows, since=snapshot.stamp.seq)
        kept[modality] = (rows, words) if alive.all() else (rows[alive], words[alive])
    codes = SnapshotCodes(bits, kept)
    return codes, _difference(snapshot, codes, connection)


def _difference(snapshot: Snapshot, codes: SnapshotCodes, connection: sqlite3.Connection) -> str | None:
    """A message if the snapshot lacks an intact row of the database, or has another code for it."""
    later = "SELECT min(first) FROM changes WHERE seq > ? AND kind = 'add'"
    (first_later,) = connection.execute(later, (snapshot.stamp.seq,)).fetchone()
    generation = generation_of(connection)
    for modality, (rows, words) in codes.of.items():
        for found, packed in code_blocks(connection, modality, generation=generation, on_damage=lambda _: None):
            known = np.ones(len(found), np.bool_) if first_later is None else found < first_later
            at = np.searchsorted(rows, found[known])
            if not (
                (at < len(rows)).all()
                and np.array_equal(rows[at], found[known])
                and np.array_equal(words[at], to_words(packed)[known])
            ):
                return (
                    f"The {modality} codes of the snapshot {snapshot.path} differ from the database, where they match "
                    "their checksums; `rmsh library compact` rewrites the snapshot."
                )
    return None


def _rows(connection: sqlite3.Connection, statement: str, *values: int) -> IntArray:
    return np.fromiter((row for (row,) in connection.execute(statement, values)), dtype=np.int64)
