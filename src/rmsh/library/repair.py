"""Repairing damaged rows of a library from an intact copy: the snapshot for codes, a backup for everything.

A copy is used only where it is certainly the right one: it matches its own checksum, and it either has the checksum
that the damaged row should have, or comes from the same history, in which rows never change.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rmsh.core.errors import FormatError, InputError
from rmsh.library.checksums import codes_checksum, is_code_row_intact, is_item_intact
from rmsh.library.damage import Damage, find_damage
from rmsh.library.database import Writer, connect_reader, explained
from rmsh.library.folder import check_is_library, find_model, read_manifest
from rmsh.library.queries import change_token, generation_of, last_change, ranges_removed, stored_items
from rmsh.library.restoring import finish_restore
from rmsh.library.schema import KEEP_ROWS, check_version
from rmsh.library.snapshot import SNAPSHOT, write_snapshot
from rmsh.library.verify import texts_agree
from rmsh.library.writing import log

if TYPE_CHECKING:
    from rmsh.library.queries import Generation, StoredItem

__all__ = ["Repaired", "repair"]


@dataclass
class Repaired:
    """What a repair did.

    Args:
        restored: a sentence for each item, code or file that is intact again.
        lost: a sentence for each row that is still damaged, because no intact copy of it was found.
    """

    restored: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def repair(folder: Path, *, backup: Path | None = None, timeout: float = 30.0) -> Repaired:
    """Restore damaged rows from an intact copy, in one transaction; rows without such a copy stay as they are.

    Args:
        folder: of the library.
        backup: folder of a backup of the same library.
        timeout: seconds to wait for another writer.

    Raises:
        InputError: the backup is of another library.
        FormatError: the structure of the database is damaged, so that rows cannot be read one by one.
    """
    check_is_library(folder)
    finish_restore(folder)
    read_manifest(folder)
    done = Repaired()
    with explained(folder), closing(Writer(folder, timeout=timeout)) as writer, _opened(backup, folder) as other:
        with writer.transaction() as connection:
            check_version(connection, folder)
            find_model(folder, generation_of(connection))
            _rebuild_indexes(connection, done)
            damage = find_damage(folder, connection)
            if damage.in_database:
                _Rows(connection, other, damage, done).restore()
            if not texts_agree(connection):
                connection.execute("INSERT INTO texts (texts) VALUES ('rebuild')")
                done.restored.append("The full-text index was rebuilt.")
            if done.restored:
                log(connection, "recode", [0])  # readers that are open load everything again
            after = find_damage(folder, connection)
            done.lost += after.sentences()
        if damage.snapshot_problem or (done.restored and not after.in_database):
            _renew_snapshot(folder, after, done)
    return done


@contextmanager
def _opened(backup: Path | None, folder: Path) -> Iterator[sqlite3.Connection | None]:
    """A connection to a backup of the library, inside a transaction."""
    if backup is None:
        yield None
        return
    check_is_library(backup)
    wanted, found = (read_manifest(each).get("id") for each in (folder, backup))
    if wanted != found:
        raise InputError(f"The backup {backup} is of the library {found}, {folder} is {wanted}; give a backup of it.")
    with explained(backup), closing(connect_reader(backup)) as connection:
        check_version(connection, backup)
        connection.execute("BEGIN")
        yield connection


def _rebuild_indexes(connection: sqlite3.Connection, done: Repaired) -> None:
    """Rebuild the indexes of the tables where they do not agree with them."""
    problems = [found for (found,) in connection.execute("PRAGMA integrity_check(1)")]
    if problems == ["ok"]:
        return
    try:
        connection.execute("REINDEX")
    except sqlite3.IntegrityError as error:  # a damaged ID equals another one
        raise FormatError(
            f"The database is damaged ({problems[0]}) and its indexes cannot be rebuilt ({error}); restore a backup "
            "with `rmsh library restore`."
        ) from error
    done.restored.append("The indexes of the database were rebuilt.")


class _Rows:
    """Restores damaged rows, inside a write transaction.

    Args:
        connection: to the library.
        backup: a connection to a backup, or None.
        damage: what is damaged.
        done: where results are noted.
    """

    def __init__(
        self, connection: sqlite3.Connection, backup: sqlite3.Connection | None, damage: Damage, done: Repaired
    ) -> None:
        self._connection = connection
        self._backup = backup
        self._damage = damage
        self._done = done
        self._generation = generation_of(connection)
        self._backup_seq = None if backup is None else _common_change(connection, backup)

    def restore(self) -> None:
        """Restore every row of which there is an intact copy."""
        self._connection.execute("DROP TRIGGER item_kept")
        for row in self._damage.items:
            self._restore_item(row)
        self._connection.execute(KEEP_ROWS)
        self._drop_needless_codes()
        current = {row for row, number in self._damage.codes if number == self._generation.number}
        for row in sorted(current | self._damage.uncoded):
            self._restore_codes(row)

    def _restore_item(self, row: int) -> None:
        stored = next(stored_items(self._connection, [row]), None)
        copy = None if self._backup is None else next(stored_items(self._backup, [row]), None)
        if copy is None or not is_item_intact(*copy) or not self._is_same_item(row, stored, copy):
            return
        _, name, text, picture, labels, checksum = copy
        self._connection.execute(
            "INSERT INTO items (row, id, text, picture, checksum) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (row) DO UPDATE SET id = excluded.id, text = excluded.text, picture = excluded.picture, "
            "checksum = excluded.checksum",
            (row, name, text, picture, checksum),
        )
        self._connection.execute("DELETE FROM item_labels WHERE row = ?", (row,))
        self._connection.executemany("INSERT OR IGNORE INTO labels (name) VALUES (?)", [(label,) for label in labels])
        self._connection.executemany(
            "INSERT INTO item_labels (label, row) SELECT label, ? FROM labels WHERE name = ?",
            [(row, label) for label in labels],
        )
        self._done.restored.append(f"The item {name!r} (row {row}) was restored from the backup.")

    def _is_same_item(self, row: int, stored: StoredItem | None, copy: StoredItem) -> bool:
        if stored is not None and (stored[-1] == copy[-1] or stored[:-1] == copy[:-1]):
            return True  # the checksum it should have, or nothing but the checksum is damaged
        return self._is_in_backup(row)

    def _is_in_backup(self, row: int) -> bool:
        """Whether the backup is an earlier state of this library, and the row was not removed since."""
        if self._backup_seq is None:
            return False
        return not any(first <= row <= last for first, last in ranges_removed(self._connection, self._backup_seq))

    def _drop_needless_codes(self) -> None:
        """Drop damaged codes of other generations: older ones are unused, and `rmsh recode` makes newer ones again."""
        for row, number in self._damage.codes:
            if number != self._generation.number:
                self._connection.execute("DELETE FROM codes WHERE row = ? AND generation = ?", (row, number))
                self._done.restored.append(f"Damaged codes of row {row} and another model were dropped.")

    def _restore_codes(self, row: int) -> None:
        if self._connection.execute("SELECT 1 FROM items WHERE row = ?", (row,)).fetchone() is None:
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
        name = self._connection.execute("SELECT id FROM items WHERE row = ?", (row,)).fetchone()[0]
        self._done.restored.append(f"The codes of the item {name!r} (row {row}) were restored from the {source}.")

    def _codes_of_snapshot(self, row: int) -> tuple[bytes | None, bytes | None] | None:
        snapshot = self._damage.snapshot
        if snapshot is None:
            return None
        image, text = snapshot.packed(row, "image"), snapshot.packed(row, "text")
        return None if image is None and text is None else (image, text)

    def _codes_of_backup(self, row: int) -> tuple[bytes | None, bytes | None] | None:
        number = self._generation.number
        statement = (
            "SELECT row, generation, image, text, checksum FROM codes JOIN generations USING (generation) "
            "WHERE row = ? AND generation = ?"
        )
        if self._backup is None or not _has_generation(self._backup, self._generation):
            return None
        copy = self._backup.execute(statement, (row, number)).fetchone()
        if copy is None or not is_code_row_intact(*copy):
            return None
        stored = self._connection.execute(statement, (row, number)).fetchone()
        same = stored is not None and (stored[-1] == copy[-1] or stored[:-1] == copy[:-1])
        return copy[2:4] if same or self._is_in_backup(row) else None


def _common_change(connection: sqlite3.Connection, backup: sqlite3.Connection) -> int | None:
    """The last change of a backup where the library has it too; None where their histories differ."""
    seq = last_change(backup)
    token = change_token(backup, seq)
    return seq if token and token == change_token(connection, seq) else None


def _has_generation(backup: sqlite3.Connection, generation: Generation) -> bool:
    found = backup.execute(
        "SELECT 1 FROM generations WHERE generation = ? AND fingerprint = ? AND bits = ?", tuple(generation)
    )
    return found.fetchone() is not None


def _renew_snapshot(folder: Path, damage: Damage, done: Repaired) -> None:
    """Rewrite the snapshot, unless it may hold the only intact copy of damaged codes."""
    if damage.in_database:
        return
    with closing(connect_reader(folder)) as connection:
        connection.execute("BEGIN")
        write_snapshot(folder / SNAPSHOT, connection)
    done.restored.append("The snapshot was rewritten from the database.")
