"""The index beyond one machine: codes by row in a collection of a Milvus server, behind the same protocol.

It keeps the conventions of ``base.py`` but for these: which of equally distant items come last among the k nearest is
the server's choice; k, and the rows that a mask names, have a limit; saving leaves the codes where they are. An index
of lists (``BIN_IVF_FLAT``) is approximate, unless it looks at all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from rmsh.codes import check_bits
from rmsh.core.errors import InputError
from rmsh.index.base import Hits, Neighbours, check_k, check_length, check_mask, check_radius, check_rows, no_such_row
from rmsh.index.folder import read_manifest, write_manifest
from rmsh.milvus.connection import Address, Settings
from rmsh.milvus.filters import keys_in
from rmsh.milvus.table import MOST, Found, Table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from rmsh.codes import Codes
    from rmsh.core.types import BitArray, IntArray

__all__ = ["MilvusIndex"]

_MOST_NAMED = 100_000  # rows in an expression, which takes Milvus about a second to read


class MilvusIndex:
    """An index in a new collection; who asks, and by what right, stands in the environment (milvus_connection.py).

    Args:
        bits: the length of a code, 1 to 512.
        address: of the collection, ``http(s)://HOST:PORT/NAME``.
        lists: 0 for ``BIN_FLAT``, which is exact, or the number of lists of ``BIN_IVF_FLAT``.
        probes: how many lists a search looks at; an eighth where None.

    Raises:
        InputError: there is such a collection already.
        RmshError: the server cannot be reached, or refuses us.
    """

    kind: ClassVar[str] = "milvus"

    def __init__(self, bits: int, *, address: str, lists: int = 0, probes: int | None = None) -> None:
        check_bits(bits)
        place, settings = Address.parse(address), Settings.read()
        if Table.find(place, settings=settings) is not None:
            raise InputError(f"There is a collection at {place} already; give another name, or open it.")
        Table.create(place, bits, settings=settings, lists=lists).close()
        self._connect(place, probes=probes, row_count=0)

    def _connect(self, place: Address, *, probes: int | None, row_count: int) -> None:
        self._table = Table.open(place, settings=Settings.read(), probes=probes)
        self._probes = probes
        while later := self._table.query(f"key >= {row_count}", ["key"]):  # given after the index was saved
            row_count = 1 + max(int(entity["key"]) for entity in later)
        self._row_count = row_count

    @property
    def address(self) -> Address:
        """Where the collection is."""
        return self._table.address

    @property
    def bits(self) -> int:
        """The length of a code."""
        return self._table.bits

    @property
    def row_count(self) -> int:
        """How many rows were ever given; masks have this length."""
        return self._row_count

    def __len__(self) -> int:
        return self._table.count()

    def close(self) -> None:
        """End the connection."""
        self._table.close()

    def drop(self) -> None:
        """Remove the collection from the server."""
        self._table.drop()

    def add(self, codes: Codes) -> IntArray:
        """Add codes, and return the rows they got, int64 (n,)."""
        check_length(codes, self.bits)
        rows = np.arange(self._row_count, self._row_count + len(codes), dtype=np.int64)
        self._row_count += len(codes)
        for start in range(0, len(codes), MOST):
            some = slice(start, start + MOST)
            pairs = zip(rows[some].tolist(), codes.packed[some], strict=True)
            self._table.upsert([{"key": row, "code": bytes(code)} for row, code in pairs])
        return rows

    def remove(self, rows: ArrayLike) -> None:
        """Remove the items of these rows."""
        wanted = np.unique(check_rows(rows)).tolist()
        for start in range(0, len(wanted), MOST):
            some = wanted[start : start + MOST]
            there = {int(entity["key"]) for entity in self._table.query(keys_in(some), ["key"])}
            if len(there) < len(some):
                raise no_such_row(min(set(some) - there), len(self))
        self._table.delete(wanted)

    def search(self, codes: Codes, k: int, *, where: BitArray | None = None) -> Hits:
        """The k nearest items of each query, or as many as there are."""
        check_length(codes, self.bits)
        wanted, condition = check_k(k), self._condition(where)
        found = self._table.nearest(codes.packed, wanted, where=condition)
        width = len(found[0]) if found else min(wanted, self._table.count(condition))
        rows, distances = _arrays(found)
        return Hits(rows.reshape(len(codes), width), distances.reshape(len(codes), width))

    def within(self, codes: Codes, radius: int, *, where: BitArray | None = None) -> Neighbours:
        """All items at a distance of at most ``radius`` of each query."""
        check_length(codes, self.bits)
        reach, condition = min(check_radius(radius), self.bits), self._condition(where)
        found = self._table.within(codes.packed, reach, where=condition)
        return Neighbours(np.cumsum([0, *map(len, found)]), *_arrays(found))

    def _condition(self, where: BitArray | None) -> str:
        """A mask as an expression that names the rows it admits, or those it does not, whichever are fewer."""
        if where is None:
            return ""
        mask = check_mask(where, self.row_count)
        admitted = int(np.count_nonzero(mask))
        if admitted == mask.size:
            return ""
        others = admitted > mask.size // 2
        named = np.flatnonzero(~mask if others else mask)
        if named.size > _MOST_NAMED:
            raise InputError(
                f"A mask that admits {admitted:,} of {mask.size:,} rows was given; Milvus is told up to "
                f"{_MOST_NAMED:,} rows: push a library and filter it by label or id."
            )
        return keys_in(named.tolist(), but=others)

    def save(self, folder: Path) -> None:
        """Let the server write the collection to its storage, and write into a folder where it is."""
        self._table.flush()
        place = {"address": str(self.address), "probes": self._probes}
        write_manifest(folder, {"kind": self.kind, "rows": self.row_count, "files": {}, **place})

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Connect to the collection of an index that was saved; it holds what it holds now."""
        manifest: dict[str, Any] = read_manifest(folder)
        index = cls.__new__(cls)
        place = Address.parse(manifest["address"])
        index._connect(place, probes=manifest["probes"], row_count=manifest["rows"])
        return index


def _arrays(found: list[list[Found]]) -> tuple[IntArray, NDArray[np.int32]]:
    """Rows and distances of all hits, one query behind the other."""
    pairs = np.array([hit[:2] for hits in found for hit in hits], dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1].astype(np.int32)
