"""Asking the database of a library, over a connection inside a transaction: every answer is of one state."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rmsh.codes import Codes
from rmsh.core.errors import CodesError, FormatError
from rmsh.library.items import Item

if TYPE_CHECKING:
    from rmsh.core.types import IntArray, Modality, PackedArray

BLOCK = 1 << 16  # codes read at once: a few megabytes of Python objects, whatever the size of the library

_CODES = {  # the column cannot be a bound parameter
    "image": "SELECT row, image FROM codes WHERE generation = ? AND row > ? AND image IS NOT NULL ORDER BY row",
    "text": "SELECT row, text FROM codes WHERE generation = ? AND row > ? AND text IS NOT NULL ORDER BY row",
}

_CODES_OF_IDS = {
    "image": "SELECT id, row, codes.image FROM codes JOIN items USING (row) WHERE generation = ? "
    "AND codes.image IS NOT NULL AND id IN (SELECT value FROM json_each(?))",
    "text": "SELECT id, row, codes.text FROM codes JOIN items USING (row) WHERE generation = ? "
    "AND codes.text IS NOT NULL AND id IN (SELECT value FROM json_each(?))",
}


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
    connection: sqlite3.Connection, modality: Modality, *, generation: Generation, after: int = 0
) -> Iterator[tuple[IntArray, PackedArray]]:
    """Rows, int64 (n,) increasing, and packed codes, uint8 (n, bytes), of all rows after one, block by block.

    Raises:
        FormatError: a stored code has another length than its generation.
    """
    found = connection.execute(_CODES[modality], (generation.number, after))
    while block := found.fetchmany(BLOCK):
        yield _stacked(block, modality, generation=generation)


def codes_of_ids(
    connection: sqlite3.Connection, ids: Sequence[str], modality: Modality, *, generation: Generation
) -> Codes:
    """The codes of those ids that are there and have such a code, in the order of the ids.

    Raises:
        FormatError: a stored code has another length than its generation.
    """
    asked = generation.number, json.dumps(ids, ensure_ascii=False)
    found = {name: (row, blob) for name, row, blob in connection.execute(_CODES_OF_IDS[modality], asked)}
    there = [name for name in ids if name in found]
    _, packed = _stacked([found[name] for name in there], modality, generation=generation)
    return Codes(packed, generation.bits, np.array(there))


def _stacked(
    block: Sequence[tuple[int, bytes]], modality: Modality, *, generation: Generation
) -> tuple[IntArray, PackedArray]:
    """Rows and codes as arrays."""
    width = -(-generation.bits // 8)
    wrong = next((row for row, blob in block if len(blob) != width), None)
    if wrong is not None:
        raise FormatError(
            f"The {modality} code of row {wrong} does not have {generation.bits} bits: the database is damaged; put "
            "items.sqlite back from a backup."
        )
    packed = np.frombuffer(b"".join(blob for _, blob in block), dtype=np.uint8).reshape(len(block), width)
    return np.array([row for row, _ in block], dtype=np.int64), packed


def items_of_rows(connection: sqlite3.Connection, rows: Iterable[int]) -> dict[int, Item]:
    """The items of some rows."""
    asked = (json.dumps(sorted({int(row) for row in rows})),)
    labels: defaultdict[int, list[str]] = defaultdict(list)
    for row, name in connection.execute(
        "SELECT row, name FROM item_labels JOIN labels USING (label) WHERE row IN (SELECT value FROM json_each(?))",
        asked,
    ):
        labels[row].append(name)
    found = connection.execute(
        "SELECT row, id, text, picture FROM items WHERE row IN (SELECT value FROM json_each(?))", asked
    )
    return {row: Item(name, text, picture, tuple(labels[row])) for row, name, text, picture in found}


def rows_of_ids(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, int]:
    """The rows of those ids that are there."""
    asked = json.dumps(ids, ensure_ascii=False)
    return dict(connection.execute("SELECT id, row FROM items WHERE id IN (SELECT value FROM json_each(?))", (asked,)))
