"""Repairing damaged rows of a library from an intact copy: codes from the snapshot, anything from a backup.

A copy is used only if it is certainly the right one: it matches its own checksum, and it either has the checksum that
the damaged row should have, or comes from the same history, in which rows never change.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from rmsh.core.errors import FormatError, InputError
from rmsh.library.database import Writer, connect_reader, translate_errors
from rmsh.library.folder import check_is_library, find_model, finish_restore, read_manifest
from rmsh.library.queries import (
    CODE_ROW,
    change_token,
    generation_of,
    id_of_row,
    last_change,
    ranges_removed,
    stored_items,
)
from rmsh.library.schema import KEEP_ROWS, check_version, codes_checksum, is_code_row_intact, is_item_intact
from rmsh.library.snapshot import SNAPSHOT, write_snapshot
from rmsh.library.verify import Damage, find_damage, is_text_index_intact
from rmsh.library.writing import insert_labels, log_new_codes

_Codes: TypeAlias = tuple[bytes | None, bytes | None]  # image and text


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
    finish_restore(folder)
    read_manifest(folder)
    result = RepairResult()
    with translate_errors(folder), closing(Writer(folder, timeout=timeout)) as writer, _opened(backup, folder) as other:
        with writer.transaction() as connection:
            check_version(connection, folder)
            find_model(folder, generation_of(connection))
            _rebuild_indexes(connection, result)
            damage = find_damage(folder, connection)
            if damage.in_database:
                _RowRepair(connection, other, damage, result).run()
            if not is_text_index_intact(connection):
                connection.execute("INSERT INTO texts (texts) VALUES ('rebuild')")
                result.restored.append("The full-text index was rebuilt.")
            if result.restored:
                log_new_codes(connection)
            after = find_damage(folder, connection)
            result.lost += after.messages()
        # A snapshot that may have the only intact copy of damaged codes is not overwritten.
        if not after.in_database and (damage.snapshot_problem or result.restored):
            with closing(connect_reader(folder)) as connection:
                connection.execute("BEGIN")
                write_snapshot(folder / SNAPSHOT, connection)
            result.restored.append("The snapshot was rewritten from the database.")
    return result


@contextmanager
def _opened(backup: Path | None, folder: Path) -> Iterator[sqlite3.Connection | None]:
    """A connection to a backup of the library, inside a transaction."""
    if backup is None:
        yield None
        return
    wanted, found = read_manifest(folder).get("id"), read_manifest(backup).get("id")
    if wanted != found:
        raise InputError(
            f"The backup {backup} belongs to the library {found}, {folder} is {wanted}; give a backup of this library."
        )
    with translate_errors(backup), closing(connect_reader(backup)) as connection:
        check_version(connection, backup)
        connection.execute("BEGIN")
        yield connection


def _rebuild_indexes(connection: sqlite3.Connection, result: RepairResult) -> None:
    """Rebuild the indexes of the tables if they do not match them."""
    (problem,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if problem == "ok":
        return
    try:
        connection.execute("REINDEX")
    except sqlite3.IntegrityError as error:  # a damaged ID equals another one
        raise FormatError(
            f"The database is damaged ({problem}) and its indexes cannot be rebuilt ({error}); restore a backup "
            "with `rmsh library restore`."
        ) from error
    result.restored.append("The indexes of the database were rebuilt.")


class _RowRepair:
    """Restores damaged rows, inside a write transaction."""

    def __init__(
        self, connection: sqlite3.Connection, backup: sqlite3.Connection | None, damage: Damage, result: RepairResult
    ) -> None:
        self._connection = connection
        self._backup = backup
        self._damage = damage
        self._result = result
        self._generation = generation_of(connection)
        self._common_seq: int | None = None  # last change of a backup that is an earlier state of this library
        if backup is not None:
            seq = last_change(backup)
            token = change_token(backup, seq)
            self._common_seq = seq if token and token == change_token(connection, seq) else None

    def run(self) -> None:
        """Restore every row that has an intact copy."""
        self._connection.execute("DROP TRIGGER item_kept")
        for row in self._damage.items:
            self._restore_item(row)
        self._connection.execute(KEEP_ROWS)
        current = self._generation.number
        for row, number in self._damage.codes:
            if number != current:  # older codes are unused, and `rmsh recode` computes newer ones again
                self._connection.execute("DELETE FROM codes WHERE row = ? AND generation = ?", (row, number))
                self._result.restored.append(f"Damaged codes of row {row} and another model were deleted.")
        for row in sorted({row for row, number in self._damage.codes if number == current} | self._damage.uncoded):
            self._restore_codes(row)

    def _restore_item(self, row: int) -> None:
        stored = next(stored_items(self._connection, [row]), None)
        copy = None if self._backup is None else next(stored_items(self._backup, [row]), None)
        if copy is None or not is_item_intact(copy) or not self._is_same(row, stored, copy):
            return
        _, name, text, picture, labels, checksum = copy
        self._connection.execute(
            "INSERT INTO items (row, id, text, picture, checksum) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (row) DO UPDATE SET id = excluded.id, text = excluded.text, picture = excluded.picture, "
            "checksum = excluded.checksum",
            (row, name, text, picture, checksum),
        )
        self._connection.execute("DELETE FROM item_labels WHERE row = ?", (row,))
        insert_labels(self._connection, [(row, label) for label in labels])
        self._result.restored.append(f"The item {name!r} (row {row}) was restored from the backup.")

    def _is_same(self, row: int, stored: tuple[Any, ...] | None, copy: tuple[Any, ...]) -> bool:
        """Whether a copy has the expected checksum or content, or comes from the same history."""
        if stored is not None and (stored[-1] == copy[-1] or stored[:-1] == copy[:-1]):
            return True
        if self._common_seq is None:
            return False
        return not any(first <= row <= last for first, last in ranges_removed(self._connection, self._common_seq))

    def _restore_codes(self, row: int) -> None:
        name = id_of_row(self._connection, row)
        if name is None:
            return  # codes need an item
        copy, source = self._codes_of_snapshot(row), "snapshot"
        if copy is None:
            copy, source = self._codes_of_backup(row), "backup"
        if copy is None:
            return
        number = self._generation.number
        self._connection.execute(
            "INSERT OR REPLACE INTO codes (row, generation, image, text, checksum) VALUES (?, ?, ?, ?, ?)",
            (row, number, *copy, codes_checksum(row, number, *copy)),
        )
        self._result.restored.append(f"The codes of the item {name!r} (row {row}) were restored from the {source}.")

    def _codes_of_snapshot(self, row: int) -> _Codes | None:
        snapshot = self._damage.snapshot
        if snapshot is None:
            return None
        copy = snapshot.packed(row, "image"), snapshot.packed(row, "text")
        return None if copy == (None, None) else copy

    def _codes_of_backup(self, row: int) -> _Codes | None:
        if self._backup is None:
            return None
        same_model = "SELECT 1 FROM generations WHERE generation = ? AND fingerprint = ? AND bits = ?"
        if self._backup.execute(same_model, tuple(self._generation)).fetchone() is None:
            return None
        statement, values = f"{CODE_ROW} WHERE row = ? AND generation = ?", (row, self._generation.number)
        copy = self._backup.execute(statement, values).fetchone()
        if copy is None or not is_code_row_intact(*copy):
            return None
        stored = self._connection.execute(statement, values).fetchone()
        image, text = copy[2:4]
        return (image, text) if self._is_same(row, stored, copy) else None
