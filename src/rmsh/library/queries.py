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
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from rmsh.codes import Codes
from rmsh.core.errors import CodesError, FormatError
from rmsh.core.types import STORES
from rmsh.index.filters import Fact, Id, Label, Leaf, Phrase
from rmsh.library.items import Item, is_intact
from rmsh.library.photos import rows_with_fact
from rmsh.library.schema import RESTORE, is_code_row_intact

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, IntArray, Modality, PackedArray, Store
    from rmsh.library.schema import CodeRow, StoredItem

BLOCK = 1 << 16  # codes read at once: a few megabytes of Python objects, whatever the size of the library

CODE_ROW = "SELECT row, generation, image, text, vectors, checksum FROM codes"
COLUMN = {"image": 2, "text": 3}  # in a CodeRow
IN_LIST = "IN (SELECT value FROM json_each(?))"  # a list of any length is one parameter


class Generation(NamedTuple):
    """The codes of one model: a number, the fingerprint of the model and the length of a code."""

    number: int
    fingerprint: str
    bits: int

    def to_array(self, codes: Sequence[bytes]) -> PackedArray:
        """Packed codes, uint8 (n, bytes), from the bytes of each."""
        return np.frombuffer(b"".join(codes), dtype=np.uint8).reshape(len(codes), -(-self.bits // 8))

    def is_intact(self, row: CodeRow) -> bool:
        """Whether a row of codes matches its checksum, and its codes have the right length."""
        return is_code_row_intact(*row) and {len(code) for code in row[2:4] if code is not None} <= {-(-self.bits // 8)}

    def check(self, model: str, *given: Codes) -> None:
        """Raise CodesError for codes of another model or length."""
        if model != self.fingerprint:
            found = f"codes of the model {model}, the library has those of {self.fingerprint}"
            raise CodesError(f"Got {found}; use its model.")
        for codes in given:
            if codes.bits != self.bits:
                raise CodesError(f"Got codes of {codes.bits} bits, the library has {self.bits}; use its model.")


def generation_of(connection: sqlite3.Connection) -> Generation:
    """The generation that is searched."""
    number = (facts_of(connection).generation,)
    found = connection.execute("SELECT generation, fingerprint, bits FROM generations WHERE generation = ?", number)
    return Generation(*(found.fetchone() or _refuse("its list of models")))


class Facts(NamedTuple):
    """The description of a library in its database."""

    id: str
    generation: int  # number of the generation that is searched
    source: str | None  # folder of the images; None for the folder of the library
    store: Store  # whether vectors are stored next to the codes


def facts_of(connection: sqlite3.Connection) -> Facts:
    """The facts of a library; FormatError if they are damaged."""
    found = connection.execute("SELECT * FROM library").fetchone()
    if found is None or (len(found) > 4 and not is_intact(found[1:4], found[4])):  # no checksum before format 3
        _refuse("its description of the library")
    store = found[5] if len(found) > 5 else "codes+vectors"
    if store not in STORES:
        _refuse("its description of the library")
    return Facts(found[1], found[2], found[3], store)


def _refuse(part: str) -> NoReturn:
    raise FormatError(f"The database is damaged ({part}); {RESTORE}.")


OnDamage: TypeAlias = Callable[[str], None]  # called with a message about what is damaged


def refuse_damage(message: str) -> None:
    """Raise FormatError."""
    raise FormatError(message)


def damage_message(connection: sqlite3.Connection, row: int, what: str) -> str:
    """A message about a part of an item that is missing, or does not match its checksum."""
    found = connection.execute("SELECT id FROM items WHERE row = ?", (row,)).fetchone()
    item = f"the item {found[0]!r} (row {row})" if found else f"the item of row {row}, which is missing itself,"
    return f"The {what} of {item} are missing or do not match their checksum; run `rmsh library repair`."


def count_items(connection: sqlite3.Connection) -> int:
    """The number of items; FormatError if the table and the index of IDs differ."""
    count = "SELECT count(*) FROM items "
    (stored,) = connection.execute(count + "NOT INDEXED").fetchone()
    (indexed,) = connection.execute(count + "INDEXED BY sqlite_autoindex_items_1").fetchone()
    return int(stored) if stored == indexed else _refuse(f"{stored} items, but {indexed} in their index")


def last_row(connection: sqlite3.Connection) -> int:
    """The last row of an item or a code, 0 if there are none."""
    found = connection.execute("SELECT (SELECT max(row) FROM items), (SELECT max(row) FROM codes)").fetchone()
    rows = [row or 0 for row in found]
    return max(rows) if all(isinstance(row, int) for row in rows) else _refuse("its last row")


def last_change(connection: sqlite3.Connection) -> tuple[int, str]:
    """The number and the token of the last change; 0 and "" if there was none yet."""
    found = connection.execute("SELECT seq, token FROM changes ORDER BY seq DESC LIMIT 1").fetchone()
    return found or (0, "")


def has_change(connection: sqlite3.Connection, seq: int, token: str) -> bool:
    """Whether the log contains a change, given by its number and token."""
    found = connection.execute("SELECT 1 FROM changes WHERE seq = ? AND token = ?", (seq, token))
    return found.fetchone() is not None


def lost_changes(connection: sqlite3.Connection, acknowledged: tuple[int, str] | None) -> str | None:
    """Which changes are missing, if the last acknowledged one is not in the log; None if it is."""
    (first, last) = connection.execute("SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM changes").fetchone()
    if acknowledged is None or acknowledged[0] < first or has_change(connection, *acknowledged):
        return None
    return f"acknowledged changes (the last one had the number {acknowledged[0]}, the last one present has {last})"


def changes_since(connection: sqlite3.Connection, seq: int) -> list[tuple[str, int, int]]:
    """Kind, first row and last row of all changes after one, in their order; FormatError if the log is damaged."""
    statement = "SELECT seq, kind, first, last, token, checksum FROM changes WHERE seq > ? ORDER BY seq"
    changes = []
    for expected, (*entry, checksum) in enumerate(connection.execute(statement, (seq,)), start=seq + 1):
        if entry[0] != expected or not is_intact(entry, checksum):
            raise FormatError(f"The log of changes is damaged at the entry {expected}; run `rmsh library repair`.")
        changes.append((entry[1], entry[2], entry[3]))
    return changes


def is_removed(connection: sqlite3.Connection, rows: IntArray, *, since: int) -> BitArray:
    """Which of some increasing rows were removed after a change, bool (n,)."""
    ranges = [(first, last + 1) for kind, first, last in changes_since(connection, since) if kind == "remove"]
    removed = np.zeros(len(rows), dtype=np.bool_)
    for begin, end in np.searchsorted(rows, np.array(ranges, dtype=np.int64).reshape(-1, 2)):
        removed[begin:end] = True
    return removed


def code_blocks(
    connection: sqlite3.Connection, modality: Modality, *, after: int = 0, on_damage: OnDamage = refuse_damage
) -> Iterator[tuple[IntArray, PackedArray]]:
    """Rows greater than ``after``, int64 (n,) increasing, and their packed codes, uint8 (n, bytes), block by block.

    At the end, ``on_damage`` is called with a message for each item without codes that match their checksum; without
    it, such an item raises FormatError.
    """
    generation = generation_of(connection)
    found = connection.execute(f"{CODE_ROW} WHERE generation = ? AND row > ? ORDER BY row", (generation.number, after))
    coded = [np.empty(0, dtype=np.int64)]  # rows
    while block := found.fetchmany(BLOCK):
        code_of = {each[0]: each[COLUMN[modality]] for each in block if generation.is_intact(each)}
        coded.append(np.array([*code_of], dtype=np.int64))
        present = {row: code for row, code in code_of.items() if code is not None}
        yield np.array([*present], dtype=np.int64), generation.to_array([*present.values()])
    (count,) = connection.execute("SELECT count(*) FROM items WHERE row > ?", (after,)).fetchone()
    if count != sum(map(len, coded)):
        existing = rows_of(connection, "SELECT row FROM items WHERE row > ?", after)
        for row in np.setdiff1d(existing, np.concatenate(coded)).tolist():
            on_damage(damage_message(connection, row, "codes"))


def rows_of(connection: sqlite3.Connection, statement: str, *values: int | str) -> IntArray:
    """The rows that a statement selects, int64 (n,); a damaged table may have values that are not numbers."""
    found = connection.execute(statement, values)
    return np.fromiter((row for (row,) in found if isinstance(row, int)), dtype=np.int64)


def codes_of_ids(
    connection: sqlite3.Connection, ids: Sequence[str], modality: Modality, *, on_damage: OnDamage
) -> Codes:
    """The codes of the items that have one, in the order of ``ids``.

    ``on_damage`` is called with a message for each damaged item, which is skipped.
    """
    generation = generation_of(connection)
    items, damaged = intact_items(connection, rows_of_ids(connection, ids).values())
    found = select_codes(connection, generation, items)
    code_of: dict[int, Any] = {each[0]: each[COLUMN[modality]] for each in found if generation.is_intact(each)}
    damaged |= {row: damage_message(connection, row, "codes") for row in items.keys() - code_of.keys()}
    for message in damaged.values():
        on_damage(message)
    row_of = {items[row].id: row for row, code in code_of.items() if code is not None}
    present = {name: row_of[name] for name in ids if name in row_of}
    stored = vectors_of_rows(connection, present.values(), on_damage=on_damage)[modality]
    complete = bool(present) and stored.keys() >= set(present.values())
    return Codes(
        generation.to_array([code_of[row] for row in present.values()]),
        generation.bits,
        np.array(list(present)),
        stack_vectors([*present.values()], stored) if complete else None,
    )


def select_codes(connection: sqlite3.Connection, generation: Generation, rows: Iterable[int]) -> list[CodeRow]:
    """The codes of some rows as stored, intact or not."""
    statement = f"{CODE_ROW} WHERE generation = ? AND row {IN_LIST}"
    return connection.execute(statement, (generation.number, json.dumps([int(row) for row in rows]))).fetchall()


def has_vectors(connection: sqlite3.Connection) -> bool:
    """Whether any vectors are stored."""
    return connection.execute("SELECT 1 FROM vectors LIMIT 1").fetchone() is not None


def vectors_of_rows(
    connection: sqlite3.Connection, rows: Iterable[int], *, on_damage: OnDamage = refuse_damage
) -> dict[Modality, dict[int, bytes]]:
    """The vectors of some rows as bytes, by modality and row.

    ``on_damage`` is called with a message for each row whose vectors are damaged or lost; they are skipped.
    """
    vectors: dict[Modality, dict[int, bytes]] = {"image": {}, "text": {}}
    if not has_vectors(connection):
        return vectors
    generation, wanted = generation_of(connection), {int(row) for row in rows}
    statement = f"SELECT row, image, text, checksum FROM vectors WHERE generation = ? AND row {IN_LIST}"  # noqa: S608
    for row, image, text, checksum in connection.execute(statement, (generation.number, json.dumps(sorted(wanted)))):
        if is_code_row_intact(row, generation.number, image, text, None, checksum):
            wanted.discard(row)
            for of_row, vector in zip(vectors.values(), (image, text), strict=True):
                if vector is not None:
                    of_row[row] = vector
    if wanted:  # these have none, unless their codes are damaged or lost, or say otherwise
        codes = select_codes(connection, generation, wanted)
        for row in wanted.difference(each[0] for each in codes if is_code_row_intact(*each) and each[4] is None):
            on_damage(damage_message(connection, row, "vectors"))
    return vectors


def stack_vectors(rows: Sequence[int], vectors: Mapping[int, bytes]) -> NDArray[np.int8]:
    """Vectors as a matrix in the order of rows, zeros for those without one.

    Example:
        >>> stack_vectors([3, 5], {5: bytes([1, 2])})
        array([[0, 0],
               [1, 2]], dtype=int8)
    """
    size = len(next(iter(vectors.values()), b""))
    joined = b"".join([vectors.get(row, bytes(size)) for row in rows])
    return np.frombuffer(joined, dtype=np.int8).reshape(len(rows), size)


_MOST_RANKED = 2000  # texts; ranking takes about a millisecond per thousand
_MATCHING = "SELECT rowid AS row FROM texts WHERE texts MATCH ?"


def rows_with_words(connection: sqlite3.Connection, words: Sequence[Sequence[str]], limit: int) -> IntArray:
    """Rows whose text has a form of each word, the best matches by BM25, int64 (at most limit,) increasing.

    If thousands of texts have them, there are none: words that frequent tell little, and ranking would take long.
    """
    query = " AND ".join(f"({' OR '.join(map(quoted, forms))})" for forms in words)
    rows = _joined_rows(connection, f"{_MATCHING} LIMIT ?", query, limit + 1)
    if len(rows) <= limit:
        return rows
    counted = connection.execute(f"SELECT count(*) FROM ({_MATCHING} LIMIT ?)", (query, _MOST_RANKED + 1))  # noqa: S608
    if counted.fetchone()[0] > _MOST_RANKED:
        return rows[:0]
    return _joined_rows(connection, f"{_MATCHING} ORDER BY rank LIMIT ?", query, limit)


class LabelEntry(NamedTuple):
    """A label: its key and name, and the number and the sum of the rows that have it."""

    key: int
    name: str
    size: int
    total: int


def labels_by_name(connection: sqlite3.Connection) -> dict[str, LabelEntry]:
    """All labels; FormatError if one is damaged or lost."""
    found = connection.execute("SELECT label, name, count, total, checksum FROM labels").fetchall()
    (count,) = connection.execute("SELECT count(*) FROM labels WHERE name > ''").fetchone()  # counts in the index
    labels = {each[1]: LabelEntry._make(each[:4]) for each in found if is_intact(each[:4], each[4])}
    if not len(labels) == len(found) == count:
        raise FormatError("The list of labels is damaged; run `rmsh library repair`.")
    return labels


def most_frequent(lists: Sequence[IntArray], limit: int) -> IntArray:
    """The rows in any of some increasing lists, those in most of them first, int64 (at most limit,).

    Example:
        >>> most_frequent([np.array([1, 3, 7]), np.array([2, 3])], 3)
        array([3, 1, 2])
    """
    if len(lists) == 1:
        return lists[0][:limit]
    rows, counts = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *lists]), return_counts=True)
    return rows[np.argsort(-counts, kind="stable")][:limit]


def rows_of_label(connection: sqlite3.Connection, label: LabelEntry) -> Iterator[IntArray]:
    """The rows with a label, int64 (n,) increasing, block by block; FormatError if they are not all of them."""
    count = total = 0
    for rows in _row_blocks(connection, "SELECT row FROM item_labels WHERE label = ?", label.key):
        count, total = count + len(rows), total + int(rows.sum())
        yield rows
    if (count, total) != (label.size, label.total):
        raise FormatError(f"The label {label.name!r} is damaged ({count} of {label.size}); run `rmsh library repair`.")


def items_of_rows(connection: sqlite3.Connection, rows: Iterable[int]) -> dict[int, Item]:
    """The items of some rows, by increasing row; FormatError if one is damaged or missing."""
    items, damaged = intact_items(connection, rows)
    for message in damaged.values():
        refuse_damage(message)
    return items


def coded_items(
    connection: sqlite3.Connection, first: int, end: int
) -> list[tuple[int, Item, bytes | None, bytes | None]]:
    """Row, item, image code and text code of the rows from ``first`` to ``end - 1``; FormatError if one is damaged."""
    generation = generation_of(connection)
    statement = f"{CODE_ROW} WHERE generation = ? AND row >= ? AND row < ? ORDER BY row"
    found = connection.execute(statement, (generation.number, first, end)).fetchall()
    coded = np.array([each[0] for each in found if generation.is_intact(each)], dtype=np.int64)
    existing = rows_of(connection, "SELECT row FROM items WHERE row >= ? AND row < ?", first, end)
    for row in np.setxor1d(existing, coded).tolist():
        refuse_damage(damage_message(connection, row, "codes"))
    items = items_of_rows(connection, [each[0] for each in found])
    return [(row, items[row], image, text) for row, _, image, text, *_ in found]


def intact_items(connection: sqlite3.Connection, rows: Iterable[int]) -> tuple[dict[int, Item], dict[int, str]]:
    """The intact items of some rows by row, and a message about each of the others."""
    damaged = wanted = sorted({int(row) for row in rows})
    items: dict[int, Item] = {}
    for read in (_stored_at_once, stored_items):
        for row, name, text, picture, labels, checksum in read(connection, wanted):
            if is_intact((row, name, text, picture, labels), checksum):
                items[row] = Item.stored(name, text, picture, labels)
        if not (damaged := [row for row in wanted if row not in items]):
            return {row: items[row] for row in wanted}, {}
    what = "text, labels, image path or ID"
    return dict(sorted(items.items())), {row: damage_message(connection, row, what) for row in damaged}


_AT_ONCE = f"""
    SELECT json_group_array(json_array(row, id, text, picture, json((
        SELECT json_group_array(name) FROM item_labels JOIN labels USING (label) WHERE item_labels.row = items.row
    )), checksum)) FROM items WHERE row {IN_LIST}
"""  # noqa: S608


def _stored_at_once(connection: sqlite3.Connection, rows: Sequence[int]) -> Iterator[StoredItem]:
    """As :func:`stored_items`, but in one step, during which other threads run; damaged items may be missing."""
    with suppress(sqlite3.Error, ValueError):  # a value that cannot be in JSON
        (found,) = connection.execute(_AT_ONCE, (json.dumps(rows),)).fetchone()
        for row, name, text, picture, labels, checksum in json.loads(found):
            yield row, name, text, picture, sorted(labels, key=str), checksum


def stored_items(connection: sqlite3.Connection, rows: Sequence[int]) -> Iterator[StoredItem]:
    """Row, ID, text, image path, sorted labels and checksum of some rows, as stored, intact or not."""
    parameters = (json.dumps(rows),)
    labels: defaultdict[int, list[str]] = defaultdict(list)
    statement = f"SELECT row, name FROM item_labels LEFT JOIN labels USING (label) WHERE row {IN_LIST}"  # noqa: S608
    for row, name in connection.execute(statement, parameters):
        labels[row].append(name)
    statement = f"SELECT row, id, text, picture, checksum FROM items WHERE row {IN_LIST} ORDER BY row"  # noqa: S608
    for row, name, text, picture, checksum in connection.execute(statement, parameters):
        yield row, name, text, picture, sorted(labels[row], key=str), checksum


def rows_of_ids(connection: sqlite3.Connection, ids: Sequence[str], *, thorough: bool = True) -> dict[str, int]:
    """The rows of those IDs that are in the library.

    With ``thorough``, the index of IDs, which may be damaged, is compared with the items.
    """
    statement = f"SELECT id, row FROM items {{}} WHERE id {IN_LIST}"  # noqa: S608
    indexed = connection.execute(statement.format(""), (json.dumps(ids, ensure_ascii=False),)).fetchall()
    if not thorough:
        return dict(indexed)
    by_row = f"SELECT row, id FROM items NOT INDEXED WHERE row {IN_LIST}"  # noqa: S608
    id_of = dict(connection.execute(by_row, (json.dumps([row for _, row in indexed]),)))
    found = {name: row for name, row in indexed if id_of.get(row) == name}
    if missing := [name for name in ids if name not in found]:
        found |= connection.execute(statement.format("NOT INDEXED"), (json.dumps(missing, ensure_ascii=False),))
        doubtful = {name: row for name, row in indexed if name not in found}
        intact, _ = intact_items(connection, doubtful.values())  # they have other IDs; a damaged one may be meant
        found |= {name: row for name, row in doubtful.items() if row not in intact}
    return found


_FILTER_BLOCK = 1 << 20


def matching_rows(
    connection: sqlite3.Connection, condition: Leaf, labels: Callable[[], Mapping[str, LabelEntry]]
) -> Iterator[IntArray]:
    """The rows of the items that satisfy one condition, int64 (n,) increasing, block by block."""
    if isinstance(condition, Label):
        label = labels().get(condition.value)
        return iter(()) if label is None else rows_of_label(connection, label)
    if isinstance(condition, Fact):
        return _row_blocks(connection, *rows_with_fact(connection, condition))
    if isinstance(condition, Id):
        row = rows_of_ids(connection, [condition.value]).get(condition.value)
        return iter(() if row is None else [np.array([row])])
    query = quoted(condition.value) if isinstance(condition, Phrase) else to_phrases(condition.value)
    return _row_blocks(connection, _MATCHING, query)


def _row_blocks(connection: sqlite3.Connection, rows: str, value: str | int) -> Iterator[IntArray]:
    """The rows that a statement selects, in increasing blocks."""
    last, block = 0, f"{rows} AND row > ? ORDER BY row LIMIT ?"
    while len(found := _joined_rows(connection, block, value, last, _FILTER_BLOCK)):
        yield found
        last = int(found[-1])


def _joined_rows(connection: sqlite3.Connection, rows: str, *values: str | int) -> IntArray:
    """The rows that a statement selects, int64 (n,) increasing.

    SQLite joins the numbers into one string; a Python object per row would take three times as long.
    """
    (numbers,) = connection.execute(f"SELECT group_concat(row) FROM ({rows})", values).fetchone()  # noqa: S608
    try:
        return np.sort(np.fromstring(numbers, dtype=np.int64, sep=",")) if numbers else np.empty(0, dtype=np.int64)
    except ValueError:  # not a number
        _refuse("a list of rows")


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
