"""The tables of a library, the checksums of their rows, and the migration from older formats.

- ``items``: row numbers increase and are never reused. An update keeps the ID and writes a new row, so the content of a
  row never changes, and equal distances are ordered by the time an item was last written.
- ``codes``: packed codes (see codes.py) by row and generation. A generation is the codes of one model; the codes of a
  new model are stored next to the old ones until they are complete.
- ``changes``: a log with one entry per range of rows, written in the same transaction as the change and numbered
  without gaps. Readers learn from it what happened since the change they know. The token identifies an entry: a
  database that was restored from a backup continues with the same numbers but other tokens.
- ``labels``: the names, each with the number and the sum of the rows that have it.
- ``texts``: the full-text index, updated by triggers.
- ``vectors``: optional; int8 vectors (see codes.py) by row and generation. They follow from images, texts and model: a
  damaged one is ignored, `rmsh library repair` deletes it, and recoding makes it again. ``library.store`` says whether
  vectors are stored; without this column, which the first libraries of format 3 lack, they are.

SQLite checks the structure of its pages, not the values in them, so a flipped bit would go unnoticed without checksums:
CRC-32 over an unambiguous encoding of the values. ``items.checksum`` covers an item with its labels; ``codes.checksum``
the codes of one row and the checksum of its vectors, so that lost vectors are noticed; the others cover their row. Lost
rows are noticed because two tables must agree: every item has codes, and every label has as many rows as it says.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import struct
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TypeAlias
from zlib import crc32

from rmsh.core.errors import FormatError
from rmsh.core.types import Store
from rmsh.library.items import checksum_of

VERSION = 3
RESTORE = "restore a backup with `rmsh library restore`"  # the advice if damage cannot be repaired

# row, generation, image, text, checksum of the vectors, checksum
CodeRow: TypeAlias = tuple[int, int, bytes | None, bytes | None, int | None, int]
StoredItem: TypeAlias = tuple[int, str, str | None, str | None, list[str], int]  # ..., sorted labels, checksum

KEEP_ROWS = """
CREATE TRIGGER item_kept BEFORE UPDATE ON items BEGIN
    SELECT RAISE (ABORT, 'rows of items never change');
END
"""

_CREATE_VECTORS = """
CREATE TABLE IF NOT EXISTS vectors (
    row INTEGER NOT NULL REFERENCES items ON DELETE CASCADE,
    generation INTEGER NOT NULL,
    image BLOB,
    text BLOB,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (row, generation)
) WITHOUT ROWID
"""

COUNT_LABELS = (
    """
    UPDATE labels SET count = (SELECT count(*) FROM item_labels WHERE item_labels.label = labels.label),
    total = (SELECT coalesce(sum(row), 0) FROM item_labels WHERE item_labels.label = labels.label)
    """,
    "UPDATE labels SET checksum = checksum_of(label, name, count, total)",
)

MIGRATIONS: Mapping[int, Sequence[str]] = {  # version -> the statements that lead to the next one
    1: (
        "ALTER TABLE items ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE codes ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0",
        "DROP TRIGGER item_kept",
        """
        UPDATE items SET checksum = item_checksum(row, id, text, picture, (
            SELECT json_group_array(name) FROM item_labels JOIN labels USING (label) WHERE item_labels.row = items.row
        ))
        """,
        "UPDATE codes SET checksum = codes_checksum(row, generation, image, text)",
        KEEP_ROWS,
    ),
    2: (
        _CREATE_VECTORS,
        "ALTER TABLE codes ADD COLUMN vectors INTEGER",
        # A damaged row keeps the checksum that it does not match.
        """
        UPDATE codes SET vectors = (
            SELECT checksum FROM vectors WHERE vectors.row = codes.row AND vectors.generation = codes.generation
        ) WHERE checksum = codes_checksum(row, generation, image, text)
        """,
        "UPDATE codes SET checksum = codes_checksum(row, generation, image, text, vectors) WHERE vectors IS NOT NULL",
        "ALTER TABLE library ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0",
        "UPDATE library SET checksum = checksum_of(id, generation, source)",
        "ALTER TABLE changes ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0",
        "UPDATE changes SET checksum = checksum_of(seq, kind, first, last, token)",
        "ALTER TABLE labels ADD COLUMN count INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE labels ADD COLUMN total INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE labels ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0",
        *COUNT_LABELS,
    ),
}

_APPLICATION = 0x726D7368  # "rmsh", in the header of the database file

_TABLES = """
CREATE TABLE library (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    generation INTEGER NOT NULL REFERENCES generations,
    source TEXT,
    checksum INTEGER NOT NULL DEFAULT 0,
    store TEXT NOT NULL
);
CREATE TABLE generations (
    generation INTEGER PRIMARY KEY AUTOINCREMENT,
    fingerprint TEXT NOT NULL,
    bits INTEGER NOT NULL
);
CREATE TABLE items (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    text TEXT,
    picture TEXT,
    checksum INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE codes (
    row INTEGER NOT NULL REFERENCES items ON DELETE CASCADE,
    generation INTEGER NOT NULL REFERENCES generations,
    image BLOB,
    text BLOB,
    checksum INTEGER NOT NULL DEFAULT 0,
    vectors INTEGER,
    CHECK (image IS NOT NULL OR text IS NOT NULL),
    PRIMARY KEY (row, generation)
) WITHOUT ROWID;
CREATE TABLE labels (
    label INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    count INTEGER NOT NULL DEFAULT 0,
    total INTEGER NOT NULL DEFAULT 0,
    checksum INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE item_labels (
    label INTEGER NOT NULL REFERENCES labels,
    row INTEGER NOT NULL REFERENCES items ON DELETE CASCADE,
    PRIMARY KEY (label, row)
) WITHOUT ROWID;
CREATE INDEX labels_of_item ON item_labels (row);
CREATE TABLE changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('add', 'remove', 'recode')),
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    token TEXT NOT NULL DEFAULT (hex(randomblob(8))),
    checksum INTEGER NOT NULL DEFAULT 0
);
CREATE VIRTUAL TABLE texts USING fts5(text, content = 'items', content_rowid = 'row');
CREATE TRIGGER item_added AFTER INSERT ON items BEGIN
    INSERT INTO texts (rowid, text) VALUES (new.row, new.text);
END;
CREATE TRIGGER item_removed AFTER DELETE ON items BEGIN
    INSERT INTO texts (texts, rowid, text) VALUES ('delete', old.row, old.text);
END;
"""

_head = struct.Struct("<qqii").pack  # row, generation, and the length of each code, -1 for none


def codes_checksum(
    row: int, generation: int, image: bytes | None, text: bytes | None, vectors: int | None = None
) -> int:
    """The checksum of the codes or the vectors of one row; that of codes includes the checksum of the vectors.

    Example:
        >>> codes_checksum(1, 1, None, b"x") == codes_checksum(1, 1, b"x", None)
        False
    """
    head = _head(row, generation, -1 if image is None else len(image), -1 if text is None else len(text))
    checksum = crc32(text or b"", crc32(image or b"", crc32(head)))
    return checksum if vectors is None else crc32(vectors.to_bytes(8), checksum)


def is_code_row_intact(
    row: int, generation: int, image: bytes | None, text: bytes | None, vectors: int | None, checksum: int
) -> bool:
    """Whether the codes of one row match their checksum; a damaged database may return values of any type."""
    try:
        return codes_checksum(row, generation, image, text, vectors) == checksum
    except (AttributeError, OverflowError, TypeError, struct.error):
        return False


def create_tables(connection: sqlite3.Connection, fingerprint: str, *, bits: int, store: Store) -> None:
    """Create the tables of a library without items, which keeps its own images."""
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.executescript(f"BEGIN; {_TABLES} {_CREATE_VECTORS}; {KEEP_ROWS};")
    connection.execute("INSERT INTO generations VALUES (1, ?, ?)", (fingerprint, bits))
    name = secrets.token_hex(8)
    connection.execute("INSERT INTO library VALUES (1, ?, 1, NULL, ?, ?)", (name, checksum_of(name, 1, None), store))
    connection.execute("COMMIT")


@cache
def _columns() -> set[tuple[str, str, str, int]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(f"{_TABLES} {_CREATE_VECTORS}; ALTER TABLE library DROP COLUMN store;")
        return _columns_of(connection)


def _columns_of(connection: sqlite3.Connection) -> set[tuple[str, str, str, int]]:
    """Table, name, type and place in the key of all columns."""
    statement = """
        SELECT item.name, found.name, upper(found.type), pk FROM sqlite_master AS item
        JOIN pragma_table_info(item.name) AS found WHERE item.type = 'table' AND item.name NOT LIKE 'texts%'
    """
    return set(connection.execute(statement))


def check_version(connection: sqlite3.Connection, folder: Path) -> None:
    """Raise FormatError unless a database has the current format; other types of columns would change comparisons."""
    version = version_of(connection, folder)
    if version < VERSION:
        raise FormatError(f"{folder} has format {version}, not format {VERSION}; run `rmsh library upgrade {folder}`.")
    if damaged := _columns() - _columns_of(connection):
        column = ".".join(min(damaged)[:2])
        raise FormatError(f"The database of the library {folder} is damaged (the column {column}); {RESTORE}.")


def version_of(connection: sqlite3.Connection, folder: Path) -> int:
    """The format of a library's database; FormatError if another program or a newer rmsh wrote it."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise FormatError(f"{folder / 'items.sqlite'} was not written by rmsh; give the folder of a library.")
    if version > VERSION:
        raise FormatError(f"{folder} has format {version}, this rmsh reads up to format {VERSION}; update rmsh.")
    return int(version)


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Migrate a database to the current format, inside the caller's transaction."""

    def checksum_of_item(row: int, name: str, text: str | None, picture: str | None, labels: str) -> int:
        return checksum_of(row, name, text, picture, sorted(json.loads(labels)))

    connection.create_function("item_checksum", 5, checksum_of_item, deterministic=True)
    for step in range(version, VERSION):
        for statement in MIGRATIONS[step]:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {step + 1}")
