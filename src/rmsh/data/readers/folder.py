"""Folders of images: items come from metadata files, or else from image files, .txt files and folder names.

A metadata file (metadata.csv, .jsonl or .parquet) has one row per item, as in Hugging Face's imagefolder. Its columns
are ``file_name`` (relative to its folder), ``text`` or ``caption``, ``labels`` (names separated by ";", or a list) and
``id`` (default: ``file_name``); columns and cells may be missing.

Without a metadata file every image is an item; its text is the .txt file with the same name, its label the folder.
"""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from rmsh.core.errors import DataError
from rmsh.data.pairs import listed
from rmsh.data.records import COLUMNS, KNOWN_COLUMNS, Origin, Record, Skipped, check_records, record_from_cells

IMAGE_SUFFIXES = frozenset(
    ".jpg .jpeg .jpe .jfif .png .apng .webp .gif .bmp .tif .tiff .ppm .pgm .jp2 .avif".split()  # noqa: SIM905
)
LARGEST_TEXT = 1 << 20  # bytes of a file with one text
CREDIT = "CREDIT.txt"  # attribution of the images; not an item
_LONGEST_CREDIT = 2_000  # characters
# Files that mark a library or the folder of an unfinished build; both may lie among the images.
_LIBRARY_FILES = frozenset(("items.sqlite", "build.claim"))

_Found: TypeAlias = tuple[list[Record], list[Skipped], list[str]]
_Row: TypeAlias = "tuple[int, Mapping[str, Any] | str]"  # number, and cells by column or the reason why it is unusable


def read_credit(folder: Path) -> str:
    """The attribution in a folder's CREDIT.txt, or ""."""
    file = folder / CREDIT
    return file.read_text(encoding="utf-8", errors="replace")[:_LONGEST_CREDIT].strip() if file.is_file() else ""


def is_image_folder(folder: Path) -> bool:
    """Whether there is a metadata file or an image in a folder or below it."""
    return any(_is_metadata(name) or _is_image(name) for name in _files(folder))


def read_folder(path: Path) -> tuple[Origin, list[str]]:
    """The checked records of a folder or of a single metadata file, and notes on what was guessed.

    Links to files are followed if they stay inside the folder; links to folders are not followed.
    """
    folder = path if path.is_dir() else path.parent
    files = sorted(_files(folder)) if path.is_dir() else []
    tables = [name for name in files if _is_metadata(name)] if path.is_dir() else [path.name]
    records, skipped, notes = _read_tables(folder, tables, files) if tables else _read_files(folder, files)
    kept, more = check_records(records, folder)
    return Origin(folder, tuple(kept), (*skipped, *more)), notes


def _files(folder: Path) -> Iterator[str]:
    """Relative paths of all files below a folder, except hidden ones and those of libraries."""
    for parent, folders, names in os.walk(folder):
        if not _LIBRARY_FILES.isdisjoint(names):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inside = Path(parent).relative_to(folder)
        yield from ((inside / name).as_posix() for name in names if not name.startswith("."))


def _is_image(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in IMAGE_SUFFIXES


def _is_text(name: str) -> bool:
    return name.lower().endswith(".txt") and name != CREDIT


def _is_metadata(name: str) -> bool:
    path = PurePosixPath(name.lower())
    return path.stem == "metadata" and path.suffix in METADATA_SUFFIXES


def _read_files(folder: Path, files: Sequence[str]) -> _Found:
    """A record for each image, and for each .txt without an image."""
    images = [name for name in files if _is_image(name)]
    stems = set(map(_stem, images))
    text_of = {_stem(name): name for name in files if _is_text(name)}
    records = _with_folder_labels([Record(name, None, name, picture=name) for name in images])
    records += [Record(text, None, text) for stem, text in text_of.items() if stem not in stems]
    skipped: list[Skipped] = []
    for i, record in enumerate(records):
        if (file := text_of.get(_stem(record.id))) is not None:
            text, problem = _read_text(folder / file)
            records[i] = replace(record, text=text)
            skipped += [Skipped(file, None, record.id, "text", problem)] if problem else []
    return records, skipped, list(_file_notes(files, records))


def _stem(name: str) -> str:
    return str(PurePosixPath(name).with_suffix(""))


def _read_text(path: Path) -> tuple[str | None, str | None]:
    """The text of a file, or the reason why there is none."""
    try:
        if path.stat().st_size > LARGEST_TEXT:
            return None, f"it is larger than {LARGEST_TEXT >> 20} MB"
        return path.read_text(encoding="utf-8-sig"), None
    except (OSError, UnicodeDecodeError) as error:
        return None, f"it is not a text in UTF-8 ({error})"


def _with_folder_labels(records: list[Record]) -> list[Record]:
    """Label images by their folder if every image is in a folder, and there are at least two."""
    parents = [PurePosixPath(record.id).parent.name for record in records]
    if not all(parents) or len(set(parents)) < 2:
        return records
    return [replace(record, labels=(parent,)) for record, parent in zip(records, parents, strict=True)]


def _file_notes(files: Sequence[str], records: Sequence[Record]) -> Iterator[str]:
    images = sum(record.picture is not None for record in records)
    yield f"{images:,} images; {sum(record.text is not None for record in records):,} of the items have a text"
    classes = {label for record in records for label in record.labels}
    if classes:
        yield f"folder names are used as labels, {len(classes):,} classes"
    others = (PurePosixPath(name).suffix.lower() for name in files if not _is_image(name) and not _is_text(name))
    counts = Counter(suffix or "no suffix" for suffix in others)
    if counts:
        shown = ", ".join(f"{count:,} {suffix}" for suffix, count in counts.most_common(5))
        yield f"files that are neither images nor texts were ignored: {shown}"


def _read_tables(folder: Path, tables: Sequence[str], files: Sequence[str]) -> _Found:
    for parent, count in Counter(PurePosixPath(name).parent for name in tables).items():
        if count > 1:
            several = " and ".join(name for name in tables if PurePosixPath(name).parent == parent)
            raise DataError(f"{folder} has {several}; only one metadata file per folder is allowed, remove the others.")
    records: list[Record] = []
    skipped: list[Skipped] = []
    unused: dict[str, None] = {}
    for name in tables:
        inside = PurePosixPath(name).parent.as_posix().removeprefix(".")
        rows, problems, columns = read_metadata(folder / name, inside=inside)
        records, skipped, unused = records + rows, skipped + problems, unused | dict.fromkeys(columns)
    named = {record.picture for record in records}
    reason = f"no row of {listed(tables)} names it"
    skipped += [Skipped(name, None, name, "item", reason) for name in files if _is_image(name) and name not in named]
    notes = [f"{listed(tables)}: {len(records):,} rows"]
    return records, skipped, notes + ([f"columns that were not used: {listed(unused)}"] if unused else [])


def read_metadata(path: Path, *, inside: str = "") -> _Found:
    """Unchecked records of a metadata file, rows that are unusable, and the columns that were not used.

    ``inside`` is the folder of the file relative to that of the data, or "" if they are the same.
    """
    name = f"{inside}/{path.name}" if inside else path.name
    records: list[Record] = []
    skipped: list[Skipped] = []
    columns: dict[str, None] = {}
    for row, cells in _ROW_READERS[path.suffix.lower()](path):
        try:
            if isinstance(cells, str):
                raise ValueError(cells)
            columns |= dict.fromkeys(cells)
            records.append(record_from_cells(cells, file=name, row=row, inside=inside))
        except ValueError as error:
            skipped.append(Skipped(name, row, "", "item", str(error)))
    if columns and not {*columns} & {*COLUMNS["picture"], *COLUMNS["text"]}:
        raise DataError(f"{path} has the columns {', '.join(map(repr, columns))}; it needs file_name, text or caption.")
    return records, skipped, [column for column in columns if column not in KNOWN_COLUMNS]


def _csv_rows(path: Path) -> Iterator[_Row]:
    try:
        # utf-8-sig: spreadsheets start the file with a byte-order mark
        with path.open(encoding="utf-8-sig", newline="") as file:
            delimiter = _delimiter(file.readline())
            file.seek(0)
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            header = [name.strip().lower() for name in next(reader, [])]
            for row, cells in enumerate(reader, start=2):
                if len(cells) > len(header):
                    yield row, f"it has {len(cells)} cells, the header {len(header)}"
                elif cells:
                    yield row, dict(zip(header, cells, strict=False))
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not in UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8.") from error
    except csv.Error as error:
        raise DataError(f"{path} cannot be read as CSV ({error}); check its quotes, or write it again.") from error


def _delimiter(header: str) -> str:
    """The delimiter that finds most known columns in a header."""
    columns = {mark: {name.strip(' "\r\n').lower() for name in header.split(mark)} for mark in ",;\t"}
    return max(columns, key=lambda mark: len(columns[mark] & KNOWN_COLUMNS))


def _jsonl_rows(path: Path) -> Iterator[_Row]:
    with path.open("rb") as file:
        for row, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                cells = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield row, f"it is not JSON ({error})"
                continue
            yield row, cells if isinstance(cells, dict) else "it is JSON, but not an object with columns by name"


def _parquet_rows(path: Path) -> Iterator[_Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = 0
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            others = dict.fromkeys(name for name in names if name not in KNOWN_COLUMNS)
            for batch in file.iter_batches(columns=[name for name in names if name in KNOWN_COLUMNS]):
                for cells in batch.to_pylist():
                    row += 1
                    yield row, cells | others
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as parquet ({error}); check it, or write it again.") from error


_ROW_READERS = {".csv": _csv_rows, ".jsonl": _jsonl_rows, ".parquet": _parquet_rows}
METADATA_SUFFIXES = tuple(_ROW_READERS)
