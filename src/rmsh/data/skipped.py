"""What was left out of somebody's data and why, row by row: counted, listed in a file, or refused."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Literal, TypeAlias

from rmsh.data.columns import listed
from rmsh.errors import DataError
from rmsh.files import write_text

__all__ = ["Part", "Skipped", "count_skipped", "refuse_skipped", "write_skipped"]

Part: TypeAlias = Literal["item", "picture", "text"]


@dataclass(frozen=True)
class Skipped:
    """One thing that was left out: a whole item, or only its picture or its text.

    Args:
        file: where the item is written down, such as metadata.csv; its own file where nothing is.
        row: the row there: of a .csv as a spreadsheet counts (the header is row 1), else counted from 1; or None.
        id: of the item, "" where it has none.
        left_out: what of it.
        reason: why, in words.
    """

    file: str
    row: int | None
    id: str
    left_out: Part
    reason: str

    def __str__(self) -> str:
        row = "" if self.row is None else f", row {self.row}"
        return f"{self.file}{row} ({self.left_out}: {self.reason})"


def count_skipped(skipped: Iterable[Skipped]) -> list[str]:
    """A sentence for each kind of thing that was left out, with its most frequent reason's example.

    Example:
        >>> count_skipped([Skipped("metadata.csv", 3, "a", "picture", "a.jpg does not exist")])
        ['1 picture was left out, such as metadata.csv, row 3 (picture: a.jpg does not exist)']
    """
    first: dict[Part, Skipped] = {}
    counts: Counter[Part] = Counter()
    for one in skipped:
        first.setdefault(one.left_out, one)
        counts[one.left_out] += 1
    return [
        f"{count:,} {part}{' was' if count == 1 else 's were'} left out, such as {first[part]}"
        for part, count in counts.items()
    ]


def write_skipped(path: Path, skipped: Sequence[Skipped]) -> None:
    """Write the list as CSV: file, row, id, left_out, reason; only the header where nothing was left out."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(Skipped))
    writer.writerows(astuple(one) for one in skipped)
    write_text(path, text.getvalue())


def refuse_skipped(skipped: Sequence[Skipped], source: str) -> None:
    """Stop over anything that would be left out.

    Raises:
        DataError: there is something; the message names the first ten.
    """
    if skipped:
        raise DataError(
            f"{source}: {len(skipped)} things would be left out, and strict was asked for: {listed(skipped)}; mend "
            "them, or leave strict out."
        )
