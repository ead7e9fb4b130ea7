"""What a library holds: counts, sizes, whose codes, and the state of its snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmsh.errors import FormatError
from rmsh.library.reading import generation_of, last_change
from rmsh.library.schema import VERSION
from rmsh.library.snapshot import SNAPSHOT
from rmsh.library.views import open_snapshot

if TYPE_CHECKING:
    import sqlite3

    from rmsh.library.library import Library

__all__ = ["Description", "describe"]

_COUNTS = {
    "items": "SELECT count(*) FROM items",
    "labels": "SELECT count(*) FROM labels",
    "image codes": "SELECT count(image) FROM codes JOIN library USING (generation)",
    "text codes": "SELECT count(text) FROM codes JOIN library USING (generation)",
    "codes kept of older models": "SELECT count(*) FROM codes WHERE generation < (SELECT generation FROM library)",
    "codes ready of the next model": "SELECT count(*) FROM codes WHERE generation > (SELECT generation FROM library)",
}


@dataclass(frozen=True)
class Description:
    """What a library holds.

    Args:
        id: names the library.
        format: the version of its files.
        model: the fingerprint of the model that made its codes.
        bits: the length of a code.
        generation: how often it was given other codes, counted from 1.
        source: the folder of its pictures; None for its own.
        changes: the number of its last change.
        counts: how many there are of what.
        snapshot: whether the snapshot serves, and if not, why.
        bytes: the size of each file.
    """

    id: str
    format: int
    model: str
    bits: int
    generation: int
    source: str | None
    changes: int
    counts: dict[str, int]
    snapshot: str
    bytes: dict[str, int]


def describe(library: Library) -> Description:
    """Look at a library; counting reads the whole database."""
    with library.reading() as connection:
        name, source = connection.execute("SELECT id, source FROM library").fetchone()
        generation, seq = generation_of(connection), last_change(connection)
        counts = {what: int(connection.execute(sql).fetchone()[0]) for what, sql in _COUNTS.items()}
        snapshot = _snapshot_state(library, connection, seq)
    files = sorted(path for path in library.folder.rglob("*") if path.is_file())
    sizes = {path.relative_to(library.folder).as_posix(): path.stat().st_size for path in files}
    return Description(
        id=name,
        format=VERSION,
        model=generation.fingerprint,
        bits=generation.bits,
        generation=generation.number,
        source=source,
        changes=seq,
        counts=counts,
        snapshot=snapshot,
        bytes=sizes,
    )


def _snapshot_state(library: Library, connection: sqlite3.Connection, seq: int) -> str:
    try:
        snapshot = open_snapshot(library.folder, connection)
    except FormatError:
        return "damaged; codes are read from the database"
    if snapshot is None:
        other = "of another state" if (library.folder / SNAPSHOT).exists() else "none"
        return f"{other}; codes are read from the database"
    return "up to date" if snapshot.stamp.seq == seq else f"{seq - snapshot.stamp.seq:,} changes behind"
