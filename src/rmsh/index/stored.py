"""What the indexes of this machine share: codes by row, checked questions, saving; they differ in how they look."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from rmsh.core.errors import FormatError
from rmsh.index.base import Hits, Neighbours, check_k, check_length, check_mask, check_radius, check_rows
from rmsh.index.folder import read_folder, write_folder
from rmsh.index.store import CodeStore

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from rmsh.codes import Codes
    from rmsh.core.types import BitArray, IntArray, WordArray

__all__ = ["StoredIndex"]


class StoredIndex(ABC):
    """An index over a :class:`CodeStore`; see ``base.py`` for what its methods promise.

    Args:
        bits: the length of a code, 1 to 512.
    """

    kind: ClassVar[str]

    def __init__(self, bits: int) -> None:
        self._store = CodeStore(bits)

    @classmethod
    def over(cls, words: WordArray, bits: int, *, alive: BitArray | None = None, **options: Any) -> Self:
        """An index over codes that lie somewhere already, such as in a memory-mapped file; they are not copied.

        Args:
            words: uint64 (n, ceil(bits / 64)); their rows are 0 to n - 1.
            bits: the length of a code.
            alive: bool (n,), False for rows that were removed.
            options: what the constructor takes.
        """
        index = cls(bits, **options)
        index._store = CodeStore(bits, words, alive=alive)
        return index

    @property
    def bits(self) -> int:
        """The length of a code."""
        return self._store.bits

    @property
    def row_count(self) -> int:
        """How many rows were ever given; masks have this length."""
        return self._store.row_count

    def __len__(self) -> int:
        return len(self._store)

    def add(self, codes: Codes) -> IntArray:
        """Add codes, and return the rows they got, int64 (n,)."""
        check_length(codes, self.bits)
        return self._store.append(codes.words())

    def remove(self, rows: ArrayLike) -> None:
        """Remove the items of these rows."""
        self._store.remove(check_rows(rows))

    def search(self, codes: Codes, k: int, *, where: BitArray | None = None) -> Hits:
        """The k nearest items of each query, or as many as there are."""
        check_length(codes, self.bits)
        mask = None if where is None else check_mask(where, self.row_count)
        found = min(check_k(k), self._store.admitted(mask))
        if not found or not len(codes):
            return Hits(np.empty((len(codes), found), np.int64), np.empty((len(codes), found), np.int32))
        return self._nearest(codes.words(), found, mask)

    def within(self, codes: Codes, radius: int, *, where: BitArray | None = None) -> Neighbours:
        """All items at a distance of at most ``radius`` of each query."""
        check_length(codes, self.bits)
        mask = None if where is None else check_mask(where, self.row_count)
        reach = min(check_radius(radius), self.bits)
        if not self._store.admitted(mask) or not len(codes):
            return Neighbours(np.zeros(len(codes) + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))
        return self._within(codes.words(), reach, mask)

    def save(self, folder: Path) -> None:
        """Write the index into a folder, in place of one that is there."""
        write_folder(folder, self._store, kind=self.kind, arrays=self._derived())

    @classmethod
    def open(cls, folder: Path, **options: Any) -> Self:
        """Read what an index of this machine saved, of whatever kind; the codes stay memory-mapped."""
        store, arrays = read_folder(folder)
        index = cls(store.bits, **options)
        index._store = store
        try:
            index._restore(arrays)
        except FormatError as error:
            raise FormatError(f"The index in {folder} is damaged ({error}); build it anew.") from error
        return index

    @abstractmethod
    def _nearest(self, words: WordArray, k: int, where: BitArray | None) -> Hits:
        """The k nearest of at least one query; at least k items pass the mask."""

    @abstractmethod
    def _within(self, words: WordArray, radius: int, where: BitArray | None) -> Neighbours:
        """All within a radius of at most ``bits``, of at least one query."""

    def _derived(self) -> dict[str, NDArray[Any]]:
        """What this kind saves beside the codes."""
        return {}

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:  # noqa: B027  # most save nothing
        """Take up again what was saved beside the codes."""
