"""Whether a library is whole: the database, the full-text index, the codes, the model, the manifest, the snapshot."""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.codes import to_words
from rmsh.core.errors import FormatError, RmshError
from rmsh.core.types import MODALITIES
from rmsh.index.scan import Scan
from rmsh.library.database import DATABASE, connect_reader, connect_writer, explained
from rmsh.library.folder import check_is_library, load_model, read_manifest
from rmsh.library.queries import code_blocks, generation_of
from rmsh.library.schema import check_version
from rmsh.library.views import Views, open_snapshot

if TYPE_CHECKING:
    from rmsh.core.types import Modality
    from rmsh.library.snapshot import Snapshot

__all__ = ["Verdict", "texts_agree", "verify"]

_MOST = 10  # problems of one kind that are told


@dataclass(frozen=True)
class Verdict:
    """What was checked, and every problem found as one sentence; a library without problems is whole."""

    checked: tuple[str, ...]
    problems: tuple[str, ...]


def verify(folder: Path) -> Verdict:
    """Check everything a library consists of; nothing is changed.

    Raises:
        FormatError: there is nothing of a library.
    """
    check_is_library(folder)
    try:
        read_manifest(folder)
        with explained(folder), closing(connect_reader(folder)) as connection:
            check_version(connection, folder)
            connection.execute("BEGIN")
            return _run(folder, connection)
    except RmshError as error:
        return Verdict(("manifest and database",), (str(error),))


def _run(folder: Path, connection: sqlite3.Connection) -> Verdict:
    checks: dict[str, Callable[[Path, sqlite3.Connection], Iterator[str]]] = {
        "database": _database,
        "full-text index": _texts,
        "codes": _codes,
        "model": _model,
        "manifest": _manifest,
        "snapshot": _snapshot,
    }
    if not os.access(folder, os.W_OK):
        del checks["full-text index"]  # SQLite checks it over a connection that could write
    problems: list[str] = []
    for check in checks.values():
        try:
            with explained(folder):
                problems += itertools.islice(check(folder, connection), _MOST)
        except RmshError as error:
            problems.append(str(error))
    return Verdict(tuple(checks), tuple(dict.fromkeys(problems)))


def _database(folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    for (found,) in connection.execute(f"PRAGMA integrity_check({_MOST})"):
        if found != "ok":
            yield f"The database of {folder} is damaged ({found}); put {DATABASE} back from a backup."
    for table, _, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"An entry of {table} has no {parent}; put {DATABASE} back from a backup."


def _texts(folder: Path, _connection: sqlite3.Connection) -> Iterator[str]:
    with closing(connect_writer(folder, timeout=30.0)) as connection:
        if not texts_agree(connection):
            yield "The full-text index does not agree with the texts; `rmsh library compact` builds it anew."


def texts_agree(connection: sqlite3.Connection) -> bool:
    """Whether the full-text index is whole and of the texts; asked over a connection that could write."""
    try:
        connection.execute("INSERT INTO texts (texts, rank) VALUES ('integrity-check', 1)")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        return False
    return True


def _codes(_folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    generation = generation_of(connection)
    without = (
        "SELECT id FROM items WHERE NOT EXISTS (SELECT 1 FROM codes WHERE codes.row = items.row AND generation = ?)"
    )
    for (name,) in connection.execute(f"{without} LIMIT {_MOST}", (generation.number,)):
        yield f"The item {name!r} has no code of the model {generation.fingerprint}; update it."
    wrong = """
        SELECT DISTINCT items.id FROM codes JOIN generations USING (generation) JOIN items USING (row)
        WHERE length(image) != (bits + 7) / 8 OR length(codes.text) != (bits + 7) / 8
    """
    for (name,) in connection.execute(f"{wrong} LIMIT {_MOST}"):
        yield f"A code of the item {name!r} has another length than its model makes; update it."


def _model(folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    generation = generation_of(connection)
    bits = load_model(folder, generation).bits
    if bits != generation.bits:
        yield f"The model makes codes of {bits} bits, the library's have {generation.bits}; put back the right model."


def _manifest(folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    manifest = read_manifest(folder)
    (name,) = connection.execute("SELECT id FROM library").fetchone()
    # An older model of this library may still be named: a recoding was cut off, and the next writer ends it.
    known = connection.execute(
        "SELECT fingerprint, bits FROM generations WHERE generation <= (SELECT generation FROM library)"
    )
    if manifest.get("id") != name or (manifest.get("model"), manifest.get("bits")) not in known.fetchall():
        yield f"manifest.json of {folder} does not agree with the database; `rmsh library upgrade` writes it anew."


def _snapshot(folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    """The codes that searches see, snapshot and changes together, against the codes in the database."""
    try:
        snapshot = open_snapshot(folder, connection)
        wrong = [m for m in MODALITIES if snapshot is not None and not _agrees(folder, connection, snapshot, m)]
    except FormatError as error:
        yield f"{error}; searches use the database instead, and `rmsh library compact` writes it anew."
        return
    for modality in wrong:
        yield f"The {modality} codes of the snapshot are not the database's; `rmsh library compact` writes it anew."


def _agrees(folder: Path, connection: sqlite3.Connection, snapshot: Snapshot, modality: Modality) -> bool:
    snapshot.arrays(modality)  # refuses what has changed on the disk, which a view would pass over
    view = Views(folder, engine=Scan).at(connection, modality)
    places, seen = view.places(), 0
    for true_rows, packed in code_blocks(connection, modality, generation=generation_of(connection)):
        rows, words = view.take(places[seen : seen + len(true_rows)])
        if not (np.array_equal(rows, true_rows) and np.array_equal(words, to_words(packed))):
            return False
        seen += len(true_rows)
    return seen == len(places)
