"""Changing the database of a library, over a connection inside a write transaction."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from rmsh.core.errors import InputError
from rmsh.library.items import Batch, Blobs, checksum_of
from rmsh.library.photos import insert_photos
from rmsh.library.queries import IN_LIST, facts_of, generation_of, last_change, rows_of_ids
from rmsh.library.schema import codes_checksum


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
    chosen = (json.dumps(rows),)
    labels = f"SELECT name, row FROM item_labels JOIN labels USING (label) WHERE row {IN_LIST}"  # noqa: S608
    _count_labels(connection, connection.execute(labels, chosen), sign=-1)
    connection.execute(f"DELETE FROM items WHERE row {IN_LIST}", chosen)  # noqa: S608
    log_change(connection, "remove", rows)
    return len(rows)


def insert(connection: sqlite3.Connection, batch: Batch) -> int:
    """Add new items and return the number of changed rows; InputError if an ID exists already."""
    existing = rows_of_ids(connection, batch.ids, thorough=False)
    if existing:
        raise InputError(f"The ID {min(existing)!r} is already in the library; update it, or use another ID.")
    generation = generation_of(connection)
    generation.check(batch.model, *batch.codes.values())
    (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'items'").fetchone()
    rows = range(last + 1, last + 1 + len(batch.items))
    stored = [(row, item.id, item.text, item.picture, item.labels) for row, item in zip(rows, batch.items, strict=True)]
    connection.executemany(
        "INSERT INTO items (row, id, text, picture, checksum) VALUES (?, ?, ?, ?, ?)",
        [(*values[:4], checksum_of(*values)) for values in stored],
    )
    insert_codes(connection, generation.number, batch.code_rows(rows))
    labels = [(name, row) for row, *_, names in stored for name in names]
    names = sorted({name for name, _ in labels})
    connection.executemany("INSERT OR IGNORE INTO labels (name) VALUES (?)", [(name,) for name in names])
    connection.executemany(
        "INSERT INTO item_labels (row, label) SELECT :row, label FROM labels WHERE name = :name",
        [{"name": name, "row": row} for name, row in labels],
    )
    _count_labels(connection, labels)
    insert_photos(connection, {row: batch.files[name] for row, name, *_ in stored if name in batch.files})
    log_change(connection, "add", rows)
    return len(rows)


def insert_codes(connection: sqlite3.Connection, generation: int, codes: Iterable[Blobs]) -> None:
    """Add or replace the codes of rows, and vectors if the library stores them; rows without an item are skipped."""
    of_codes, of_vectors = [], []
    with_vectors = facts_of(connection).store == "codes+vectors"
    for row, image, text, image_vector, text_vector in codes:
        checksum = None
        if with_vectors and (image_vector is not None or text_vector is not None):
            checksum = codes_checksum(row, generation, image_vector, text_vector)
            of_vectors.append((generation, image_vector, text_vector, checksum, row))
        of_row = codes_checksum(row, generation, image, text, checksum)
        of_codes.append((generation, image, text, checksum, of_row, row))
    connection.executemany(
        "INSERT OR REPLACE INTO codes (row, generation, image, text, vectors, checksum) "
        "SELECT row, ?, ?, ?, ?, ? FROM items WHERE row = ?",
        of_codes,
    )
    connection.executemany(
        "INSERT OR REPLACE INTO vectors (row, generation, image, text, checksum) "
        "SELECT row, ?, ?, ?, ? FROM items WHERE row = ?",
        of_vectors,
    )


def _count_labels(connection: sqlite3.Connection, labels: Iterable[tuple[str, int]], *, sign: int = 1) -> None:
    """Count rows that got or lost a label, given as name and row; a damaged count stays damaged."""
    counts, totals = Counter[str](), Counter[str]()
    for name, row in labels:
        counts[name] += sign
        totals[name] += sign * row
    connection.executemany(
        "UPDATE labels SET count = count + :count, total = total + :total, "
        "checksum = checksum_of(label, name, count + :count, total + :total) "
        "WHERE name = :name AND (checksum = checksum_of(label, name, count, total) OR max(count, total, checksum) = 0)",
        [{"name": name, "count": count, "total": totals[name]} for name, count in counts.items()],
    )


def log_change(connection: sqlite3.Connection, kind: str, rows: Iterable[int], *, after: int = 0) -> None:
    """Add a change of some rows to the log, with a number greater than ``after``."""
    last = max(last_change(connection)[0], after)
    entries = [
        (seq, kind, first, last_row, secrets.token_hex(8))
        for seq, (first, last_row) in enumerate(to_ranges(rows), start=last + 1)
    ]
    connection.executemany(
        "INSERT INTO changes (seq, kind, first, last, token, checksum) VALUES (?, ?, ?, ?, ?, ?)",
        [(*entry, checksum_of(*entry)) for entry in entries],
    )


def log_new_codes(connection: sqlite3.Connection, *, after: int = 0) -> None:
    """Log a change of all rows: open readers load every code again."""
    log_change(connection, "recode", [0], after=after)


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
