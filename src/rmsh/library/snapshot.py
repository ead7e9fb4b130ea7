"""The snapshot: codes and rows of one state of a library in one file that is memory-mapped; derived, never the truth.

Layout: magic, then for each modality its codes as 64-bit words and its rows (int64; both little-endian), then what the
file holds as JSON with a checksum for each block, then the length and the checksum of that JSON. It is written under
another name, flushed and renamed, so a torn file never has the name of the snapshot.

When damage is found: opening looks at the length and at the JSON, which a file that was cut or mixed up does not pass;
the blocks of a modality are compared with their checksums when it is first asked for. That reads each code once more
than the search that follows, a fraction of a second for ten million, and no flipped bit becomes a wrong result.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from rmsh.codes import to_words
from rmsh.core.errors import FormatError
from rmsh.core.files import atomic
from rmsh.core.types import MODALITIES
from rmsh.library.queries import BLOCK, change_token, code_blocks, generation_of, last_change

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import IntArray, Modality, WordArray

SNAPSHOT = "codes.snapshot"

_MAGIC = b"rmsh snapshot 1\n"
_END = struct.Struct("<QI")  # length and checksum of the JSON


_FEW = 1 << 14  # rows that are read from the database in a few milliseconds


def is_stale(behind: int, count: int) -> bool:
    """Whether so many changed rows are too many for a snapshot of ``count`` rows.

    A sixteenth is read from the database in well under a second at ten million, and the snapshot is written about
    log(n) / log(17/16) times while a library grows to n.

    Example:
        >>> is_stale(16_384, 0), is_stale(16_385, 0), is_stale(16_385, 1_000_000)
        (False, True, False)
    """
    return behind > max(_FEW, count // 16)


@dataclass(frozen=True)
class Stamp:
    """Which state of which library a snapshot shows.

    Args:
        library: the id of the library.
        generation: the generation of the codes.
        bits: their length.
        seq: the last change it knows.
        token: of that change, so that another history with the same numbers is not mistaken for this one.
    """

    library: str
    generation: int
    bits: int
    seq: int
    token: str

    @classmethod
    def of(cls, connection: sqlite3.Connection, seq: int | None = None) -> Stamp:
        """The stamp of the state that a connection sees, or of an earlier change of it; an unknown one has no token."""
        (library,) = connection.execute("SELECT id FROM library").fetchone()
        generation = generation_of(connection)
        number = last_change(connection) if seq is None else seq
        return cls(library, generation.number, generation.bits, number, change_token(connection, number))


def write_snapshot(path: Path, connection: sqlite3.Connection) -> int:
    """Write what a connection sees, from the database alone: damage of an older snapshot is never copied.

    Returns:
        How many codes the larger modality has.

    Raises:
        FormatError: codes in the database are damaged; the older snapshot is still there.
    """
    stamp, generation, parts, counts = Stamp.of(connection), generation_of(connection), {}, []
    with atomic(path) as file:
        file.write(_MAGIC)
        for modality in MODALITIES:
            rows = []
            words = _Section(file)
            for of_block, packed in code_blocks(connection, modality, generation=generation):
                rows.append(of_block)
                words.write(to_words(packed).astype("<u8", copy=False))
            numbers = _Section(file)
            for of_block in rows:
                numbers.write(of_block.astype("<i8", copy=False))
            counts.append(sum(map(len, rows)))
            parts[modality] = {"count": counts[-1], "words": words.facts(), "rows": numbers.facts()}
        facts = json.dumps({"stamp": asdict(stamp), "block": BLOCK, "parts": parts}).encode()
        file.write(facts + _END.pack(len(facts), zlib.crc32(facts)))
    return max(counts)


class _Section:
    """An array that is written block by block."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._offset = file.tell()
        self._checksums: list[int] = []

    def write(self, block: NDArray[Any]) -> None:
        self._checksums.append(zlib.crc32(block.data))
        self._file.write(block.data)

    def facts(self) -> dict[str, Any]:
        return {"offset": self._offset, "checksums": self._checksums}


class Snapshot:
    """A snapshot that was opened: its stamp, and its codes as memory-mapped arrays.

    Raises:
        FormatError: the file is cut, mixed up or of another program.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        empty = np.empty(0, dtype=np.uint8)  # nothing cannot be mapped
        self._bytes = np.memmap(path, dtype=np.uint8, mode="r") if path.stat().st_size else empty
        try:
            facts = self._facts()
            self.stamp = Stamp(**facts["stamp"])
            self._block, self._parts = int(facts["block"]), dict(facts["parts"])
            self.counts = {modality: int(self._parts[modality]["count"]) for modality in MODALITIES}
        except (ValueError, KeyError, TypeError, struct.error) as error:
            raise FormatError(f"The snapshot {path} is damaged ({error})") from error

    def _facts(self) -> dict[str, Any]:
        size, checksum = _END.unpack(self._bytes[-_END.size :].tobytes())
        begin = len(self._bytes) - _END.size - size
        facts = self._bytes[max(begin, 0) : max(begin, 0) + size].tobytes()
        if self._bytes[: len(_MAGIC)].tobytes() != _MAGIC or zlib.crc32(facts) != checksum:
            raise ValueError("it is cut, or not a snapshot")
        return dict(json.loads(facts))

    def shows(self, connection: sqlite3.Connection) -> bool:
        """Whether it is of the library, the generation and the history that a connection sees."""
        return bool(self.stamp.token) and self.stamp == Stamp.of(connection, self.stamp.seq)

    def arrays(self, modality: Modality) -> tuple[IntArray, WordArray]:
        """Rows, int64 (n,), and words, uint64 (n, width), after comparing them with their checksums.

        Raises:
            FormatError: a bit is not as it was written.
        """
        part, count, width = self._parts[modality], self.counts[modality], -(-self.stamp.bits // 64)
        rows = self._section(part["rows"], count, 1, "<i8").reshape(-1)
        words = self._section(part["words"], count, width, "<u8")
        return rows.astype(np.int64, copy=False), words.astype(np.uint64, copy=False)

    def _section(self, facts: Mapping[str, Any], count: int, width: int, dtype: str) -> NDArray[Any]:
        begin = int(facts["offset"])
        array = self._bytes[begin : begin + count * width * 8]
        step = self._block * width * 8
        for number, checksum in enumerate(facts["checksums"]):
            if zlib.crc32(array[number * step : (number + 1) * step].data) != checksum:
                raise FormatError(f"The snapshot {self.path} is damaged (block {number} from byte {begin} has changed)")
        return array.view(dtype).reshape(count, width)
