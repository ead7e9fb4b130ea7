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
from rmsh.index.base import Hits, Neighbours, check_k, check_radius

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


class StoredIndex(ABC):
    """A searchable set of codes; the conventions are at the top of ``base.py``.

    Args:
        bits: number of bits per code, 1 to 512.
    """

    def __init__(self, bits: int) -> None:
        self.bits = check_bits(bits)
        self.width = -(-self.bits // 64)  # words per code
        self._base: WordArray = np.empty((0, self.width), dtype=np.uint64)
        self._tail = _GrowingArray(self._base)
        self._alive: _GrowingArray | None = None  # bool (row_count,); None until a row is removed
        self._count = 0

    @classmethod
    def over(cls, words: WordArray, bits: int, **options: Any) -> Self:
        """Create an index over existing codes, such as a memory-mapped file, without copying them.

        Args:
            words: C-contiguous uint64 (n, ceil(bits / 64)); their rows are 0 to n - 1.
            bits: number of bits per code.
            options: keyword arguments of the constructor.
        """
        index = cls(bits, **options)
        if words.dtype != np.uint64 or words.shape[1:] != (index.width,) or not words.flags.c_contiguous:
            raise CodesError(
                f"Got a base of {words.dtype} {words.shape}; give a C-contiguous uint64 array of shape "
                f"(n, {index.width})."
            )
        index._base = np.asarray(words)  # a plain array over the memory map
        index._count = len(words)
        return index

    def __len__(self) -> int:
        """Number of items."""
        return self._count

    @property
    def row_count(self) -> int:
        """Number of rows ever assigned; masks have this length."""
        return len(self._base) + len(self._tail.filled)

    @property
    def segments(self) -> tuple[WordArray, WordArray]:
        """Base and tail, (rows, width) each; the first row of the tail follows the last of the base."""
        return read_only(self._base), read_only(self._tail.filled)

    @property
    def alive(self) -> BitArray | None:
        """Which rows are stored, bool (row_count,); None until a row is removed."""
        return None if self._alive is None else read_only(self._alive.filled)

    def add(self, codes: Codes) -> IntArray:
        """Add codes and return their rows, int64 (n,)."""
        self._check_length(codes)
        first = self.row_count
        self._tail.append(codes.words())
        if self._alive is not None:
            self._alive.append(np.ones(len(codes), dtype=np.bool_))
        self._count += len(codes)
        return np.arange(first, self.row_count, dtype=np.int64)

    def remove(self, rows: ArrayLike) -> None:
        """Remove the items with these rows: all of them, or none if one is unknown."""
        array = np.asarray(rows)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InputError(f"Got rows of {array.dtype} {array.shape}; give integers of shape (n,).")
        array = np.unique(array.astype(np.int64))
        known = (array >= 0) & (array < self.row_count)
        if self._alive is not None:
            known[known] = self._alive.filled[array[known]]
        if not known.all():
            raise InputError(
                f"Row {array[~known][0]} is not in this index of {len(self)} items; give rows of stored items."
            )
        if self._alive is None:
            self._alive = _GrowingArray(np.ones(self.row_count, dtype=np.bool_))
        self._alive.filled[array] = False
        self._count -= len(array)

    def search(self, codes: Codes, k: int, *, where: BitArray | None = None) -> Hits:
        """Find the k nearest items of each query."""
        self._check_length(codes)
        mask, admitted = self._check_mask(where)
        found = min(check_k(k), admitted)
        if not found or not len(codes):
            return Hits(np.empty((len(codes), found), np.int64), np.empty((len(codes), found), np.int32))
        return self._nearest(codes.words(), found, mask)

    def within(self, codes: Codes, radius: int, *, where: BitArray | None = None) -> Neighbours:
        """Find all items at a distance of at most ``radius`` from each query."""
        self._check_length(codes)
        mask, admitted = self._check_mask(where)
        limit = min(check_radius(radius), self.bits)
        if not admitted or not len(codes):
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

    def _check_mask(self, where: Any) -> tuple[BitArray | None, int]:
        """The mask, and the number of items that it admits."""
        if where is None:
            return None, len(self)
        mask = np.asarray(where)
        if mask.dtype != np.bool_ or mask.shape != (self.row_count,):
            received = f"a mask of {mask.dtype} {mask.shape}" if mask.ndim else repr(where)
            raise InputError(
                f"Got {received} for where; an index takes a boolean mask over its {self.row_count} rows. To filter by "
                "label, id or text, search a library."
            )
        admitted = mask if self._alive is None else mask & self._alive.filled
        return np.ascontiguousarray(mask), int(np.count_nonzero(admitted))
