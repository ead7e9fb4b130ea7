"""Reading the database of a library, over a connection inside a transaction: all results belong to one state.

Filters become lists of rows. Every value is a bound parameter, never part of the SQL. The words of a text filter become
quoted phrases of the full-text index, so operators, quotes and signs in them have no special meaning. Words match
regardless of case and accents; signs such as % are not words, and a filter made of signs alone matches nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rmsh.codes import Codes
from rmsh.core.errors import CodesError, FormatError
from rmsh.index.filters import Id, Label, Leaf, Phrase, Text
from rmsh.library.items import Item
from rmsh.library.schema import is_code_row_intact, is_item_intact

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, IntArray, Modality, PackedArray
    from rmsh.library.schema import CodeRow, StoredItem

BLOCK = 1 << 16  # codes read at once: a few megabytes of Python objects, whatever the size of the library

CODE_ROW = "SELECT row, generation, image, text, checksum FROM codes"
VECTOR_ROW = CODE_ROW.replace("codes", "vectors")
COLUMN = {"image": 2, "text": 3}  # in a CodeRow


class Generation(NamedTuple):
    """The codes of one model: a number, the fingerprint of the model and the length of a code."""

    number: int
    fingerprint: str
    bits: int

    def to_array(self, codes: Sequence[bytes]) -> PackedArray:
        """Packed codes, uint8 (n, bytes), from the bytes of each."""
        return np.frombuffer(b"".join(codes), dtype=np.uint8).reshape(len(codes), -(-self.bits // 8))

    def check(self, model: str, *given: Codes) -> None:
        """Raise CodesError for codes of another model or length."""
        if model != self.fingerprint:
            raise CodesError(
                f"Got codes of the model {model}, the library has codes of {self.fingerprint}; use the model of the "
                "library, or recode the library."
            )
        for codes in given:
            if codes.bits != self.bits:
                raise CodesError(
                    f"Got codes of {codes.bits} bits, those of the library have {self.bits}; use its model."
                )


def generation_of(connection: sqlite3.Connection) -> Generation:
    """The generation that is searched."""
    found = connection.execute("SELECT generation, fingerprint, bits FROM generations JOIN library USING (generation)")
    return Generation(*found.fetchone())


def library_id(connection: sqlite3.Connection) -> str:
    """The ID of the library."""
    return str(connection.execute("SELECT id FROM library").fetchone()[0])


def image_folder(connection: sqlite3.Connection) -> str | None:
    """The folder that contains the images; None if it is the folder of the library."""
    (source,) = connection.execute("SELECT source FROM library").fetchone()
    return None if source is None else str(source)


def count_items(connection: sqlite3.Connection) -> int:
    """The number of items."""
    return int(connection.execute("SELECT count(*) FROM items").fetchone()[0])


def last_row(connection: sqlite3.Connection) -> int:
    """The last row, 0 if there are no items."""
    return int(connection.execute("SELECT coalesce(max(row), 0) FROM items").fetchone()[0])


def last_change(connection: sqlite3.Connection) -> tuple[int, str]:
    """The number and the token of the last change; 0 and "" if there was none yet."""
    found = connection.execute("SELECT seq, token FROM changes ORDER BY seq DESC LIMIT 1").fetchone()
    return found or (0, "")


def has_change(connection: sqlite3.Connection, seq: int, token: str) -> bool:
    """Whether the log contains a change, given by its number and token."""
    found = connection.execute("SELECT 1 FROM changes WHERE seq = ? AND token = ?", (seq, token))
    return found.fetchone() is not None


def is_removed(connection: sqlite3.Connection, rows: IntArray, *, since: int) -> BitArray:
    """Which of some increasing rows were removed after a change, bool (n,)."""
    ranges = connection.execute("SELECT first, last + 1 FROM changes WHERE seq > ? AND kind = 'remove'", (since,))
    removed = np.zeros(len(rows), dtype=np.bool_)
    for begin, end in np.searchsorted(rows, np.array(ranges.fetchall(), dtype=np.int64).reshape(-1, 2)):
        removed[begin:end] = True
    return removed


def code_blocks(
    connection: sqlite3.Connection,
    modality: Modality,
    *,
    generation: Generation,
    after: int = 0,
    on_damage: Callable[[int], None] | None = None,
) -> Iterator[tuple[IntArray, PackedArray]]:
    """Rows greater than ``after``, int64 (n,) increasing, and their packed codes, uint8 (n, bytes), block by block.

    ``on_damage`` is called with each row whose codes do not match their checksum, and the row is skipped; without it,
    such a row raises FormatError.
    """
    found = connection.execute(
        f"{CODE_ROW} WHERE generation = ? AND row > ? AND {modality} IS NOT NULL ORDER BY row",
        (generation.number, after),
    )
    while block := found.fetchmany(BLOCK):
        damaged = damaged_code_rows(block, generation.bits)
        for row in sorted(damaged):
            if on_damage is None:
                raise FormatError(damaged_codes_message(connection, row))
            on_damage(row)
        intact = [each for each in block if each[0] not in damaged] if damaged else block
        rows = np.array([each[0] for each in intact], dtype=np.int64)
        yield rows, generation.to_array([each[COLUMN[modality]] for each in intact])


def codes_of_ids(
    connection: sqlite3.Connection, ids: Sequence[str], modality: Modality, *, on_damage: Callable[[str], None]
) -> Codes:
    """The codes of the items that have one, in the order of ``ids``.

    ``on_damage`` is called with a message for each damaged item, which is skipped.
    """
    generation = generation_of(connection)
    items, damaged = intact_items(connection, rows_of_ids(connection, ids).values())
    statement = f"{CODE_ROW} WHERE generation = ? AND row IN (SELECT value FROM json_each(?))"  # noqa: S608
    found = connection.execute(statement, (generation.number, json.dumps(sorted(items)))).fetchall()
    wrong = damaged_code_rows(found, generation.bits)
    damaged |= {row: damaged_codes_message(connection, row) for row in wrong}
    for message in damaged.values():
        on_damage(message)
    row_of = {items[each[0]].id: each[0] for each in found if each[0] not in wrong and each[COLUMN[modality]]}
    code_of = {each[0]: each[COLUMN[modality]] for each in found}
    present = {name: row_of[name] for name in ids if name in row_of}
    stored = vectors_of_rows(connection, generation, present.values(), modality)
    complete = bool(present) and stored.keys() >= set(present.values())
    return Codes(
        generation.to_array([code_of[row] for row in present.values()]),
        generation.bits,
        np.array(list(present)),
        np.stack([stored[row] for row in present.values()]) if complete else None,
    )


def has_vectors(connection: sqlite3.Connection) -> bool:
    """Whether the library stores vectors."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'vectors'").fetchone() is not None


def vectors_of_rows(
    connection: sqlite3.Connection, generation: Generation, rows: Iterable[int], modality: Modality
) -> dict[int, NDArray[np.int8]]:
    """The vectors of one modality of some rows, by row, without missing and damaged ones."""
    if not has_vectors(connection):
        return {}
    statement = f"{VECTOR_ROW} WHERE generation = ? AND row IN (SELECT value FROM json_each(?))"  # noqa: S608
    found = connection.execute(statement, (generation.number, json.dumps([int(row) for row in rows])))
    intact = ((each[0], each[COLUMN[modality]]) for each in found if is_code_row_intact(*each))
    return {row: np.frombuffer(vector, dtype=np.int8) for row, vector in intact if vector}


def stack_vectors(rows: IntArray, vectors: Mapping[int, NDArray[np.int8]]) -> NDArray[np.int8]:
    """Vectors as a matrix in the order of rows, zeros for those without one.

    Example:
        >>> stack_vectors(np.array([3, 5]), {5: np.array([1, 2], dtype=np.int8)})
        array([[0, 0],
               [1, 2]], dtype=int8)
    """
    stacked = np.zeros((len(rows), max(map(len, vectors.values()), default=0)), dtype=np.int8)
    for place, row in enumerate(rows.tolist()):
        if row in vectors:
            stacked[place] = vectors[row]
    return stacked


def rows_with_words(connection: sqlite3.Connection, prefixes: Sequence[str], limit: int) -> IntArray:
    """Rows whose text has a word with each of these beginnings, best matches first by BM25, int64 (at most limit,)."""
    query = " ".join(f"{quoted(prefix)}*" for prefix in prefixes)
    found = connection.execute("SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?", (query, limit))
    return np.array([row for (row,) in found], dtype=np.int64)


def rows_with_labels(connection: sqlite3.Connection, names: Iterable[str], limit: int) -> IntArray:
    """Rows with any of these labels, those with most of them first, int64 (at most limit,)."""
    found = connection.execute(
        "SELECT row FROM item_labels JOIN labels USING (label) WHERE name IN (SELECT value FROM json_each(?)) "
        "GROUP BY row ORDER BY count(*) DESC, row LIMIT ?",
        (json.dumps(list(names), ensure_ascii=False), limit),
    )
    return np.array([row for (row,) in found], dtype=np.int64)


def damaged_code_rows(block: Sequence[CodeRow], bits: int) -> set[int]:
    """The rows whose codes do not match their checksum, or have the wrong length."""
    width = -(-bits // 8)
    return {
        each[0]
        for each in block
        if not is_code_row_intact(*each)
        or (each[2] is not None and len(each[2]) != width)
        or (each[3] is not None and len(each[3]) != width)
    }


def damaged_codes_message(connection: sqlite3.Connection, row: int) -> str:
    """A message about codes that do not match their checksum."""
    return (
        f"The codes of the item {id_of_row(connection, row)!r} (row {row}) do not match their checksum in the "
        "database; run `rmsh library repair`."
    )


def id_of_row(connection: sqlite3.Connection, row: int) -> str | None:
    """The ID of a row as stored, or None if the row is missing."""
    found = connection.execute("SELECT id FROM items WHERE row = ?", (row,)).fetchone()
    return str(found[0]) if found else None


def items_of_rows(connection: sqlite3.Connection, rows: Iterable[int]) -> dict[int, Item]:
    """The items of some rows, by increasing row; FormatError if one is damaged or missing."""
    items, damaged = intact_items(connection, rows)
    for message in damaged.values():
        raise FormatError(message)
    return items


def coded_items(
    connection: sqlite3.Connection, first: int, end: int
) -> list[tuple[int, Item, bytes | None, bytes | None]]:
    """Row, item, image code and text code of the rows from ``first`` to ``end - 1``; FormatError if one is damaged."""
    generation = generation_of(connection)
    statement = f"{CODE_ROW} WHERE generation = ? AND row >= ? AND row < ? ORDER BY row"
    found = connection.execute(statement, (generation.number, first, end)).fetchall()
    for row in damaged_code_rows(found, generation.bits):
        raise FormatError(damaged_codes_message(connection, row))
    items = items_of_rows(connection, [each[0] for each in found])
    return [(row, items[row], image, text) for row, _, image, text, _ in found]


def intact_items(connection: sqlite3.Connection, rows: Iterable[int]) -> tuple[dict[int, Item], dict[int, str]]:
    """The intact items of some rows by row, and a message about each of the others."""
    wanted = sorted({int(row) for row in rows})
    items: dict[int, Item] = {}
    damaged = {row: f"The item of row {row} is missing in the database; run `rmsh library repair`." for row in wanted}
    for stored in stored_items(connection, wanted):
        row, name, text, picture, labels, _ = stored
        if is_item_intact(stored):
            items[row] = Item(name, text, picture, tuple(labels))
            del damaged[row]
        else:
            damaged[row] = (
                f"The text, labels, image path or ID of the item {name!r} (row {row}) do not match their checksum in "
                "the database; run `rmsh library repair`."
            )
    return items, damaged


def stored_items(connection: sqlite3.Connection, rows: Sequence[int]) -> Iterator[StoredItem]:
    """Row, ID, text, image path, sorted labels and checksum of some rows, as stored, intact or not."""
    parameters = (json.dumps(rows),)
    labels: defaultdict[int, list[str]] = defaultdict(list)
    for row, name in connection.execute(
        "SELECT row, name FROM item_labels LEFT JOIN labels USING (label) "
        "WHERE row IN (SELECT value FROM json_each(?))",
        parameters,
    ):
        labels[row].append(name)
    found = connection.execute(
        "SELECT row, id, text, picture, checksum FROM items WHERE row IN (SELECT value FROM json_each(?)) ORDER BY row",
        parameters,
    )
    for row, name, text, picture, checksum in found:
        yield row, name, text, picture, sorted(labels[row], key=str), checksum


def rows_of_ids(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, int]:
    """The rows of those IDs that are in the library."""
    wanted = json.dumps(ids, ensure_ascii=False)
    return dict(connection.execute("SELECT id, row FROM items WHERE id IN (SELECT value FROM json_each(?))", (wanted,)))


_FILTERS: dict[type[Leaf], str] = {
    Label: "SELECT row FROM item_labels WHERE label = (SELECT label FROM labels WHERE name = ?)",
    Id: "SELECT row FROM items WHERE id = ?",
    Text: "SELECT rowid AS row FROM texts WHERE texts MATCH ?",
    Phrase: "SELECT rowid AS row FROM texts WHERE texts MATCH ?",
}
_FILTER_BLOCK = 1 << 20


def matching_rows(connection: sqlite3.Connection, condition: Leaf) -> Iterator[IntArray]:
    """The rows of the items that satisfy one condition, int64 (n,) increasing, block by block.

    SQLite joins the numbers of a block into one string; a Python object per row would take three times as long.
    """
    to_query = to_phrases if type(condition) is Text else quoted if type(condition) is Phrase else str
    block = f"SELECT group_concat(row) FROM ({_FILTERS[type(condition)]} AND row > ? ORDER BY row LIMIT ?)"  # noqa: S608
    last = 0
    while numbers := connection.execute(block, (to_query(condition.value), last, _FILTER_BLOCK)).fetchone()[0]:
        rows = np.sort(np.fromstring(numbers, dtype=np.int64, sep=","))
        yield rows
        last = int(rows[-1])


def to_phrases(words: str) -> str:
    """A query of the full-text index that matches texts with all of these words.

    Example:
        >>> to_phrases("dog* OR cat")
        '"dog*" "OR" "cat"'
    """
    return " ".join(map(quoted, words.replace("\0", " ").split()))


def quoted(phrase: str) -> str:
    """A query of the full-text index that matches texts with these words next to each other."""
    return '"{}"'.format(phrase.replace("\0", " ").replace('"', '""'))
