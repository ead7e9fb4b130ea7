"""Changing the database of a library, over a connection inside a write transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rmsh.core.errors import InputError
from rmsh.library.queries import generation_of, rows_of_ids
from rmsh.library.schema import CREATE_VECTORS, codes_checksum, item_checksum

if TYPE_CHECKING:
    from rmsh.library.items import Batch


def replace(connection: sqlite3.Connection, batch: Batch) -> int:
    """Replace existing items, each by a new row, and return the number of changed rows; InputError for a new ID."""
    return delete(connection, batch.ids) + insert(connection, batch)


def delete(connection: sqlite3.Connection, ids: Sequence[str]) -> int:
    """Remove items with their codes and labels and return the number of changed rows; InputError for an unknown ID."""
    existing = rows_of_ids(connection, ids)
    if len(existing) < len(ids):
        missing = min(set(ids) - set(existing))
        raise InputError(f"The ID {missing!r} is not in the library; give IDs of existing items.")
    rows = list(existing.values())
    connection.execute("DELETE FROM items WHERE row IN (SELECT value FROM json_each(?))", (json.dumps(rows),))
    log_change(connection, "remove", rows)
    return len(rows)


def insert(connection: sqlite3.Connection, batch: Batch) -> int:
    """Add new items and return the number of changed rows; InputError if an ID exists already."""
    existing = rows_of_ids(connection, batch.ids)
    if existing:
        raise InputError(f"The ID {min(existing)!r} is already in the library; update it, or use another ID.")
    generation = generation_of(connection)
    generation.check(batch.model, *batch.codes.values())
    (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'items'").fetchone()
    rows = range(last + 1, last + 1 + len(batch.items))
    numbered = list(zip(rows, batch.items, strict=True))
    connection.executemany(
        "INSERT INTO items (row, id, text, picture, checksum) VALUES (?, ?, ?, ?, ?)",
        [
            (row, item.id, item.text, item.picture, item_checksum(row, item.id, item.text, item.picture, item.labels))
            for row, item in numbered
        ],
    )
    insert_codes(connection, generation.number, zip(rows, batch.blobs("image"), batch.blobs("text"), strict=True))
    if batch.has_vectors:
        insert_vectors(connection, generation.number, rows, batch)
    insert_labels(connection, [(row, name) for row, item in numbered for name in item.labels])
    log_change(connection, "add", rows)
    return len(rows)


def insert_codes(
    connection: sqlite3.Connection, generation: int, codes: Iterable[tuple[int, bytes | None, bytes | None]]
) -> None:
    """Add or replace codes, given as row, image code and text code; rows without an item are skipped."""
    connection.executemany(
        "INSERT OR REPLACE INTO codes (row, generation, image, text, checksum) "
        "SELECT row, ?, ?, ?, ? FROM items WHERE row = ?",
        [(generation, image, text, codes_checksum(row, generation, image, text), row) for row, image, text in codes],
    )


def insert_vectors(connection: sqlite3.Connection, generation: int, rows: Iterable[int], batch: Batch) -> None:
    """Add or replace the vectors of a batch; rows without an item are skipped."""
    connection.execute(CREATE_VECTORS)
    both = zip(rows, batch.blobs("image", vectors=True), batch.blobs("text", vectors=True), strict=True)
    connection.executemany(
        "INSERT OR REPLACE INTO vectors (row, generation, image, text, checksum) "
        "SELECT row, ?, ?, ?, ? FROM items WHERE row = ?",
        [(generation, image, text, codes_checksum(row, generation, image, text), row) for row, image, text in both],
    )


def insert_labels(connection: sqlite3.Connection, labels: Sequence[tuple[int, str]]) -> None:
    """Add labels, given as row and name."""
    names = sorted({name for _, name in labels})
    connection.executemany("INSERT OR IGNORE INTO labels (name) VALUES (?)", [(name,) for name in names])
    connection.executemany("INSERT INTO item_labels (label, row) SELECT label, ? FROM labels WHERE name = ?", labels)


def log_change(connection: sqlite3.Connection, kind: str, rows: Iterable[int]) -> None:
    """Add a change of some rows to the log."""
    connection.executemany(
        "INSERT INTO changes (kind, first, last) VALUES (?, ?, ?)",
        [(kind, first, last) for first, last in to_ranges(rows)],
    )


def log_new_codes(connection: sqlite3.Connection) -> None:
    """Log a change of all rows: open readers load every code again."""
    log_change(connection, "recode", [0])


def to_ranges(rows: Iterable[int]) -> list[tuple[int, int]]:
    """First and last row of each run of consecutive rows.

    Example:
        >>> to_ranges([7, 3, 4, 5])
        [(3, 5), (7, 7)]
    """
    ordered = np.sort(np.fromiter(rows, dtype=np.int64))
    if not ordered.size:
        return []
    ends = np.flatnonzero(np.diff(ordered) != 1)
    firsts, lasts = ordered[np.append(0, ends + 1)], ordered[np.append(ends, -1)]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))
