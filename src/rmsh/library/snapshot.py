"""The snapshot: the codes and rows of one state of a library in one memory-mapped file, derived from the database.

Layout: a magic string; then for each modality its codes as 64-bit words and its rows as int64, both little-endian; then
a JSON description with a checksum per block; then the length and the checksum of that JSON. The file is written under a
temporary name, flushed and renamed, so an incomplete file never has the name of the snapshot.

Opening a snapshot checks its length and its JSON, which detects a truncated file. The blocks of a modality are compared
with their checksums when it is first used. That takes a fraction of a second for ten million codes, and a flipped bit
never becomes a wrong result. A small file is read into memory. A large one is mapped; its size and time are compared
before and after every search, because another program may overwrite it in place. If such a file is truncated during a
search, the operating system ends the process.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import struct
import weakref
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rmsh.codes import to_words
from rmsh.core.errors import DataError, FormatError, RmshError
from rmsh.core.files import atomic, open_regular
from rmsh.core.types import MODALITIES, IntArray, Modality, WordArray
from rmsh.library import queries

if TYPE_CHECKING:
    from rmsh.library.database import Readers

SNAPSHOT = "codes.snapshot"

_MAGIC = b"rmsh snapshot 1\n"
_END = struct.Struct("<QI")  # length and checksum of the JSON
_MOST_IN_MEMORY = 64 << 20  # bytes
_FEW = 1 << 14  # rows that are read from the database in a few milliseconds

_log = logging.getLogger("rmsh.library")


def is_stale(behind: int, count: int) -> bool:
    """Whether a snapshot of ``count`` rows should be rewritten after ``behind`` changed rows.

    Reading a sixteenth of ten million rows from the database takes well under a second, and the snapshot is written
    about log(n) / log(17/16) times while a library grows to n rows.

    Example:
        >>> is_stale(16_384, 0), is_stale(16_385, 0), is_stale(16_385, 1_000_000)
        (False, True, False)
    """
    return behind > max(_FEW, count // 16)


@dataclass(frozen=True)
class Stamp:
    """The state of a library that a snapshot shows."""

    library: str
    generation: int
    bits: int
    seq: int  # the last change it includes
    token: str  # of that change: distinguishes histories with the same numbers

    @classmethod
    def of(cls, connection: sqlite3.Connection) -> Stamp:
        """The stamp of the current state."""
        generation = queries.generation_of(connection)
        return cls(
            queries.facts_of(connection).id, generation.number, generation.bits, *queries.last_change(connection)
        )


def write_snapshot(path: Path, connection: sqlite3.Connection) -> int:
    """Write the state that a connection sees and return the number of codes of the larger modality.

    Only the database is read, so damage of an older snapshot is never copied. Damaged codes in the database raise
    FormatError, and the older snapshot remains.
    """
    parts: dict[str, dict[str, Any]] = {}
    with atomic(path) as file:
        file.write(_MAGIC)
        for modality in MODALITIES:
            rows: list[IntArray] = []
            words = _write_blocks(file, _words(connection, modality, rows))
            numbers = _write_blocks(file, (block.astype("<i8", copy=False) for block in rows))
            parts[modality] = {"count": sum(map(len, rows)), "words": words, "rows": numbers}
        facts = json.dumps({"stamp": asdict(Stamp.of(connection)), "block": queries.BLOCK, "parts": parts}).encode()
        file.write(facts + _END.pack(len(facts), zlib.crc32(facts)))
    return max(int(part["count"]) for part in parts.values())


def _words(connection: sqlite3.Connection, modality: Modality, rows: list[IntArray]) -> Iterator[NDArray[Any]]:
    """The codes of a modality as words, block by block; their rows are appended to ``rows``."""
    for block, packed in queries.code_blocks(connection, modality):
        rows.append(block)
        yield to_words(packed).astype("<u8", copy=False)


def _write_blocks(file: IO[bytes], blocks: Iterable[NDArray[Any]]) -> dict[str, Any]:
    """Write an array block by block, and return its offset and checksums."""
    offset, checksums = file.tell(), []
    for block in blocks:
        checksums.append(zlib.crc32(block.data))
        file.write(block.data)
    return {"offset": offset, "checksums": checksums}


class Snapshot:
    """An open snapshot: its stamp, and its codes as arrays; FormatError if the file is damaged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open_regular(path)
        weakref.finalize(self, self._file.close)
        self._status = self._file_status()
        size, _ = self._status
        self.mapped = np.memmap(self._file, dtype=np.uint8, mode="r") if size > _MOST_IN_MEMORY else None
        try:
            length, checksum = _END.unpack(self._read(size - _END.size, _END.size))
            content = self._read(size - _END.size - length, length)
            if self._read(0, len(_MAGIC)) != _MAGIC or zlib.crc32(content) != checksum:
                raise ValueError("truncated, or not a snapshot")
            facts = json.loads(content)
            self.stamp = Stamp(**facts["stamp"])
            self._block, self._parts = int(facts["block"]), dict(facts["parts"])
            self.counts = {modality: int(self._parts[modality]["count"]) for modality in MODALITIES}
        except (ValueError, KeyError, TypeError, struct.error) as error:
            raise FormatError(f"The snapshot {path} is damaged ({error})") from error

    def _file_status(self) -> tuple[int, int]:
        status = os.fstat(self._file.fileno())
        return status.st_size, status.st_mtime_ns

    def is_unchanged(self) -> bool:
        """Whether no program has overwritten the file; one that replaces it by another file does no harm."""
        return self._file_status() == self._status

    def _read(self, begin: int, count: int) -> bytes:
        self._file.seek(max(begin, 0))
        return self._file.read(min(count, self._status[0]))

    def arrays(self, modality: Modality) -> tuple[IntArray, WordArray]:
        """Rows, int64 (n,), and words, uint64 (n, width); FormatError if they do not match their checksums."""
        part, count = self._parts[modality], self.counts[modality]
        rows = self._section(part["rows"], count, 1, "<i8").reshape(-1)
        words = self._section(part["words"], count, -(-self.stamp.bits // 64), "<u8")
        return rows.astype(np.int64, copy=False), words.astype(np.uint64, copy=False)

    def _section(self, facts: Mapping[str, Any], count: int, width: int, dtype: str) -> NDArray[Any]:
        begin, size, step = int(facts["offset"]), count * width * 8, self._block * width * 8
        if self.mapped is None:
            array = np.frombuffer(self._read(begin, size), dtype=np.uint8)
        else:
            array = self.mapped[begin : begin + size]
        for number, checksum in enumerate(facts["checksums"]):
            if zlib.crc32(array[number * step : (number + 1) * step].data) != checksum:
                raise FormatError(f"The snapshot {self.path} is damaged (in block {number} from byte {begin})")
        return array.view(dtype).reshape(count, width)


def open_snapshot(folder: Path, connection: sqlite3.Connection) -> Snapshot | None:
    """The snapshot of a library, or None if there is none for the history that a connection sees.

    A damaged snapshot raises FormatError.
    """
    try:
        snapshot = Snapshot(folder / SNAPSHOT)
    except (OSError, DataError):
        return None
    shown = snapshot.stamp
    same_codes = shown == replace(Stamp.of(connection), seq=shown.seq, token=shown.token)
    return snapshot if same_codes and queries.has_change(connection, shown.seq, shown.token) else None


class SnapshotWriter:
    """Rewrites the snapshot of a library that is open for writing if it is damaged or stale."""

    def __init__(self, folder: Path, readers: Readers) -> None:
        self._folder = folder
        self._readers = readers
        self._count, self._behind = 0, 0  # rows in the snapshot, and rows changed since

    def check(self) -> None:
        """Check every bit of the snapshot, and rewrite it if it is damaged or stale."""
        damaged = False
        with self._readers.reading() as connection:
            self._behind = queries.last_row(connection)
            try:
                snapshot = open_snapshot(self._folder, connection)
                if snapshot is not None:
                    self._count = max(len(snapshot.arrays(modality)[0]) for modality in MODALITIES)
                    since = queries.changes_since(connection, snapshot.stamp.seq)
                    self._behind = sum(last - first + 1 for _, first, last in since)
            except FormatError as error:
                _log.warning("%s; it is rewritten", error)
                damaged = True
        if damaged or is_stale(self._behind, self._count):
            self.update()

    def changed(self, rows: int) -> None:
        """Count rows that were added or removed, and rewrite the snapshot if it is stale."""
        self._behind += rows
        if is_stale(self._behind, self._count):
            self.update()

    def update(self) -> None:
        """Write the snapshot; if that fails, the database is used instead until the next attempt."""
        try:
            self.write()
        except RmshError as error:
            _log.warning("the snapshot could not be written: %s", error)
            self._behind = 0

    def write(self) -> None:
        """Write the snapshot; RmshError if that fails, and the old one remains."""
        with self._readers.reading() as connection:
            self._count = write_snapshot(self._folder / SNAPSHOT, connection)
        self._behind = 0
