"""The codes an index holds: a base that may be memory-mapped, a tail that grows, and which rows are still there.

Rows 0 to m - 1 lie in the base, later ones in the tail. Appending never touches the base; the tail doubles its room
when it is full, so that adding n codes one by one copies about 2 n. Arrays for kernels are handed out sealed (not
writable): numba compiles for writable and read-only arrays apart, and a memory-mapped base is read-only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.codes import check_bits
from rmsh.core.errors import CodesError
from rmsh.index.base import no_such_row

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, IntArray, WordArray

__all__ = ["CodeStore", "sealed"]


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """The same data as an array that cannot be written."""
    view = array.view()
    view.flags.writeable = False
    return view


class _Growing:
    """An array that is appended to along its first axis; ``filled`` is what it holds."""

    def __init__(self, start: NDArray[Any]) -> None:
        self._room = start
        self.filled = start

    def append(self, more: NDArray[Any]) -> None:
        held, wanted = len(self.filled), len(self.filled) + len(more)
        if wanted > len(self._room):
            room = np.empty((max(wanted, 2 * held), *self._room.shape[1:]), dtype=self._room.dtype)
            room[:held] = self.filled
            self._room = room
        self._room[held:wanted] = more
        self.filled = self._room[:wanted]


class CodeStore:
    """Codes as 64-bit words, by row.

    Args:
        bits: the length of a code, 1 to 512.
        base: uint64 (m, ceil(bits / 64)), C-contiguous, such as a read-only memory map; it is not copied.
        alive: bool (m,), False where a row of the base was removed; None where none was.

    Raises:
        CodesError: the length, the base or its mask do not fit.

    Example:
        >>> store = CodeStore(8)
        >>> store.append(np.array([[5], [6]], dtype=np.uint64)), len(store)
        (array([0, 1]), 2)
    """

    def __init__(self, bits: int, base: WordArray | None = None, *, alive: BitArray | None = None) -> None:
        self.bits = check_bits(bits)
        self.width = -(-self.bits // 64)
        empty = np.empty((0, self.width), dtype=np.uint64)
        self._base: WordArray = empty if base is None else _checked_base(base, self.width)
        self._tail = _Growing(empty)
        self._alive = None if alive is None else _Growing(_checked_alive(alive, len(self._base)))
        self._count = len(self._base) if alive is None else int(np.count_nonzero(alive))

    def __len__(self) -> int:
        return self._count

    @property
    def row_count(self) -> int:
        """How many rows were ever given."""
        return len(self._base) + len(self._tail.filled)

    @property
    def segments(self) -> tuple[WordArray, WordArray]:
        """Base and tail, (rows, width) each; the first row of the tail follows the last of the base."""
        return sealed(self._base), sealed(self._tail.filled)

    @property
    def alive(self) -> BitArray | None:
        """Which rows are there, bool (row_count,), or None while all are."""
        return None if self._alive is None else sealed(self._alive.filled)

    def append(self, words: WordArray) -> IntArray:
        """Add codes, uint64 (n, width), and return their rows."""
        first = self.row_count
        self._tail.append(words)
        if self._alive is not None:
            self._alive.append(np.ones(len(words), dtype=np.bool_))
        self._count += len(words)
        return np.arange(first, first + len(words), dtype=np.int64)

    def remove(self, rows: IntArray) -> None:
        """Mark rows as removed, all or, where one is not there, none."""
        rows = np.unique(rows)
        known = (rows >= 0) & (rows < self.row_count)
        if self._alive is not None:
            known[known] = self._alive.filled[rows[known]]
        if not known.all():
            raise no_such_row(rows[~known][0], len(self))
        if self._alive is None:
            self._alive = _Growing(np.ones(self.row_count, dtype=np.bool_))
        self._alive.filled[rows] = False
        self._count -= len(rows)

    def admitted(self, where: BitArray | None) -> int:
        """How many items are there and pass a mask."""
        if where is None:
            return len(self)
        return int(np.count_nonzero(where if self._alive is None else where & self._alive.filled))


def _checked_base(base: WordArray, width: int) -> WordArray:
    if base.dtype != np.uint64 or base.ndim != 2 or base.shape[1] != width or not base.flags.c_contiguous:
        raise CodesError(
            f"A base of {base.dtype} {base.shape} was given; it holds uint64 words of shape (n, {width}), C-contiguous."
        )
    return np.asarray(base)  # a memory map as a plain array of the same memory


def _checked_alive(alive: BitArray, rows: int) -> BitArray:
    if alive.dtype != np.bool_ or alive.shape != (rows,):
        raise CodesError(
            f"A mask of {alive.dtype} {alive.shape} was given for a base of {rows} rows; give one boolean a row."
        )
    return alive.copy()
