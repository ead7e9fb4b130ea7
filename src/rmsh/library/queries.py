"""Asking the database of a library, over a connection inside a transaction: every answer is of one state."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from rmsh.codes import Codes
from rmsh.core.errors import CodesError, FormatError
from rmsh.library.checksums import is_code_row_intact, is_item_intact
from rmsh.library.items import Item

if TYPE_CHECKING:
    from rmsh.core.types import IntArray, Modality, PackedArray

BLOCK = 1 << 16  # codes read at once: a few megabytes of Python objects, whatever the size of the library

_CODES = {  # the column cannot be a bound parameter
    "image": "SELECT row, generation, image, text, checksum FROM codes "
    "WHERE generation = ? AND row > ? AND image IS NOT NULL ORDER BY row",
    "text": "SELECT row, generation, image, text, checksum FROM codes "
    "WHERE generation = ? AND row > ? AND text IS NOT NULL ORDER BY row",
}

_CodeRow: TypeAlias = tuple[int, int, bytes | None, bytes | None, int]  # row, generation, image, text, checksum


class Generation(NamedTuple):
    """The codes of one model: its number in the library, the model's fingerprint, the length of a code."""

    number: int
    fingerprint: str
    bits: int

    def check(self, model: str, *given: Codes) -> None:
        """Refuse codes that these cannot be compared with."""
        if model != self.fingerprint:
            raise CodesError(
                f"Codes of the model {model} were given, the library holds codes of {self.fingerprint}; use the model "
                "of the library, or recode the library."
            )
        for codes in given:
            if codes.bits != self.bits:
                raise CodesError(
                    f"Codes of {codes.bits} bits were given, the library's have {self.bits}; use its model."
                )


def generation_of(connection: sqlite3.Connection) -> Generation:
    """The generation that is searched."""
    found = connection.execute("SELECT generation, fingerprint, bits FROM generations JOIN library USING (generation)")
    return Generation(*found.fetchone())


def change_token(connection: sqlite3.Connection, seq: int) -> str:
    """The token of a change; "" where the log does not have it."""
    found = connection.execute("SELECT token FROM changes WHERE seq = ?", (seq,)).fetchone()
    return str(found[0]) if found else ""


def last_change(connection: sqlite3.Connection) -> int:
    """The number of the last change, 0 where there was none yet."""
    return int(connection.execute("SELECT coalesce(max(seq), 0) FROM changes").fetchone()[0])


def log_reaches(connection: sqlite3.Connection, since: int) -> bool:
    """Whether the log tells all that happened after a change: it was not shortened, and no other codes were put in."""
    (oldest,) = connection.execute("SELECT coalesce(min(seq), 0) FROM changes").fetchone()
    recoded = connection.execute("SELECT 1 FROM changes WHERE seq > ? AND kind = 'recode' LIMIT 1", (since,))
    return int(oldest) <= since + 1 and recoded.fetchone() is None


def ranges_removed(connection: sqlite3.Connection, since: int) -> IntArray:
    """First and last rows of what was removed after a change, int64 (n, 2)."""
    found = connection.execute("SELECT first, last FROM changes WHERE seq > ? AND kind = 'remove'", (since,))
    return np.array(found.fetchall(), dtype=np.int64).reshape(-1, 2)


def code_blocks(
    connection: sqlite3.Connection,
    modality: Modality,
    *,
    generation: Generation,
    after: int = 0,
    on_damage: Callable[[int], None] | None = None,
) -> Iterator[tuple[IntArray, PackedArray]]:
    """Rows, int64 (n,) increasing, and packed codes, uint8 (n, bytes), of all rows after one, block by block.

    Args:
        connection: inside a transaction.
        modality: which of the two codes to read.
        generation: whose codes to read.
        after: only rows greater than this one are read.
        on_damage: called with each row whose codes do not match their checksum; such a row is left out.

    Raises:
        FormatError: codes do not match their checksum, and ``on_damage`` was not given.
    """
    found = connection.execute(_CODES[modality], (generation.number, after))
    while block := found.fetchmany(BLOCK):
        damaged = _damaged_code_rows(block, generation)
        for row in damaged:
            if on_damage is None:
                raise FormatError(damaged_code(connection, row))
            on_damage(row)
        yield _stacked([each for each in block if each[0] not in damaged] if damaged else block, modality, generation)


def codes_of_ids(
    connection: sqlite3.Connection,
    ids: Sequence[str],
    modality: Modality,
    *,
    generation: Generation,
    on_damage: Callable[[str], None],
) -> Codes:
    """The codes of those IDs that are there and have such a code, in the order of the IDs.

    ``on_damage`` is called with a sentence for each item that cannot be read as it was written; it is left out.
    """
    items, damaged = intact_items(connection, rows_of_ids(connection, ids).values())
    row_of = {item.id: row for row, item in items.items()}
    asked = generation.number, json.dumps(sorted(items))
    found: list[_CodeRow] = connection.execute(
        "SELECT row, generation, image, text, checksum FROM codes "
        "WHERE generation = ? AND row IN (SELECT value FROM json_each(?))",
        asked,
    ).fetchall()
    wrong = _damaged_code_rows(found, generation)
    for sentence in [*damaged.values(), *(damaged_code(connection, row) for row in wrong)]:
        on_damage(sentence)
    of_row = {each[0]: each for each in found if each[0] not in wrong and each[_COLUMN[modality]] is not None}
    there = [name for name in ids if row_of.get(name) in of_row]
    _, packed = _stacked([of_row[row_of[name]] for name in there], modality, generation)
    return Codes(packed, generation.bits, np.array(there))


_COLUMN = {"image": 2, "text": 3}


def _damaged_code_rows(block: Sequence[_CodeRow], generation: Generation) -> set[int]:
    """Rows whose codes do not match their checksum, or do not have the length of their generation."""
    sizes = {None, -(-generation.bits // 8)}
    return {
        each[0]
        for each in block
        if not is_code_row_intact(*each)
        or (None if each[2] is None else len(each[2])) not in sizes
        or (None if each[3] is None else len(each[3])) not in sizes
    }


def _stacked(block: Sequence[_CodeRow], modality: Modality, generation: Generation) -> tuple[IntArray, PackedArray]:
    """Rows and codes as arrays."""
    width, column = -(-generation.bits // 8), _COLUMN[modality]
    joined = b"".join([each[column] for each in block])  # type: ignore[misc]  # rows without such a code are left out
    packed = np.frombuffer(joined, dtype=np.uint8).reshape(len(block), width)
    return np.array([each[0] for each in block], dtype=np.int64), packed


def damaged_code(connection: sqlite3.Connection, row: int) -> str:
    """One sentence about codes that do not match their checksum."""
    found = connection.execute("SELECT id FROM items WHERE row = ?", (row,)).fetchone()
    return (
        f"The codes of the item {found[0] if found else None!r} (row {row}) do not match their checksum in the "
        "database; run `rmsh library repair`."
    )


def damaged_item(row: int, name: object) -> str:
    """One sentence about an item that does not match its checksum; ``name`` is the ID as far as it is known."""
    return (
        f"The text, labels, image path or ID of the item {name!r} (row {row}) do not match their checksum in the "
        "database; run `rmsh library repair`."
    )


def lost_item(row: int) -> str:
    """One sentence about a row that other tables or the snapshot know, and that has no item."""
    return f"The item of row {row} is missing in the database; run `rmsh library repair`."


def items_of_rows(connection: sqlite3.Connection, rows: Iterable[int]) -> dict[int, Item]:
    """The items of some rows, in the order of rows.

    Raises:
        FormatError: an item does not match its checksum, or is missing.
    """
    items, damaged = intact_items(connection, rows)
    for sentence in damaged.values():
        raise FormatError(sentence)
    return items


def intact_items(connection: sqlite3.Connection, rows: Iterable[int]) -> tuple[dict[int, Item], dict[int, str]]:
    """The items of some rows that match their checksum, and a sentence about each of the others, by row."""
    asked = sorted({int(row) for row in rows})
    items: dict[int, Item] = {}
    damaged = {row: lost_item(row) for row in asked}
    for stored in stored_items(connection, asked):
        row, name, text, picture, labels, _ = stored
        if is_item_intact(*stored):
            items[row] = Item(name, text, picture, tuple(labels))
            del damaged[row]
        else:
            damaged[row] = damaged_item(row, name)
    return items, damaged


StoredItem: TypeAlias = tuple[int, str, str | None, str | None, list[str], int]  # ..., sorted labels, checksum


def stored_items(connection: sqlite3.Connection, rows: Sequence[int]) -> Iterator[StoredItem]:
    """Row, ID, text, image path, sorted labels and checksum of some rows, as stored, whether damaged or not."""
    asked = (json.dumps(rows),)
    labels: defaultdict[int, list[str]] = defaultdict(list)
    for row, name in connection.execute(
        "SELECT row, name FROM item_labels LEFT JOIN labels USING (label) "
        "WHERE row IN (SELECT value FROM json_each(?))",
        asked,
    ):
        labels[row].append(name)
    found = connection.execute(
        "SELECT row, id, text, picture, checksum FROM items WHERE row IN (SELECT value FROM json_each(?)) ORDER BY row",
        asked,
    )
    for row, name, text, picture, checksum in found:
        yield row, name, text, picture, sorted(labels[row], key=str), checksum


def rows_of_ids(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, int]:
    """The rows of those ids that are there."""
    asked = json.dumps(ids, ensure_ascii=False)
    return dict(connection.execute("SELECT id, row FROM items WHERE id IN (SELECT value FROM json_each(?))", (asked,)))
