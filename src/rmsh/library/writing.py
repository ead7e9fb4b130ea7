"""Changing the database of a library, over a connection inside a write transaction, which keeps all or nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rmsh.core.errors import InputError
from rmsh.library.checksums import codes_checksum, item_checksum
from rmsh.library.queries import generation_of, rows_of_ids

if TYPE_CHECKING:
    from rmsh.library.items import Batch

__all__ = ["delete", "insert", "log", "replace", "to_ranges"]


def insert(connection: sqlite3.Connection, batch: Batch) -> int:
    """Add new items, and return how many rows that changed.

    Raises:
        InputError: an id is there already.
        CodesError: the codes are of another length or of another model than the library's.
    """
    there = rows_of_ids(connection, batch.ids)
    if there:
        raise InputError(f"The id {min(there)!r} is in the library already; update it, or give another id.")
    return _insert(connection, batch)


def replace(connection: sqlite3.Connection, batch: Batch) -> int:
    """Put new content under ids that are there, each in a new row, and return how many rows that changed.

    Raises:
        InputError: an id is not there.
        CodesError: the codes are of another length or of another model than the library's.
    """
    return delete(connection, batch.ids) + _insert(connection, batch)


def delete(connection: sqlite3.Connection, ids: Sequence[str]) -> int:
    """Remove items with their codes and labels, and return how many rows that changed.

    Raises:
        InputError: an id is not there.
    """
    there = rows_of_ids(connection, ids)
    if len(there) < len(ids):
        missing = min(set(ids) - set(there))
        raise InputError(f"The id {missing!r} is not in the library; give ids of items that are there.")
    rows = list(there.values())
    connection.execute("DELETE FROM items WHERE row IN (SELECT value FROM json_each(?))", (json.dumps(rows),))
    log(connection, "remove", rows)
    return len(rows)


def _insert(connection: sqlite3.Connection, batch: Batch) -> int:
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
    blobs = zip(rows, batch.blobs("image"), batch.blobs("text"), strict=True)
    number = generation.number
    connection.executemany(
        "INSERT INTO codes (row, generation, image, text, checksum) VALUES (?, ?, ?, ?, ?)",
        [(row, number, image, text, codes_checksum(row, number, image, text)) for row, image, text in blobs],
    )
    names = sorted({label for item in batch.items for label in item.labels})
    connection.executemany("INSERT OR IGNORE INTO labels (name) VALUES (?)", [(name,) for name in names])
    connection.executemany(
        "INSERT INTO item_labels (label, row) SELECT label, ? FROM labels WHERE name = ?",
        [(row, name) for row, item in numbered for name in item.labels],
    )
    log(connection, "add", rows)
    return len(rows)


def log(connection: sqlite3.Connection, kind: str, rows: Iterable[int]) -> None:
    """Write down what happened to some rows."""
    connection.executemany(
        "INSERT INTO changes (kind, first, last) VALUES (?, ?, ?)",
        [(kind, first, last) for first, last in to_ranges(rows)],
    )


def to_ranges(rows: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of each run of consecutive rows.

    Example:
        >>> to_ranges([7, 3, 4, 5])
        [(3, 5), (7, 7)]
    """
    ordered = np.sort(np.fromiter(rows, dtype=np.int64))
    ends = np.flatnonzero(np.diff(ordered) != 1)
    firsts = ordered[np.concatenate(([0], ends + 1))] if ordered.size else ordered
    lasts = ordered[np.concatenate((ends, [-1]))] if ordered.size else ordered
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))
