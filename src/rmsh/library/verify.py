"""Checking a library for damage: database, full-text index, items, codes, snapshot, model and manifest.

The checksum of a row is computed when the row is written, and the snapshot is only ever written from rows that match
their checksums. Where the two differ, a row that matches its checksum is right; otherwise the snapshot is right, if it
matches its own checksums.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.codes import to_words
from rmsh.core.errors import FormatError, RmshError
from rmsh.core.types import MODALITIES
from rmsh.library.database import connect_reader, connect_writer, primary_code, translate_errors
from rmsh.library.folder import check_is_library, load_model, read_manifest
from rmsh.library.queries import (
    CODE_ROW,
    code_blocks,
    damaged_code_rows,
    damaged_item_message,
    generation_of,
    id_of_row,
    library_id,
    missing_item_message,
    ranges_removed,
    stored_items,
)
from rmsh.library.schema import check_version, is_item_intact
from rmsh.library.snapshot import open_snapshot

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
    try:
        read_manifest(folder)
        with translate_errors(folder), closing(connect_reader(folder)) as connection:
            check_version(connection, folder)
            connection.execute("BEGIN")
            return _run_checks(folder, connection)
    except RmshError as error:
        return Verification(("manifest and database",), (str(error),))


def _run_checks(folder: Path, connection: sqlite3.Connection) -> Verification:
    checks: dict[str, Callable[[Path, sqlite3.Connection], Iterator[str]]] = {
        "database": _check_database,
        "full-text index": _check_texts,
        "items, codes and snapshot": _check_rows,
        "model": _check_model,
        "manifest": _check_manifest,
    }
    if not os.access(folder, os.W_OK):
        del checks["full-text index"]  # SQLite checks it over a writable connection only
    problems: list[str] = []
    for check in checks.values():
        try:
            with translate_errors(folder):
                problems += itertools.islice(check(folder, connection), _MAX_REPORTED + 1)
        except RmshError as error:
            problems.append(str(error))
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
    yield from itertools.islice(damage.messages(), _MAX_REPORTED)
    if damage.snapshot_problem:
        yield damage.snapshot_problem


def _check_model(folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    generation = generation_of(connection)
    bits = load_model(folder, generation).bits
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
    """The codes of an intact snapshot, without rows that were removed since."""

    bits: int
    of: Mapping[Modality, tuple[IntArray, WordArray]]  # rows, int64 (n,) increasing, and words, uint64 (n, width)

    def rows(self) -> IntArray:
        """Every row that has a code, int64 (n,) increasing."""
        return np.unique(np.concatenate([rows for rows, _ in self.of.values()]))

    def packed(self, row: int, modality: Modality) -> bytes | None:
        """The code of a row as the database stores it, or None."""
        rows, words = self.of[modality]
        at = int(np.searchsorted(rows, row))
        if at == len(rows) or rows[at] != row:
            return None
        packed: bytes = words[at].astype("<u8").tobytes()
        return packed[: -(-self.bits // 8)]


@dataclass(frozen=True)
class Damage:
    """The damaged rows of a library."""

    items: Mapping[int, str]  # a message for each row whose item is damaged or missing
    codes: frozenset[tuple[int, int]]  # row and generation of damaged codes
    uncoded: frozenset[int]  # rows whose codes of the current generation are missing
    names: Mapping[int, str | None]  # the ID of each row above, as far as it is known
    snapshot: SnapshotCodes | None  # None if there is no intact snapshot
    snapshot_problem: str | None  # a message if the snapshot is damaged, or differs from intact rows

    @property
    def in_database(self) -> bool:
        """Whether the database is damaged."""
        return bool(self.items or self.codes or self.uncoded)

    def messages(self) -> Iterator[str]:
        """One message per damaged row of the database."""
        yield from self.items.values()
        for row in sorted({row for row, _ in self.codes} | self.uncoded):
            if row in self.items and not self.names.get(row):
                continue  # the whole item is missing, which was reported above
            problem = "are missing" if row in self.uncoded else "do not match their checksum"
            if self.snapshot is not None and any(self.snapshot.packed(row, m) for m in MODALITIES):
                remedy = "the snapshot has an intact copy: run `rmsh library repair`."
            else:
                remedy = "run `rmsh library repair --backup BACKUP`."
            yield f"The codes of the item {self.names.get(row)!r} (row {row}) {problem} in the database; {remedy}"


def find_damage(folder: Path, connection: sqlite3.Connection) -> Damage:
    """Compare every row with its checksum, and the snapshot with the database.

    Damage to the structure of the database raises sqlite3.DatabaseError.
    """
    snapshot, problem = None, None
    try:
        opened = open_snapshot(folder, connection)
        if opened is not None:
            snapshot = _existing_codes(opened, connection)
            problem = _difference(opened, snapshot, connection)
    except FormatError as error:
        snapshot, problem = None, f"{error}; searches use the database instead, and `rmsh library compact` rewrites it."
    in_snapshot = np.empty(0, dtype=np.int64) if snapshot is None else snapshot.rows()
    codes = frozenset(_damaged_codes(connection))
    current = generation_of(connection).number
    uncoded = _rows_without_codes(connection, current, in_snapshot) - {
        row for row, number in codes if number == current
    }
    items = dict(_damaged_items(connection, in_snapshot))
    names = {row: id_of_row(connection, row) for row in {*items, *uncoded, *(row for row, _ in codes)}}
    return Damage(items, codes, frozenset(uncoded), names, snapshot, problem)


def _existing_codes(snapshot: Snapshot, connection: sqlite3.Connection) -> SnapshotCodes:
    """The codes of a snapshot, checked, without rows that were removed since; FormatError if it is damaged."""
    removed = ranges_removed(connection, snapshot.stamp.seq)
    kept = {}
    for modality in MODALITIES:
        rows, words = snapshot.arrays(modality)
        alive = np.ones(len(rows), dtype=np.bool_)
        for begin, end in np.searchsorted(rows, removed + np.array([0, 1])):
            alive[begin:end] = False
        kept[modality] = (rows, words) if alive.all() else (rows[alive], words[alive])
    return SnapshotCodes(snapshot.stamp.bits, kept)


def _difference(snapshot: Snapshot, codes: SnapshotCodes, connection: sqlite3.Connection) -> str | None:
    """A message if the snapshot lacks an intact row of the database, or has another code for it."""
    later = "SELECT min(first) FROM changes WHERE seq > ? AND kind = 'add'"
    (first_later,) = connection.execute(later, (snapshot.stamp.seq,)).fetchone()
    generation = generation_of(connection)
    for modality in MODALITIES:
        rows, words = codes.of[modality]
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


def _damaged_codes(connection: sqlite3.Connection) -> Iterator[tuple[int, int]]:
    bits = dict(connection.execute("SELECT generation, bits FROM generations"))
    for each in connection.execute(CODE_ROW):
        if each[1] not in bits or damaged_code_rows([each], bits[each[1]]):
            yield each[:2]


def _rows_without_codes(connection: sqlite3.Connection, generation: int, in_snapshot: IntArray) -> set[int]:
    without = "SELECT row FROM items WHERE row NOT IN (SELECT row FROM codes WHERE generation = ?)"
    coded = _rows(connection, "SELECT row FROM codes WHERE generation = ?", generation)
    lost = np.setdiff1d(in_snapshot, coded, assume_unique=True)
    return {*_rows(connection, without, generation).tolist(), *lost.tolist()}


def _rows(connection: sqlite3.Connection, statement: str, *values: int) -> IntArray:
    return np.fromiter((row for (row,) in connection.execute(statement, values)), dtype=np.int64)


def _damaged_items(connection: sqlite3.Connection, in_snapshot: IntArray) -> Iterator[tuple[int, str]]:
    existing = _rows(connection, "SELECT row FROM items ORDER BY row")
    for begin in range(0, len(existing), _BLOCK):
        for stored in stored_items(connection, existing[begin : begin + _BLOCK].tolist()):
            if not is_item_intact(stored):
                yield stored[0], damaged_item_message(stored[0], stored[1])
    orphans = "SELECT row FROM codes UNION SELECT row FROM item_labels EXCEPT SELECT row FROM items"
    missing = {*_rows(connection, orphans).tolist(), *np.setdiff1d(in_snapshot, existing, assume_unique=True).tolist()}
    for row in sorted(missing):
        yield row, missing_item_message(row)
