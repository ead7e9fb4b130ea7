"""The tables of a library, their version, and how an older version becomes the present one.

- ``items``: a row is given once, increasing, and never again. An update keeps the id and takes a new row: rows never
  change their content, so whoever knows a row knows it for good, and equal distances are ordered by when an item was
  last written.
- ``codes``: packed codes (see codes.py) by row and generation. A generation is the codes of one model; new codes are
  written beside the old ones until they are all there.
- ``changes``: what happened, one entry for a range of rows, written in the transaction it tells of. Readers learn from
  it what is new since the change they know. The token makes an entry recognisable: a database that was put back from a
  backup goes on with the same numbers and other tokens.
- ``texts``: the full-text index; triggers keep it in step.

``items.checksum`` covers an item with its labels, ``codes.checksum`` the codes of one row (see checksums.py). Vectors
and photo metadata will be stored in additional tables with checksums of their own, so format 2 needs no further
migration.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from rmsh.core.errors import FormatError
from rmsh.library.checksums import codes_checksum, item_checksum

__all__ = ["KEEP_ROWS", "MIGRATIONS", "VERSION", "check_version", "create_tables", "migrate", "version_of"]

VERSION = 2

KEEP_ROWS = """
CREATE TRIGGER item_kept BEFORE UPDATE ON items BEGIN
    SELECT RAISE (ABORT, 'rows of items never change');
END
"""

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
}

_APPLICATION = 0x726D7368  # "rmsh", in the header of the database file

_TABLES = """
CREATE TABLE library (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    generation INTEGER NOT NULL REFERENCES generations,
    source TEXT
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
    CHECK (image IS NOT NULL OR text IS NOT NULL),
    PRIMARY KEY (row, generation)
) WITHOUT ROWID;
CREATE TABLE labels (
    label INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
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
    token TEXT NOT NULL DEFAULT (hex(randomblob(8)))
);
CREATE VIRTUAL TABLE texts USING fts5(text, content = 'items', content_rowid = 'row');
CREATE TRIGGER item_added AFTER INSERT ON items BEGIN
    INSERT INTO texts (rowid, text) VALUES (new.row, new.text);
END;
CREATE TRIGGER item_removed AFTER DELETE ON items BEGIN
    INSERT INTO texts (texts, rowid, text) VALUES ('delete', old.row, old.text);
END;
"""


def create_tables(connection: sqlite3.Connection, fingerprint: str, *, bits: int, source: str | None) -> None:
    """Make an empty database a library without items."""
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.executescript(f"BEGIN; {_TABLES} {KEEP_ROWS};")
    connection.execute("INSERT INTO generations VALUES (1, ?, ?)", (fingerprint, bits))
    connection.execute("INSERT INTO library VALUES (1, ?, 1, ?)", (secrets.token_hex(8), source))
    connection.execute("COMMIT")


def check_version(connection: sqlite3.Connection, folder: Path) -> None:
    """Refuse a database of another program, of a newer rmsh, or one that is to be upgraded first."""
    version = version_of(connection, folder)
    if version < VERSION:
        raise FormatError(
            f"The library {folder} has format {version}, this rmsh reads {VERSION}; `rmsh library upgrade` it."
        )


def version_of(connection: sqlite3.Connection, folder: Path) -> int:
    """The version of a library's database.

    Raises:
        FormatError: it is of another program, or of a newer rmsh.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise FormatError(f"The items.sqlite in {folder} is of another program; give the folder of a library.")
    if version > VERSION:
        raise FormatError(
            f"The library {folder} has format {version}, this rmsh reads up to format {VERSION}; update rmsh."
        )
    return int(version)


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring a database to the present version, inside the caller's transaction."""
    connection.create_function("codes_checksum", 4, codes_checksum, deterministic=True)
    connection.create_function("item_checksum", 5, _item_checksum, deterministic=True)
    for step in range(version, VERSION):
        for statement in MIGRATIONS[step]:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {step + 1}")


def _item_checksum(row: int, name: str, text: str | None, picture: str | None, labels: str) -> int:
    return item_checksum(row, name, text, picture, sorted(json.loads(labels)))
