"""Finding damage: rows of the database that do not match their checksum, and where the snapshot differs from them.

The checksum of a row is computed when the row is written, and the snapshot is only ever written from rows that match
theirs. So where the two differ, a row that matches its checksum is right; otherwise the snapshot is right, as long as
it matches its own checksums.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.codes import to_words
from rmsh.core.errors import FormatError
from rmsh.core.types import MODALITIES
from rmsh.library.checksums import is_code_row_intact, is_item_intact
from rmsh.library.queries import code_blocks, damaged_item, generation_of, lost_item, ranges_removed, stored_items
from rmsh.library.views import open_snapshot

if TYPE_CHECKING:
    from rmsh.core.types import IntArray, Modality, WordArray
    from rmsh.library.queries import Generation
    from rmsh.library.snapshot import Snapshot

__all__ = ["Damage", "SnapshotCodes", "check_undamaged", "find_damage"]

_ROWS = 1 << 14  # items in memory at once


@dataclass(frozen=True, eq=False)
class SnapshotCodes:
    """The codes of an intact snapshot, without rows that were removed since.

    Args:
        bits: length of a code.
        of: rows, int64 (n,) increasing, and words, uint64 (n, width), of each modality.
    """

    bits: int
    of: Mapping[Modality, tuple[IntArray, WordArray]]

    def rows(self) -> IntArray:
        """Every row that has a code, int64 (n,) increasing."""
        return np.unique(np.concatenate([rows for rows, _ in self.of.values()]))

    def packed(self, row: int, modality: Modality) -> bytes | None:
        """The code of a row as the database stores it; None where the row has none."""
        rows, words = self.of[modality]
        at = int(np.searchsorted(rows, row))
        if at == len(rows) or rows[at] != row:
            return None
        packed: bytes = words[at].astype("<u8").tobytes()
        return packed[: -(-self.bits // 8)]


@dataclass(frozen=True)
class Damage:
    """What is wrong with the rows of a library.

    Args:
        items: a sentence for each row whose item is damaged or missing.
        codes: row and generation of each entry of codes that is damaged.
        uncoded: rows that have no codes in the generation that is searched, though they should.
        names: the ID of each row above, as far as it is known.
        snapshot: the codes of the snapshot; None where there is none, or it is damaged.
        snapshot_problem: a sentence about a snapshot that is damaged, or that differs from intact rows.
    """

    items: Mapping[int, str]
    codes: frozenset[tuple[int, int]]
    uncoded: frozenset[int]
    names: Mapping[int, str]
    snapshot: SnapshotCodes | None
    snapshot_problem: str | None

    @property
    def in_database(self) -> bool:
        """Whether the database is damaged."""
        return bool(self.items or self.codes or self.uncoded)

    def sentences(self) -> Iterator[str]:
        """Each damaged row of the database as one sentence."""
        yield from self.items.values()
        for row in sorted({row for row, _ in self.codes} | self.uncoded):
            if row in self.items and not self.names.get(row):
                continue  # missing altogether, which was said
            what = "are missing" if row in self.uncoded else "do not match their checksum"
            in_snapshot = self.snapshot is not None and any(self.snapshot.packed(row, m) for m in MODALITIES)
            where = "the snapshot holds an intact copy: run" if in_snapshot else "run"
            option = "" if in_snapshot else " --backup BACKUP"
            yield (
                f"The codes of the item {self.names.get(row)!r} (row {row}) {what} in the database; {where} "
                f"`rmsh library repair{option}`."
            )


def find_damage(folder: Path, connection: sqlite3.Connection) -> Damage:
    """Compare every row with its checksum and the snapshot with the database; nothing is changed.

    Raises:
        sqlite3.DatabaseError: the structure of the database is damaged.
    """
    generation = generation_of(connection)
    snapshot, problem = None, None
    try:
        opened = open_snapshot(folder, connection)
        if opened is not None:
            snapshot = _codes_of(opened, connection)
            problem = _difference(opened, snapshot, connection)
    except FormatError as error:
        snapshot, problem = None, f"{error}; searches use the database instead, and `rmsh library compact` rewrites it."
    codes = frozenset(_damaged_codes(connection))
    in_snapshot = np.empty(0, dtype=np.int64) if snapshot is None else snapshot.rows()
    uncoded = _rows_without_codes(connection, generation, in_snapshot) - {
        row for row, number in codes if number == generation.number
    }
    items = dict(_damaged_items(connection, in_snapshot))
    names = {row: _name(connection, row) for row in {*items, *uncoded, *(row for row, _ in codes)}}
    return Damage(items, codes, uncoded, names, snapshot, problem)


def check_undamaged(folder: Path, connection: sqlite3.Connection) -> None:
    """Refuse a database with damaged rows.

    Raises:
        FormatError: with the first of them.
    """
    damage = find_damage(folder, connection)
    for sentence in damage.sentences():
        raise FormatError(sentence)


def _codes_of(snapshot: Snapshot, connection: sqlite3.Connection) -> SnapshotCodes:
    """The codes of a snapshot, checked, without rows that were removed since.

    Raises:
        FormatError: it is damaged.
    """
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
    """A sentence where the snapshot lacks an intact row of the database, or has another code for it."""
    later = "SELECT min(first) FROM changes WHERE seq > ? AND kind = 'add'"
    (first_later,) = connection.execute(later, (snapshot.stamp.seq,)).fetchone()
    for modality in MODALITIES:
        rows, words = codes.of[modality]
        for true_rows, packed in code_blocks(
            connection, modality, generation=generation_of(connection), on_damage=lambda _: None
        ):
            known = np.ones(len(true_rows), np.bool_) if first_later is None else true_rows < first_later
            at = np.searchsorted(rows, true_rows[known])
            there = at < len(rows)
            if not (
                there.all()
                and np.array_equal(rows[at], true_rows[known])
                and np.array_equal(words[at], to_words(packed)[known])
            ):
                return (
                    f"The {modality} codes of the snapshot {snapshot.path} differ from the database, where they match "
                    "their checksums; `rmsh library compact` rewrites the snapshot."
                )
    return None


def _damaged_codes(connection: sqlite3.Connection) -> Iterator[tuple[int, int]]:
    widths = {number: -(-bits // 8) for number, bits in connection.execute("SELECT generation, bits FROM generations")}
    for each in connection.execute("SELECT row, generation, image, text, checksum FROM codes"):
        row, number, image, text, _ = each
        sizes = {None if code is None else len(code) for code in (image, text)} if is_code_row_intact(*each) else {-1}
        if not sizes <= {None, widths.get(number, -1)}:
            yield row, number


def _rows_without_codes(
    connection: sqlite3.Connection, generation: Generation, in_snapshot: IntArray
) -> frozenset[int]:
    coded = "SELECT row FROM codes WHERE generation = ?"
    without = "SELECT row FROM items WHERE row NOT IN (SELECT row FROM codes WHERE generation = ?)"
    found = {row for (row,) in connection.execute(without, (generation.number,))}
    lost = np.setdiff1d(in_snapshot, _rows(connection, coded, generation.number), assume_unique=True)
    return frozenset(found.union(lost.tolist()))


def _rows(connection: sqlite3.Connection, statement: str, *values: int) -> IntArray:
    return np.fromiter((row for (row,) in connection.execute(statement, values)), dtype=np.int64)


def _damaged_items(connection: sqlite3.Connection, in_snapshot: IntArray) -> Iterator[tuple[int, str]]:
    last = -(1 << 63)
    while rows := [
        row for (row,) in connection.execute("SELECT row FROM items WHERE row > ? ORDER BY row LIMIT ?", (last, _ROWS))
    ]:
        last = rows[-1]
        for stored in stored_items(connection, rows):
            if not is_item_intact(*stored):
                yield stored[0], damaged_item(stored[0], stored[1])
    orphans = "SELECT row FROM codes UNION SELECT row FROM item_labels EXCEPT SELECT row FROM items"
    missing = {row for (row,) in connection.execute(orphans)}
    missing.update(np.setdiff1d(in_snapshot, _rows(connection, "SELECT row FROM items"), assume_unique=True).tolist())
    for row in sorted(missing):
        yield row, lost_item(row)


def _name(connection: sqlite3.Connection, row: int) -> str:
    found = connection.execute("SELECT id FROM items WHERE row = ?", (row,)).fetchone()
    return str(found[0]) if found else ""
