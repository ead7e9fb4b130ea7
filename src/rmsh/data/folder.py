"""Somebody's folder of pictures: described by metadata files, or by what stands beside and above each picture."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from rmsh.data import metadata
from rmsh.data.beside import is_picture, records_of_files
from rmsh.data.records import Origin, Record, check_records
from rmsh.data.skipped import Skipped
from rmsh.errors import DataError

__all__ = ["is_picture_folder", "read_folder"]

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
