"""Indexes in memory: the codes by row, and what all such indexes share; they differ only in how they search.

Rows 0 to m - 1 are in the base, which may be memory-mapped, and later ones in the tail. Appending never touches the
base. The tail doubles its capacity when it is full, so adding n codes one by one copies about 2 n codes.

Kernels receive read-only arrays: numba compiles separately for writable and read-only arrays, and a memory-mapped base
is read-only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from rmsh.codes import check_bits
from rmsh.core.errors import CodesError, InputError
from rmsh.index.base import Hits, Index, Neighbours, check_k, check_radius

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from rmsh.codes import Codes
    from rmsh.core.types import BitArray, IntArray, WordArray


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view


class _GrowingArray:
    """An array that grows along its first axis; ``filled`` is its content."""

    def __init__(self, start: NDArray[Any]) -> None:
        self._buffer = start
        self.filled = start

    def append(self, more: NDArray[Any]) -> None:
        old, new = len(self.filled), len(self.filled) + len(more)
        if new > len(self._buffer):
            buffer = np.empty((max(new, 2 * old), *self._buffer.shape[1:]), dtype=self._buffer.dtype)
            buffer[:old] = self.filled
            self._buffer = buffer
        self._buffer[old:new] = more
        self.filled = self._buffer[:new]


class CodeStore:
    """Codes as 64-bit words, by row.

    The base is uint64 (m, ceil(bits / 64)), C-contiguous, such as a read-only memory map, and is not copied; ``alive``,
    bool (m,), is False for its removed rows.
    """

    def __init__(self, bits: int, base: WordArray | None = None, *, alive: BitArray | None = None) -> None:
        self.bits = check_bits(bits)
        self.width = -(-self.bits // 64)
        empty = np.empty((0, self.width), dtype=np.uint64)
        self._base: WordArray = empty if base is None else _check_base(base, self.width)
        self._tail = _GrowingArray(empty)
        self._alive = None if alive is None else _GrowingArray(_check_alive(alive, len(self._base)))
        self._count = len(self._base) if alive is None else int(np.count_nonzero(alive))

    def __len__(self) -> int:
        return self._count

    @property
    def row_count(self) -> int:
        """Number of rows ever assigned."""
        return len(self._base) + len(self._tail.filled)

    @property
    def segments(self) -> tuple[WordArray, WordArray]:
        """Base and tail, (rows, width) each; the first row of the tail follows the last of the base."""
        return read_only(self._base), read_only(self._tail.filled)

    @property
    def alive(self) -> BitArray | None:
        """Which rows are stored, bool (row_count,); None until a row is removed."""
        return None if self._alive is None else read_only(self._alive.filled)

    def append(self, words: WordArray) -> IntArray:
        """Add codes, uint64 (n, width), and return their rows."""
        first = self.row_count
        self._tail.append(words)
        if self._alive is not None:
            self._alive.append(np.ones(len(words), dtype=np.bool_))
        self._count += len(words)
        return np.arange(first, first + len(words), dtype=np.int64)

    def remove(self, rows: IntArray) -> None:
        """Mark rows as removed: all of them, or none if one is unknown."""
        rows = np.unique(rows)
        known = (rows >= 0) & (rows < self.row_count)
        if self._alive is not None:
            known[known] = self._alive.filled[rows[known]]
        if not known.all():
            raise InputError(
                f"Row {rows[~known][0]} is not in this index of {len(self)} items; give rows of stored items."
            )
        if self._alive is None:
            self._alive = _GrowingArray(np.ones(self.row_count, dtype=np.bool_))
        self._alive.filled[rows] = False
        self._count -= len(rows)

    def admitted(self, where: BitArray | None) -> int:
        """Number of items that a mask admits."""
        if where is None:
            return len(self)
        return int(np.count_nonzero(where if self._alive is None else where & self._alive.filled))


def _check_base(base: WordArray, width: int) -> WordArray:
    if base.dtype != np.uint64 or base.ndim != 2 or base.shape[1] != width or not base.flags.c_contiguous:
        raise CodesError(
            f"Got a base of {base.dtype} {base.shape}; give a C-contiguous uint64 array of shape (n, {width})."
        )
    return np.asarray(base)  # a plain array over the memory map


def _check_alive(alive: BitArray, rows: int) -> BitArray:
    if alive.dtype != np.bool_ or alive.shape != (rows,):
        raise CodesError(f"Got a mask of {alive.dtype} {alive.shape} for a base of {rows} rows; give bool ({rows},).")
    return alive.copy()


class StoredIndex(Index, ABC):
    """An index over a :class:`CodeStore`; ``base.py`` specifies its methods.

    Args:
        bits: number of bits per code, 1 to 512.
    """

    def __init__(self, bits: int) -> None:
        self._store = CodeStore(bits)

    @classmethod
    def over(cls, words: WordArray, bits: int, *, alive: BitArray | None = None, **options: Any) -> Self:
        """Create an index over existing codes, such as a memory-mapped file, without copying them.

        Args:
            words: uint64 (n, ceil(bits / 64)); their rows are 0 to n - 1.
            bits: number of bits per code.
            alive: bool (n,), False for removed rows.
            options: keyword arguments of the constructor.
        """
        index = cls(bits, **options)
        index._store = CodeStore(bits, words, alive=alive)
        return index

    @property
    def bits(self) -> int:
        return self._store.bits

    @property
    def row_count(self) -> int:
        return self._store.row_count

    def __len__(self) -> int:
        return len(self._store)

    def add(self, codes: Codes) -> IntArray:
        self._check_length(codes)
        return self._store.append(codes.words())

    def remove(self, rows: ArrayLike) -> None:
        array = np.asarray(rows)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InputError(f"Got rows of {array.dtype} {array.shape}; give integers of shape (n,).")
        self._store.remove(array.astype(np.int64))

    def search(self, codes: Codes, k: int, *, where: BitArray | None = None) -> Hits:
        self._check_length(codes)
        mask = self._check_mask(where)
        found = min(check_k(k), self._store.admitted(mask))
        if not found or not len(codes):
            return Hits(np.empty((len(codes), found), np.int64), np.empty((len(codes), found), np.int32))
        return self._nearest(codes.words(), found, mask)

    def within(self, codes: Codes, radius: int, *, where: BitArray | None = None) -> Neighbours:
        self._check_length(codes)
        mask = self._check_mask(where)
        limit = min(check_radius(radius), self.bits)
        if not self._store.admitted(mask) or not len(codes):
            return Neighbours(np.zeros(len(codes) + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))
        return self._within(codes.words(), limit, mask)

    @abstractmethod
    def _nearest(self, words: WordArray, k: int, where: BitArray | None) -> Hits:
        """The k nearest items of at least one query; at least k items are admitted."""

    @abstractmethod
    def _within(self, words: WordArray, radius: int, where: BitArray | None) -> Neighbours:
        """All items within a radius of at most ``bits`` of at least one query; at least one item is admitted."""

    def _check_length(self, codes: Codes) -> None:
        if codes.bits != self.bits:
            raise CodesError(
                f"Got codes of {codes.bits} bits for an index of {self.bits} bits; encode with the model of the index."
            )

    def _check_mask(self, where: Any) -> BitArray | None:
        if where is None:
            return None
        mask = np.asarray(where)
        if mask.dtype != np.bool_ or mask.shape != (self.row_count,):
            received = f"a mask of {mask.dtype} {mask.shape}" if mask.ndim else repr(where)
            raise InputError(
                f"Got {received} for where; an index takes a boolean mask over its {self.row_count} rows. To filter by "
                "label, id or text, search a library."
            )
        return np.ascontiguousarray(mask)
