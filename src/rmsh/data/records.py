"""Records: items as a reader found them in somebody's folder, the checks that keep the usable ones, and their pairs.

A picture is a path relative to the folder, with "/" between folders. What is wrong with a record costs it its picture
or its text; a record that keeps neither is left out. Everything left out is returned with its row.

What was left out of somebody's data and why, row by row: counted, listed in a file, or refused.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from rmsh.core.errors import DataError
from rmsh.core.files import write_text
from rmsh.data.pairs import Pairs, listed

if TYPE_CHECKING:
    from rmsh.core.types import LabelArray

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


LONGEST_TEXT = 2_000  # characters; encoders read fewer, and an array of strings is as wide as its longest
LONGEST_NAME = 500  # characters of an id or a label


@dataclass(frozen=True)
class Record:
    """One item of somebody's data; the fields of :class:`rmsh.data.records.Skipped` say where it is from."""

    file: str
    row: int | None
    id: str
    picture: str | None = None
    text: str | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Origin:
    """Where pairs of somebody's own data are from.

    Args:
        folder: what the paths of pictures start from; they do not lead out of it.
        records: one an item, in the order of the pairs.
        skipped: what was left out.
        unpacked: whether the folder is ours, with pictures unpacked from an archive.
    """

    folder: Path
    records: tuple[Record, ...]
    skipped: tuple[Skipped, ...]
    unpacked: bool = False


def check_records(records: Iterable[Record], folder: Path) -> tuple[list[Record], list[Skipped]]:
    """The usable records, and what was left out of the others; of records with one id the first is kept."""
    kept: list[Record] = []
    skipped: list[Skipped] = []
    first_of: dict[str, Record] = {}
    root = folder.resolve()
    for record in records:
        usable, problems = _usable(record, root, first_of)
        skipped += problems
        if usable is not None:
            kept.append(usable)
            first_of[usable.id] = usable
    return kept, skipped


def _usable(record: Record, root: Path, first_of: dict[str, Record]) -> tuple[Record | None, list[Skipped]]:
    """What is left of a record, or None, and what was left out."""
    labels = tuple(dict.fromkeys(name for label in record.labels if (name := label.strip())))
    found = replace(record, id=record.id.strip(), labels=labels)
    problem = _id_problem(found, first_of) or _labels_problem(found)
    if problem:
        return None, [_skip(found, "item", problem)]
    reasons: dict[Part, str] = {}
    if found.picture is not None and (problem := picture_problem(root, found.picture)):
        reasons["picture"], found = problem, replace(found, picture=None)
    if found.text is not None:
        text, problem = _usable_text(found.text)
        found = replace(found, text=text)
        if problem:
            reasons["text"] = problem
    if found.picture is None and found.text is None:
        reason = "; ".join(reasons.values()) or "it has neither a picture nor a text"
        return None, [_skip(found, "item", reason)]
    return found, [_skip(found, part, reason) for part, reason in reasons.items()]


def _skip(record: Record, part: Part, reason: str) -> Skipped:
    return Skipped(record.file, record.row, _printable(record.id), part, reason)


def _id_problem(record: Record, first_of: dict[str, Record]) -> str | None:
    if not record.id or not _is_name(record.id):
        return "its id is blank, not valid Unicode, or has a control character"
    if len(record.id) > LONGEST_NAME:
        return f"its id is longer than {LONGEST_NAME} characters"
    if record.id in first_of:
        first = first_of[record.id]
        place = f"of {first.file}" + ("" if first.row is None else f", row {first.row}")
        return f"its id {record.id!r} is that {place} already; a column 'id' with different ids keeps both"
    return None


def _labels_problem(record: Record) -> str | None:
    for label in record.labels:
        if len(label) > LONGEST_NAME or not _is_name(label):
            return f"its label {_printable(label)[:40]!r} is too long, not valid Unicode, or has a control character"
    return None


def _usable_text(text: str) -> tuple[str | None, str | None]:
    """What is left of a text, and what is wrong with it."""
    stripped = text.strip()
    if not stripped:
        return None, "the text is empty"
    if not _is_unicode(stripped) or "\0" in stripped:
        return None, "the text is not valid Unicode"
    if len(stripped) > LONGEST_TEXT:
        return stripped[:LONGEST_TEXT], f"the text has {len(stripped):,} characters; only {LONGEST_TEXT:,} are used"
    return stripped, None


def picture_problem(root: Path, picture: str) -> str | None:
    """Why a path below a folder (which is resolved already) is no picture of it, or None where it may be one.

    Example:
        >>> picture_problem(Path("photos").resolve(), "../secret.png")
        "'../secret.png' leads out of the folder"
    """
    if not _is_name(picture):
        return f"{_printable(picture)!r} is no name of a file"
    if PurePosixPath(picture).is_absolute() or PureWindowsPath(picture).drive or ".." in PurePosixPath(picture).parts:
        return f"{picture!r} leads out of the folder"
    try:
        path = (root / picture).resolve()
        if not path.is_relative_to(root):
            return f"{picture!r} leads out of the folder"
        return None if path.is_file() else f"{picture!r} does not exist"
    except (OSError, RuntimeError) as error:  # a loop of links, a name too long, no permission
        return f"{picture!r} cannot be reached ({error})"


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _is_name(text: str) -> bool:
    return _is_unicode(text) and not any(character < " " or character == "\x7f" for character in text)


def _printable(text: str) -> str:
    """A text that any file can hold."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\0")


def to_pairs(records: Sequence[Record], *, folder: Path, source: str) -> Pairs:
    """Pairs with raw columns: pictures as paths below ``folder``, texts as strings.

    Raises:
        DataError: there is no record.
    """
    if not records:
        raise DataError(f"{source} holds no items; give at least one picture or text.")
    has_image = np.array([record.picture is not None for record in records])
    has_text = np.array([record.text is not None for record in records])
    names = tuple(sorted({label for record in records for label in record.labels}))
    return Pairs(
        ids=np.array([record.id for record in records]),
        images=np.array([str(folder / (record.picture or "")) for record in records]) if has_image.any() else None,
        texts=np.array([record.text or "" for record in records]) if has_text.any() else None,
        labels=multi_hot([record.labels for record in records], names) if names else None,
        class_names=names,
        has_image=has_image,
        has_text=has_text,
        source=source,
    )


def multi_hot(labels: Sequence[Iterable[str]], names: Sequence[str]) -> LabelArray:
    """Names of labels an item as 0/1 (n, classes).

    Example:
        >>> multi_hot([["cat"], ["cat", "dog"]], ["cat", "dog"])
        array([[1, 0],
               [1, 1]], dtype=uint8)
    """
    column = {name: i for i, name in enumerate(names)}
    array = np.zeros((len(labels), len(names)), dtype=np.uint8)
    for row, given in enumerate(labels):
        array[row, [column[name] for name in given]] = 1
    return array
