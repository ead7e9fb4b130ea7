"""Labelled codes: one side of an evaluation, the queries or the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmsh.data.columns import checked_labels

if TYPE_CHECKING:
    from rmsh.codes import Codes
    from rmsh.types import BitArray, IntArray, LabelArray

__all__ = ["LabelledCodes"]


@dataclass(frozen=True, eq=False)
class LabelledCodes:
    """Codes of n items and their labels, row by row.

    Args:
        codes: n codes.
        labels: 0/1 (n, classes).

    Raises:
        DataError: there is not one row of 0/1 labels a code.

    Example:
        >>> from rmsh.codes import Codes
        >>> len(LabelledCodes(Codes.from_values([[1, -1], [1, 1]]), [[1], [0]]))
        2
    """

    codes: Codes
    labels: LabelArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", checked_labels(self.labels, len(self.codes), "labelled codes"))

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: IntArray | BitArray) -> LabelledCodes:
        """The items of some rows."""
        return LabelledCodes(self.codes.take(rows), self.labels[rows])
