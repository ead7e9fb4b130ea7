"""Whether a library is whole: the database, the full-text index, the codes, the model, the manifest, the snapshot."""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rmsh.core.errors import RmshError
from rmsh.library.damage import find_damage
from rmsh.library.database import connect_reader, connect_writer, explained
from rmsh.library.folder import check_is_library, load_model, read_manifest
from rmsh.library.queries import generation_of
from rmsh.library.schema import check_version

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
        "items, codes and snapshot": _rows,
        "model": _model,
        "manifest": _manifest,
    }
    if not os.access(folder, os.W_OK):
        del checks["full-text index"]  # SQLite checks it over a connection that could write
    problems: list[str] = []
    for check in checks.values():
        try:
            with explained(folder):
                problems += itertools.islice(check(folder, connection), _MOST + 1)
        except RmshError as error:
            problems.append(str(error))
    return Verdict(tuple(checks), tuple(dict.fromkeys(problems)))


def _database(folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    for (found,) in connection.execute(f"PRAGMA integrity_check({_MOST})"):
        if found != "ok":
            yield f"The database of {folder} is damaged ({found}); restore a backup with `rmsh library restore`."
    for table, _, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"An entry of {table} has no {parent}; restore a backup with `rmsh library restore`."


def _texts(folder: Path, _connection: sqlite3.Connection) -> Iterator[str]:
    with closing(connect_writer(folder, timeout=30.0)) as connection:
        if not texts_agree(connection):
            yield "The full-text index does not agree with the texts; `rmsh library compact` rebuilds it."


def texts_agree(connection: sqlite3.Connection) -> bool:
    """Whether the full-text index is whole and of the texts; asked over a connection that could write."""
    try:
        connection.execute("INSERT INTO texts (texts, rank) VALUES ('integrity-check', 1)")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        return False
    return True


def _rows(folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    """Rows that do not match their checksum, then a snapshot that is damaged or differs from intact rows."""
    damage = find_damage(folder, connection)
    yield from itertools.islice(damage.sentences(), _MOST)
    if damage.snapshot_problem:
        yield damage.snapshot_problem


def _model(folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    generation = generation_of(connection)
    bits = load_model(folder, generation).bits
    if bits != generation.bits:
        yield (
            f"The model makes codes of {bits} bits, the library's have {generation.bits}; restore a backup "
            "with `rmsh library restore`."
        )


def _manifest(folder: Path, connection: sqlite3.Connection) -> Iterator[str]:
    manifest = read_manifest(folder)
    (name,) = connection.execute("SELECT id FROM library").fetchone()
    # An older model of this library may still be named: a recoding was cut off, and the next writer ends it.
    known = connection.execute(
        "SELECT fingerprint, bits FROM generations WHERE generation <= (SELECT generation FROM library)"
    )
    if manifest.get("id") != name or (manifest.get("model"), manifest.get("bits")) not in known.fetchall():
        yield f"manifest.json of {folder} does not agree with the database; `rmsh library upgrade` rewrites it."
