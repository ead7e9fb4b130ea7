"""Records: the items of a user's folder or archive, the checks that keep the usable ones, and the pairs they form.

The path of an image is relative to the folder, with "/" as separator. A problem removes the image or the text of a
record; a record without either is skipped. Everything that is skipped is returned with its row, to be counted, written
to a file, or refused.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from rmsh.core.errors import DataError
from rmsh.core.files import printable, write_text
from rmsh.data.labels import multi_hot
from rmsh.data.pairs import Pairs, listed

Part: TypeAlias = Literal["item", "picture", "text"]

LONGEST_TEXT = 2_000  # characters; encoders read fewer, and an array of strings is as wide as its longest
LONGEST_NAME = 500  # characters of an ID or a label
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")  # control characters and lone surrogates
_NOT_IN_TEXTS = re.compile(r"[\x00\ud800-\udfff]")

# field of a record -> the columns that may contain it; the first one present is used
COLUMNS = {"picture": ("file_name",), "text": ("text", "caption"), "labels": ("labels", "label"), "id": ("id",)}
METADATA_SUFFIXES = (".csv", ".jsonl", ".parquet")
KNOWN_COLUMNS = {column for names in COLUMNS.values() for column in names}


@dataclass(frozen=True)
class Skipped:
    """Something that was left out: a whole item, or only its image or its text; its strings are printable."""

    file: str  # the file that describes the item, such as metadata.csv; otherwise the item's own file
    row: int | None  # its row in that file, counted from 1 (the header of a .csv is row 1)
    id: str  # the ID of the item, or ""
    left_out: Part
    reason: str

    def __post_init__(self) -> None:
        for name in ("file", "id", "reason"):  # the name of a file may have any bytes
            object.__setattr__(self, name, printable(getattr(self, name)))

    def __str__(self) -> str:
        row = "" if self.row is None else f", row {self.row}"
        return f"{self.file}{row} ({self.left_out}: {self.reason})"


def count_skipped(skipped: Iterable[Skipped]) -> list[str]:
    """A sentence with the count and an example for each kind of thing that was left out."""
    groups: dict[Part, list[Skipped]] = {}
    for one in skipped:
        groups.setdefault(one.left_out, []).append(one)
    return [
        f"{len(group):,} {part}{' was' if len(group) == 1 else 's were'} left out, such as {group[0]}"
        for part, group in groups.items()
    ]


def write_skipped(path: Path, skipped: Sequence[Skipped]) -> None:
    """Write the list as CSV with the columns file, row, id, left_out and reason."""
    write_csv(path, [[field.name for field in fields(Skipped)], *map(astuple, skipped)])


def write_csv(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """Write rows, of which the first has the names of the columns."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_text(path, text.getvalue())


def refuse_skipped(skipped: Sequence[Skipped], source: str) -> None:
    """Raise a DataError if anything would be left out."""
    if skipped:
        found = f"{len(skipped)} items or parts of items would be left out"
        raise DataError(f"{source}: {found}: {listed(skipped)}; correct them, or turn strict mode off.")


@dataclass(frozen=True)
class Record:
    """One item of a user's data; ``file`` and ``row`` are those of :class:`Skipped`."""

    file: str
    row: int | None
    id: str
    picture: str | None = None
    text: str | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Origin:
    """Where the pairs of a user's data come from."""

    folder: Path  # the paths of images are relative to it and never lead out of it
    records: tuple[Record, ...]  # in the order of the pairs
    skipped: tuple[Skipped, ...]
    unpacked: bool = False  # whether the folder is a cache with images unpacked from an archive
    folder_labels: bool = False  # whether the labels are names of folders
    others: Mapping[str, Path] = field(default_factory=dict)  # further folders and files, see :func:`locate`

    def path(self, picture: str) -> Path:
        """The path of an image."""
        return locate(picture, self.folder, self.others)[1]


def folder_name(picture: str, folders: Container[str]) -> str:
    """The name of the folder that an image is in: one of the given ones, or ""."""
    name = picture.partition("/")[0]
    return name if name in folders else ""


def locate(picture: str, folder: Path, others: Mapping[str, Path]) -> tuple[Path, Path]:
    """The folder that an image must not leave, and its path.

    The path of an image in a further folder begins with the name of that folder. A further image is a name alone, and a
    further metadata file names the images of its folder.

    Example:
        >>> others = {"trip": Path("/disk/trip"), "my.csv": Path("/data/my.csv")}
        >>> [locate(name, Path("/home"), others)[1].as_posix() for name in ("a.jpg", "trip/a.jpg", "my.csv/a.jpg")]
        ['/home/a.jpg', '/disk/trip/a.jpg', '/data/a.jpg']
    """
    name, _, rest = picture.partition("/")
    root = others.get(name)
    if root is None:
        return folder, folder / picture
    if not rest or root.suffix.lower() in METADATA_SUFFIXES:
        return root.parent, root.parent / (rest or root.name)
    return root, root / rest


def record_from_cells(
    cells: Mapping[str, Any], *, file: str, row: int | None, inside: str = "", key: str = ""
) -> Record:
    """The record of a row of cells by column; ``key`` is the ID of a row that has none.

    ``file_name`` is relative to the folder ``inside``. A value of the wrong type raises a ValueError with the reason.
    """
    found = {
        field: next((cells[name] for name in columns if cells.get(name) is not None), None)
        for field, columns in COLUMNS.items()
    }
    labels = found.pop("labels")
    if not isinstance(labels, list):
        labels = (_string(labels, "labels") or "").split(";") if labels is not None else []
    image, text, name = (_string(value, COLUMNS[field][0]) for field, value in found.items())
    if image:
        # Windows writes backslashes; check_records refuses paths that lead out of the folder.
        image = "/".join(filter(None, [inside, image.replace("\\", "/").removeprefix("./")]))
    label_names = tuple((_string(label, "labels") or "").strip() for label in labels)
    return Record(file, row, name or key or image or f"{file}:{row}", image or None, text, label_names)


def _string(value: Any, column: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"its {column} is {str(value)[:40]!r}; a string is expected")


def check_records(records: Iterable[Record], folder: Path) -> tuple[list[Record], list[Skipped]]:
    """The usable records, and what was left out; the first of several records with one ID is kept."""
    kept: dict[str, Record] = {}
    skipped: list[Skipped] = []
    root = folder.resolve()
    for record in records:
        labels = tuple(dict.fromkeys(name for label in record.labels if (name := label.strip())))
        usable, problems = _usable_parts(replace(record, id=record.id.strip(), labels=labels), root)
        problem = _name_problem(usable, kept)
        if problem is None and usable.picture is None and usable.text is None:
            problem = "; ".join(problems.values()) or "it has neither an image nor a text"
        if problem is None:
            kept[usable.id] = usable
        else:
            problems = {"item": problem}
        skipped += [Skipped(record.file, record.row, usable.id, part, reason) for part, reason in problems.items()]
    return list(kept.values()), skipped


def _usable_parts(record: Record, root: Path) -> tuple[Record, dict[Part, str]]:
    """The record without an unusable image or text, and what is wrong with them."""
    problems: dict[Part, str] = {}
    if record.picture is not None and (problem := image_problem(root, record.picture)):
        problems["picture"], record = problem, replace(record, picture=None)
    if record.text is not None:
        text = record.text.strip()
        valid = bool(text) and _NOT_IN_TEXTS.search(text) is None
        if not valid:
            problems["text"] = "the text is not valid Unicode" if text else "the text is empty"
        elif len(text) > LONGEST_TEXT:
            problems["text"] = f"the text has {len(text):,} characters; only {LONGEST_TEXT:,} are used"
        record = replace(record, text=text[:LONGEST_TEXT] if valid else None)
    return record, problems


def _name_problem(record: Record, first_of: Mapping[str, Record]) -> str | None:
    """What is wrong with the ID or a label, or None."""
    if not record.id or _NOT_IN_NAMES.search(record.id):
        return "its id is blank, not valid Unicode, or has a control character"
    if len(record.id) > LONGEST_NAME:
        return f"its id is longer than {LONGEST_NAME} characters"
    if (first := first_of.get(record.id)) is not None:
        row = "" if first.row is None else f", row {first.row}"
        return f"its id {record.id!r} is already used by {first.file}{row}; a column 'id' with unique ids keeps both"
    for label in record.labels:
        if len(label) > LONGEST_NAME or _NOT_IN_NAMES.search(label):
            return f"its label {printable(label)[:40]!r} is too long, not valid Unicode, or has a control character"
    return None


def leads_out(name: str) -> bool:
    """Whether a relative path might leave its folder: absolute, with a drive, or with ".."."""
    path = PurePosixPath(name)
    return path.is_absolute() or bool(PureWindowsPath(name).drive) or ".." in path.parts


def image_problem(root: Path, name: str) -> str | None:
    """Why a path is not a file inside the resolved folder ``root``, or None if it is one."""
    if _NOT_IN_NAMES.search(name):
        return f"{printable(name)!r} is not a valid file name"
    if leads_out(name):
        return f"{name!r} leads out of the folder"
    try:
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            return f"{name!r} leads out of the folder"
        if path.is_file():
            return None
        return f"{name!r} is not a regular file" if path.exists() else f"{name!r} does not exist"
    except (OSError, RuntimeError) as error:  # a loop of links, a name too long, no permission
        return f"{name!r} cannot be accessed ({error})"


def to_pairs(
    records: Sequence[Record], *, folder: Path, source: str, others: Mapping[str, Path] = MappingProxyType({})
) -> Pairs:
    """Pairs with raw columns: images as paths, see :func:`locate`, and texts as strings."""
    if not records:
        raise DataError(f"{source} contains no items; at least one image or text is needed.")
    has_image = np.array([record.picture is not None for record in records])
    has_text = np.array([record.text is not None for record in records])
    names = tuple(sorted({label for record in records for label in record.labels}))
    paths = [str(locate(record.picture or "", folder, others)[1]) for record in records]
    return Pairs(
        ids=np.array([record.id for record in records]),
        images=np.array(paths) if has_image.any() else None,
        texts=np.array([record.text or "" for record in records]) if has_text.any() else None,
        labels=multi_hot([record.labels for record in records], names) if names else None,
        class_names=names,
        has_image=has_image,
        has_text=has_text,
        source=source,
    )
