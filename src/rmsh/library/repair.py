"""Repairing damaged rows of a library from an intact copy: codes from the snapshot, anything from a backup.

A copy is used only if it is certainly the right one: it matches its own checksum, and it either has the checksum that
the damaged row should have, or comes from the same history, in which rows never change.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from rmsh.core.errors import FormatError, InputError, RmshError
from rmsh.library import queries, verify
from rmsh.library.database import Writer, connect_reader, read_acknowledged, translate_errors
from rmsh.library.folder import (
    check_is_library,
    find_model,
    install_model,
    read_manifest,
    stage_model,
    write_manifest,
)
from rmsh.library.items import is_intact
from rmsh.library.photos import damaged_photos
from rmsh.library.schema import COUNT_LABELS, KEEP_ROWS, RESTORE, check_version, is_code_row_intact
from rmsh.library.snapshot import SNAPSHOT, write_snapshot
from rmsh.library.writing import insert_codes, insert_labels, log_new_codes
from rmsh.model import load


@dataclass
class RepairResult:
    """What a repair did, as messages."""

    restored: list[str] = field(default_factory=list)  # items, codes and files that are intact again
    lost: list[str] = field(default_factory=list)  # rows that are still damaged, because no intact copy was found


def repair(folder: Path, *, backup: Path | None = None, timeout: float = 30.0) -> RepairResult:
    """Restore damaged rows from the snapshot or a backup of the same library, in one transaction.

    Rows without an intact copy stay as they are. A backup of another library raises InputError; damage to the structure
    of the database, so that rows cannot be read one by one, raises FormatError.
    """
    check_is_library(folder)
    read_manifest(folder)
    result = RepairResult()
    opened = nullcontext(None) if backup is None else _opened(backup, folder)
    with translate_errors(folder), closing(Writer(folder, timeout=timeout)) as writer, opened as other:
        with writer.transaction() as connection:
            check_version(connection, folder)
            _restore_model(folder, queries.generation_of(connection), backup, result)
            _rebuild_indexes(connection, result)
            acknowledged = read_acknowledged(folder)
            lost = queries.lost_changes(connection, acknowledged)
            if any(verify.log_problems(folder, connection)):
                connection.execute("DELETE FROM changes")
                # A later number: the new entry counts as acknowledged after all others, even if this process is killed.
                log_new_codes(connection, after=acknowledged[0] if acknowledged else 0)
                result.restored.append("The log of changes was rewritten.")
            damage = verify.find_damage(folder, connection)
            if other is not None and damage.items:
                result.restored += _restore_items(connection, other, damage.items)
            result.restored += _restore_codes(connection, other, damage)
            result.restored += _restore_vectors(connection, other)
            for row in damaged_photos(connection):
                connection.execute("DELETE FROM photos WHERE row = ?", (row,))
                result.restored.append(f"What was known of the image file of row {row} was deleted; run `rmsh sync`.")
            if any(verify.manifest_problems(folder, connection)):
                write_manifest(folder, connection)
                result.restored.append("The manifest was rewritten.")
            if not verify.is_text_index_intact(connection):
                connection.execute("INSERT INTO texts (texts) VALUES ('rebuild')")
                result.restored.append("The full-text index was rebuilt.")
            after = verify.find_damage(folder, connection)
            if not after.items and any(verify.label_problems(folder, connection)):
                for statement in COUNT_LABELS:
                    connection.execute(statement)
                result.restored.append("The lists of the items with each label were counted again.")
            for problem in verify.structure_problems(connection) if result.restored else ():
                if not problem.startswith("Fragmentation"):  # unused bytes, which `rmsh library compact` frees
                    _refuse(problem)
            if result.restored:
                log_new_codes(connection)
            result.lost += [f"The library {folder} has lost {lost}."] * (lost is not None) + [*after.messages]
        # A snapshot that may have the only intact copy of damaged codes is not overwritten.
        if not after.messages and (damage.snapshot_problem or result.restored):
            with closing(connect_reader(folder)) as connection:
                connection.execute("BEGIN")
                write_snapshot(folder / SNAPSHOT, connection)
            result.restored.append("The snapshot was rewritten from the database.")
    return result


@contextmanager
def _opened(backup: Path, folder: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a backup of the library, inside a transaction."""
    wanted, found = read_manifest(folder).get("id"), read_manifest(backup).get("id")
    if wanted != found:
        raise InputError(
            f"The backup {backup} belongs to {found}, {folder} is {wanted}; give a backup of this library."
        )
    with translate_errors(backup), closing(connect_reader(backup)) as connection:
        check_version(connection, backup)
        connection.execute("BEGIN")
        yield connection


def _restore_model(folder: Path, generation: queries.Generation, backup: Path | None, result: RepairResult) -> None:
    """Restore a damaged model from the backup."""
    try:
        load(find_model(folder, generation))
    except RmshError as error:
        try:
            stage_model(folder, load(find_model(backup or folder, generation)))
        except RmshError:
            result.lost.append(f"The model is damaged: {error}")
        else:
            install_model(folder, generation, force=True)
            result.restored.append("The model was restored from the backup.")


def _rebuild_indexes(connection: sqlite3.Connection, result: RepairResult) -> None:
    """Rebuild the indexes of the tables if they do not match them."""
    if verify.structure_problems(connection):
        try:
            connection.execute("REINDEX")
        except sqlite3.IntegrityError as error:  # a damaged ID equals another one
            _refuse(str(error))
        result.restored.append("The indexes of the database were rebuilt.")


def _refuse(problem: str) -> NoReturn:
    raise FormatError(f"The database is damaged ({problem}) and cannot be repaired; {RESTORE}.")


def _restore_items(connection: sqlite3.Connection, backup: sqlite3.Connection, rows: Iterable[int]) -> Iterator[str]:
    """Restore the items that have an intact copy in the backup, and yield a message for each."""
    connection.execute("DROP TRIGGER item_kept")
    for row in rows:
        stored, copy = (next(queries.stored_items(each, [row]), None) for each in (connection, backup))
        if copy is None or not is_intact(copy[:5], copy[5]) or not _is_same(stored, copy, connection, backup):
            continue
        _, name, text, picture, labels, checksum = copy
        connection.execute(
            "INSERT INTO items (row, id, text, picture, checksum) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (row) DO UPDATE SET id = excluded.id, text = excluded.text, picture = excluded.picture, "
            "checksum = excluded.checksum",
            (row, name, text, picture, checksum),
        )
        connection.execute("DELETE FROM item_labels WHERE row = ?", (row,))
        insert_labels(connection, [(label, row) for label in labels])
        yield f"The item {name!r} (row {row}) was restored from the backup."
    connection.execute(KEEP_ROWS)


def _is_same(
    stored: tuple[Any, ...] | None, copy: tuple[Any, ...], connection: sqlite3.Connection, backup: sqlite3.Connection
) -> bool:
    """Whether a copy has the expected checksum or content, or comes from the same history."""
    if stored is not None and (stored[-1] == copy[-1] or stored[:-1] == copy[:-1]):
        return True
    seq, token = queries.last_change(backup)
    if not queries.has_change(connection, seq, token):
        return False
    return not queries.is_removed(connection, np.array(copy[:1]), since=seq).any()


def _restore_codes(
    connection: sqlite3.Connection, backup: sqlite3.Connection | None, damage: verify.Damage
) -> Iterator[str]:
    """Restore the codes that have an intact copy, delete damaged ones of other models, and yield a message for each."""
    generation = queries.generation_of(connection)
    for row, number in sorted(damage.codes):
        if number != generation.number:  # older codes are unused, and `rmsh recode` computes newer ones again
            connection.execute("DELETE FROM codes WHERE row = ? AND generation = ?", (row, number))
            yield f"Damaged codes of row {row} and another model were deleted."
            continue
        copy, source = damage.packed(row), "snapshot"
        if not any(copy) and backup is not None:
            copy, source = _codes_of_backup(row, connection, backup), "backup"
        if any(copy) and any(queries.stored_items(connection, [row])):
            vectors = connection.execute(
                "SELECT row, generation, image, text, NULL, checksum FROM vectors WHERE row = ? AND generation = ?",
                (row, number),
            ).fetchone()
            kept = vectors[2:4] if vectors is not None and is_code_row_intact(*vectors) else (None, None)
            insert_codes(connection, number, [(row, *copy, *kept)])
            yield f"The codes of row {row} were restored from the {source}."


def _restore_vectors(connection: sqlite3.Connection, backup: sqlite3.Connection | None) -> Iterator[str]:
    """Restore damaged vectors of intact codes, or delete those without an intact copy, and yield a message for each."""
    for row, generation in verify.damaged_vectors(connection):
        key = row, generation
        stored = connection.execute(f"{queries.CODE_ROW} WHERE row = ? AND generation = ?", key).fetchone()
        if not is_code_row_intact(*stored):
            continue
        select = "SELECT image, text FROM vectors WHERE row = ? AND generation = ?"
        copies = [each.execute(select, key).fetchone() for each in (connection, backup) if each is not None]
        found = filter(None, copies)
        intact = [(a, b) for a, b in found if is_code_row_intact(row, generation, a, b, None, stored[4])]
        connection.execute("DELETE FROM vectors WHERE row = ? AND generation = ?", key)
        insert_codes(connection, generation, [(row, *stored[2:4], *(intact[0] if intact else (None, None)))])
        deleted = f"Damaged vectors of row {row} were deleted; it is ranked by its code until `rmsh recode`."
        yield f"The vectors of row {row} were restored." if intact else deleted


def _codes_of_backup(row: int, connection: sqlite3.Connection, backup: sqlite3.Connection) -> tuple[Any, ...]:
    """The image code and the text code of a row in the backup, None if they are missing or damaged."""
    generation = queries.generation_of(connection)
    stored, copy = (next(iter(queries.select_codes(each, generation, [row])), None) for each in (connection, backup))
    same_model = queries.generation_of(backup) == generation
    if copy is None or not same_model or not generation.is_intact(copy):
        return None, None
    return copy[2:4] if _is_same(stored, copy, connection, backup) else (None, None)
