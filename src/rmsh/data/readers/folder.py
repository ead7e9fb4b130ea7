"""Somebody's folder of pictures: described by metadata files, or by what stands beside and above each picture.

Pictures without a metadata file: the text is a .txt of the same name beside it, the label the folder it lies in.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from rmsh.core.errors import DataError
from rmsh.data.readers import metadata
from rmsh.data.records import Origin, Record, Skipped, check_records

PICTURE_SUFFIXES = frozenset(
    ".jpg .jpeg .jpe .jfif .png .apng .webp .gif .bmp .tif .tiff .ppm .pgm .jp2 .avif".split()  # noqa: SIM905
)
LARGEST_TEXT = 1 << 20  # bytes of a file with one text
CREDIT = "CREDIT.txt"  # whom to thank for the pictures; no item
_LONGEST_CREDIT = 2_000  # characters


def is_picture(name: str) -> bool:
    """Whether a file has the suffix of a picture.

    Example:
        >>> is_picture("photos/1.JPG"), is_picture("metadata.csv")
        (True, False)
    """
    return PurePosixPath(name).suffix.lower() in PICTURE_SUFFIXES


def read_credit(folder: Path) -> str:
    """Whom to thank for the pictures of a folder, from its CREDIT.txt; "" where there is none."""
    file = folder / CREDIT
    return file.read_text(encoding="utf-8", errors="replace")[:_LONGEST_CREDIT].strip() if file.is_file() else ""


def records_of_files(folder: Path, files: Sequence[str]) -> tuple[list[Record], list[Skipped], list[str]]:
    """A record for each picture, and for each .txt that stands alone.

    Args:
        folder: what the paths start from.
        files: paths of all files.

    Returns:
        Records, not yet checked; texts that cannot be read; and notes.
    """
    pictures = [name for name in files if is_picture(name)]
    text_of = {_stem(name): name for name in files if _is_text(name)}
    alone = [text for stem, text in text_of.items() if stem not in set(map(_stem, pictures))]
    records = [Record(name, None, name, picture=name) for name in pictures]
    records = _with_folder_labels(records) + [Record(name, None, name) for name in alone]
    skipped: list[Skipped] = []
    for i, record in enumerate(records):
        beside = text_of.get(_stem(record.id))
        if beside is not None:
            text, problem = _read_text(folder / beside)
            records[i] = replace(record, text=text)
            skipped += [Skipped(beside, None, record.id, "text", problem)] if problem else []
    return records, skipped, list(_notes(files, records))


def _stem(name: str) -> str:
    return str(PurePosixPath(name).with_suffix(""))


def _is_text(name: str) -> bool:
    return name.lower().endswith(".txt") and name != CREDIT


def _read_text(path: Path) -> tuple[str | None, str | None]:
    """The text of a file, or why there is none."""
    try:
        if path.stat().st_size > LARGEST_TEXT:
            return None, f"it is larger than {LARGEST_TEXT >> 20} MB"
        return path.read_text(encoding="utf-8-sig"), None
    except (OSError, UnicodeDecodeError) as error:
        return None, f"it is not a text in UTF-8 ({error})"


def _with_folder_labels(records: list[Record]) -> list[Record]:
    """Label pictures by the folder they lie in, where all lie in folders, and in more than one."""
    parents = [PurePosixPath(record.id).parent.name for record in records]
    if not all(parents) or len(set(parents)) < 2:
        return records
    return [replace(record, labels=(parent,)) for record, parent in zip(records, parents, strict=True)]


def _notes(files: Sequence[str], records: Sequence[Record]) -> Iterator[str]:
    pictures = sum(record.picture is not None for record in records)
    yield f"{pictures:,} pictures, {sum(record.text is not None for record in records):,} of the items have a text"
    classes = {label for record in records for label in record.labels}
    if classes:
        yield f"the folders' names are taken as labels, {len(classes):,} classes"
    others = Counter(
        PurePosixPath(name).suffix.lower() or "no suffix"
        for name in files
        if not is_picture(name) and not _is_text(name)
    )
    if others:
        counted = ", ".join(f"{count:,} {suffix}" for suffix, count in others.most_common(5))
        yield f"files that are neither pictures nor texts were passed over: {counted}"


# Files that only a library has, or the folder that one was built in: both may stand among the pictures.
_OURS = frozenset(("items.sqlite", "build.claim"))
_METADATA = frozenset(f"metadata{suffix}" for suffix in metadata.SUFFIXES)


def is_picture_folder(folder: Path) -> bool:
    """Whether a folder has a metadata file or a picture, in itself or below."""
    return any(_is_metadata(name) or is_picture(name) for name in _files(folder))


def read_folder(folder: Path) -> tuple[Origin, list[str]]:
    """Read the items of a folder; rows of metadata files say which, and without such a file every picture is one.

    Args:
        folder: links to files are followed as long as they do not lead out of it; links to folders are not.

    Returns:
        The records with what was left out of them, and notes on what was guessed.

    Raises:
        DataError: a metadata file cannot be read, or there are two in one folder.
    """
    files = sorted(_files(folder))
    tables = [name for name in files if _is_metadata(name)]
    if tables:
        records, skipped, notes = _records_of_tables(folder, tables)
        skipped += _unnamed(files, records, tables)
    else:
        records, skipped, notes = records_of_files(folder, files)
    kept, more = check_records(records, folder)
    return Origin(folder, tuple(kept), (*skipped, *more)), notes


def _files(folder: Path) -> Iterator[str]:
    """Paths of all files below a folder, relative to it; hidden ones and those of libraries are left out."""
    for parent, folders, names in os.walk(folder):
        if not _OURS.isdisjoint(names):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inside = Path(parent).relative_to(folder)
        yield from ((inside / name).as_posix() for name in names if not name.startswith("."))


def _is_metadata(name: str) -> bool:
    return PurePosixPath(name).name.lower() in _METADATA


def _records_of_tables(folder: Path, tables: Sequence[str]) -> tuple[list[Record], list[Skipped], list[str]]:
    _refuse_two_in_one_folder(folder, tables)
    records: list[Record] = []
    skipped: list[Skipped] = []
    unused: dict[str, None] = {}
    for name in tables:
        inside = PurePosixPath(name).parent.as_posix().removeprefix(".")
        rows, none, columns = metadata.read_metadata(folder / name, inside=inside)
        records, skipped, unused = records + rows, skipped + none, unused | dict.fromkeys(columns)
    notes = [f"{_some(tables)}: {len(records):,} rows"]
    return records, skipped, notes + ([f"columns that were not used: {_some([*unused])}"] if unused else [])


def _refuse_two_in_one_folder(folder: Path, tables: Sequence[str]) -> None:
    for parent, count in Counter(PurePosixPath(name).parent for name in tables).items():
        if count > 1:
            both = " and ".join(name for name in tables if PurePosixPath(name).parent == parent)
            raise DataError(f"{folder} has {both}, and only one of them can say what the pictures are; remove one.")


def _unnamed(files: Sequence[str], records: Sequence[Record], tables: Sequence[str]) -> list[Skipped]:
    """Pictures that are there, but in no row."""
    named = {record.picture for record in records}
    reason = f"no row of {_some(tables)} names it"
    return [Skipped(name, None, name, "item", reason) for name in files if is_picture(name) and name not in named]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (" and others" if len(names) > 5 else "")
