"""Repairing what a library has an intact copy of: codes from the snapshot, and everything that follows from rows.

A damaged item stays as it is and is reported; it can be removed and added again, or a backup restored.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from rmsh.core.errors import FormatError, RmshError
from rmsh.library import queries, verify
from rmsh.library.database import Writer, connect_reader, read_acknowledged, translate_errors
from rmsh.library.folder import check_is_library, find_model, read_manifest, write_manifest
from rmsh.library.photos import damaged_photos
from rmsh.library.schema import COUNT_LABELS, RESTORE, check_version, is_code_row_intact
from rmsh.library.snapshot import SNAPSHOT, write_snapshot
from rmsh.library.writing import insert_codes, log_new_codes
from rmsh.model import load


@dataclass
class RepairResult:
    """What a repair did, as messages."""

    restored: list[str] = field(default_factory=list)  # items, codes and files that are intact again
    lost: list[str] = field(default_factory=list)  # rows that are still damaged, because no intact copy was found


def repair(folder: Path, *, timeout: float = 30.0) -> RepairResult:
    """Restore damaged codes from the snapshot, and indexes, lists and files from intact rows, in one transaction.

    Rows without an intact copy stay as they are. Damage to the structure of the database, so that rows cannot be read
    one by one, raises FormatError.
    """
    check_is_library(folder)
    read_manifest(folder)
    result = RepairResult()
    with translate_errors(folder), closing(Writer(folder, timeout=timeout)) as writer:
        with writer.transaction() as connection:
            check_version(connection, folder)
            try:
                load(find_model(folder, queries.generation_of(connection)))
            except RmshError as error:
                result.lost.append(f"The model is damaged: {error}")
            _rebuild_indexes(connection, result)
            acknowledged = read_acknowledged(folder)
            lost = queries.lost_changes(connection, acknowledged)
            if any(verify.log_problems(folder, connection)):
                connection.execute("DELETE FROM changes")
                # A later number: the new entry counts as acknowledged after all others, even if this process is killed.
                log_new_codes(connection, after=acknowledged[0] if acknowledged else 0)
                result.restored.append("The log of changes was rewritten.")
            damage = verify.find_damage(folder, connection)
            result.restored += _restore_codes(connection, damage)
            result.restored += _restore_vectors(connection)
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


def _restore_codes(connection: sqlite3.Connection, damage: verify.Damage) -> Iterator[str]:
    """Restore the codes that the snapshot has, delete damaged ones of other models, and yield a message for each."""
    generation = queries.generation_of(connection)
    for row, number in sorted(damage.codes):
        if number != generation.number:  # older codes are unused, and `rmsh recode` computes newer ones again
            connection.execute("DELETE FROM codes WHERE row = ? AND generation = ?", (row, number))
            yield f"Damaged codes of row {row} and another model were deleted."
            continue
        copy = damage.packed(row)
        if any(copy) and any(queries.stored_items(connection, [row])):
            vectors = connection.execute(
                "SELECT row, generation, image, text, NULL, checksum FROM vectors WHERE row = ? AND generation = ?",
                (row, number),
            ).fetchone()
            kept = vectors[2:4] if vectors is not None and is_code_row_intact(*vectors) else (None, None)
            insert_codes(connection, number, [(row, *copy, *kept)])
            yield f"The codes of row {row} were restored from the snapshot."


def _restore_vectors(connection: sqlite3.Connection) -> Iterator[str]:
    """Delete damaged vectors of intact codes, or correct their checksum, and yield a message for each."""
    for row, generation in verify.damaged_vectors(connection):
        key = row, generation
        stored = connection.execute(f"{queries.CODE_ROW} WHERE row = ? AND generation = ?", key).fetchone()
        if not is_code_row_intact(*stored):
            continue
        select = "SELECT image, text FROM vectors WHERE row = ? AND generation = ?"
        image, text = connection.execute(select, key).fetchone() or (None, None)
        intact = is_code_row_intact(row, generation, image, text, None, stored[4])
        connection.execute("DELETE FROM vectors WHERE row = ? AND generation = ?", key)
        insert_codes(connection, generation, [(row, *stored[2:4], *((image, text) if intact else (None, None)))])
        deleted = f"Damaged vectors of row {row} were deleted; it is ranked by its code until `rmsh recode`."
        yield f"The vectors of row {row} were restored." if intact else deleted
