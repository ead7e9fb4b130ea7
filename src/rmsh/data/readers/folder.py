"""Folders of images: items come from metadata files, or else from image files, .txt files and folder names.

A metadata file (metadata.csv, .jsonl or .parquet) has one row per item, as in Hugging Face's imagefolder. Its columns
are ``file_name`` (relative to its folder), ``text`` or ``caption``, ``labels`` (names separated by ";", or a list) and
``id`` (default: ``file_name``); columns and cells may be missing.

Without a metadata file every image is an item; its text is the .txt file with the same name, its label the folder.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Any, TypeAlias

from rmsh.core.errors import DataError
from rmsh.core.files import open_regular
from rmsh.core.progress import OnProgress, counter, ignore
from rmsh.data.pairs import listed
from rmsh.data.records import (
    COLUMNS,
    KNOWN_COLUMNS,
    METADATA_SUFFIXES,
    Origin,
    Record,
    Skipped,
    check_records,
    folder_name,
    record_from_cells,
)

IMAGE_SUFFIXES = frozenset(
    ".jpg .jpeg .jpe .jfif .png .apng .webp .gif .bmp .tif .tiff .ppm .pgm .jp2 .avif .heic .heif".split()  # noqa: SIM905
)
LARGEST_TEXT = 1 << 20  # bytes of a file with one text
LARGEST_METADATA = 4 << 30  # bytes
MOST_ROWS = 10_000_000  # of a metadata file
_MOST_ROWS_PER_BYTE = 8  # of a Parquet file; rows that name different files or texts take more
_WESTERN = "cp1252"
_PARQUET_BATCH = 1 << 14  # rows in memory at once
CREDIT = "CREDIT.txt"  # attribution of the images; not an item
_LONGEST_CREDIT = 2_000  # characters
# Files that mark a library or the folder of an unfinished build; both may lie among the images.
LIBRARY_FILES = frozenset(("items.sqlite", "build.claim"))

_Found: TypeAlias = tuple[list[Record], list[Skipped], list[str]]
_Row: TypeAlias = "tuple[int, Mapping[str, Any] | str]"  # number, and cells by column or the reason why it is unusable


def read_credit(folder: Path) -> str:
    """The attribution in a folder's CREDIT.txt, or ""."""
    try:
        with open_regular(folder / CREDIT, inside=folder) as file:
            return file.read(4 * _LONGEST_CREDIT).decode("utf-8", "replace")[:_LONGEST_CREDIT].strip()
    except (OSError, DataError):
        return ""


def is_image_folder(folder: Path) -> bool:
    """Whether there is a metadata file or an image in a folder or below it."""
    return any(_is_metadata(name) or is_image(name) for name in _files(folder))


def texts_in(folder: Path) -> list[str]:
    """Relative paths of the metadata files and the texts in a folder and below it."""
    return [name for name in _files(folder) if _is_metadata(name) or name.lower().endswith(".txt")]


def read_folder(path: Path, *, on_progress: OnProgress = ignore) -> tuple[Origin, list[str]]:
    """The checked records of a folder, a metadata file or an image, and notes on what was guessed.

    Links to files are followed if they stay inside the folder; links to folders are not followed.
    """
    folder = path if path.is_dir() else path.parent
    if path.is_dir():
        files = sorted(_files(folder))
        tables = [name for name in files if _is_metadata(name)]
    elif is_image(path.name):
        caption = path.with_suffix(".txt")
        files, tables = [path.name] * path.is_file() + [caption.name] * caption.is_file(), []
    else:
        files, tables = [], [path.name]
    if tables:
        records, skipped, notes = _read_tables(folder, tables, files, root=folder if path.is_dir() else None)
    else:
        records, skipped, notes = _read_files(folder, files, on_progress)
    kept, more = check_records(records, folder)
    folder_labels = not tables and any(record.labels for record in kept)
    return Origin(folder, tuple(kept), (*skipped, *more), folder_labels=folder_labels), notes


def read_folders(parts: Mapping[str, Path], folder: Path, others: Mapping[str, Path]) -> tuple[Origin, list[str]]:
    """The records of the folders of a library, read as one; ``parts`` are those to read, by name.

    The paths of the images are those of :func:`rmsh.data.records.locate`, and IDs made from paths begin as they do.
    """
    records: dict[str, Record] = {}
    skipped: list[Skipped] = []
    notes: list[str] = []
    for name, path in parts.items():
        origin, found = read_folder(path)
        notes += found
        skipped += (replace(one, file=f"{name}/{one.file}") if name else one for one in origin.skipped)
        for record in origin.records:
            stored = _named(record, name, alone=path.is_file()) if name else record
            problem = None
            if not name and (taken := folder_name(record.picture or "", others)):
                problem = f"{taken!r} is the name of the further folder {others[taken]}; rename one of them"
            elif stored.id in records:
                problem = f"its id {stored.id!r} is already used by {records[stored.id].file}"
            if problem is None:
                records[stored.id] = stored
            else:
                skipped.append(Skipped(stored.file, stored.row, stored.id, "item", problem))
    return Origin(folder, tuple(records.values()), tuple(skipped), others=others), notes


def _named(record: Record, name: str, *, alone: bool) -> Record:
    """A record of a further folder with its name before the path, and before the ID unless it was given."""
    image = name if alone and is_image(name) else f"{name}/{record.picture}"
    made_from_path = record.id in (record.picture, record.file, f"{record.file}:{record.row}")
    return replace(
        record,
        file=name if alone else f"{name}/{record.file}",
        id=record.id if not made_from_path else image if record.picture else f"{name}/{record.id}",
        picture=record.picture and image,
    )


def _files(folder: Path) -> Iterator[str]:
    """Relative paths of all files below a folder, except hidden ones and those of libraries."""
    for parent, folders, names in os.walk(folder):
        if not LIBRARY_FILES.isdisjoint(names):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inside = Path(parent).relative_to(folder).as_posix()
        prefix = "" if inside == "." else f"{inside}/"
        yield from (prefix + name for name in names if not name.startswith("."))


def is_image(name: str) -> bool:
    """Whether a file has the suffix of an image."""
    return PurePosixPath(name).suffix.lower() in IMAGE_SUFFIXES


def _is_metadata(name: str) -> bool:
    path = PurePosixPath(name.lower())
    return path.stem == "metadata" and path.suffix in METADATA_SUFFIXES


def _read_files(folder: Path, files: Sequence[str], on_progress: OnProgress) -> _Found:
    """A record for each image, and for each .txt without an image; if all images are in folders, these are labels."""
    images = [name for name in files if is_image(name)]
    text_of = {_stem(name): name for name in files if name.lower().endswith(".txt") and name != CREDIT}
    texts_alone = [text_of[stem] for stem in text_of.keys() - set(map(_stem, images))]
    classes = {PurePosixPath(name).parent.name for name in images}
    labelled = len(classes) > 1 and "" not in classes
    records: list[Record] = []
    skipped: list[Skipped] = []
    foreign = 0  # texts that are not in UTF-8
    names = [*images, *sorted(texts_alone)]
    report = counter(on_progress, "read texts", len(names), "file")
    for count, name in enumerate(names, start=1):
        report(count)
        text = None
        if (file := text_of.get(_stem(name))) is not None:
            try:
                with open_regular(folder / file, inside=folder, most=LARGEST_TEXT) as opened:
                    encoding = _encoding(opened)
                    text = opened.read().decode(encoding, "replace")
                    foreign += encoding == _WESTERN
            except (OSError, DataError) as error:
                skipped.append(Skipped(file, None, name, "text", f"it cannot be read as a text ({error})"))
        if is_image(name):
            labels = (PurePosixPath(name).parent.name,) if labelled else ()
            records.append(Record(name, None, name, name, text, labels))
        else:
            records.append(Record(name, None, name, text=text))
    texts = sum(record.text is not None for record in records)
    notes = [f"{len(images):,} images; {texts:,} of the items have a text"]
    if labelled:
        notes.append(f"the labels are names of folders, {len(classes):,} classes")
    if foreign:
        notes.append(f"{foreign:,} texts are not in UTF-8 and were read as Western European ({_WESTERN})")
    others = {*files}.difference(images, text_of.values())
    if others:
        counts = Counter(PurePosixPath(name).suffix.lower() or "no suffix" for name in sorted(others))
        shown = ", ".join(f"{count:,} {suffix}" for suffix, count in counts.most_common(5))
        notes.append(f"files that are neither images nor texts were ignored: {shown}")
    return records, skipped, notes


def _encoding(file: IO[bytes]) -> str:
    """The encoding of a text file, which is read from its beginning and rewound: Unicode, or else Western European."""
    start = file.read(2)
    file.seek(0)
    if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while chunk := file.read(1 << 20):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return _WESTERN
    finally:
        file.seek(0)
    return "utf-8-sig"  # spreadsheets and editors may start a file with a byte-order mark


def _stem(name: str) -> str:
    return str(PurePosixPath(name).with_suffix(""))


def _read_tables(folder: Path, tables: Sequence[str], files: Sequence[str], *, root: Path | None) -> _Found:
    for parent, count in Counter(PurePosixPath(name).parent for name in tables).items():
        if count > 1:
            several = " and ".join(name for name in tables if PurePosixPath(name).parent == parent)
            raise DataError(f"{folder} has {several}; only one metadata file per folder is allowed, remove the others.")
    records: list[Record] = []
    skipped: list[Skipped] = []
    unused: dict[str, None] = {}
    for name in tables:
        inside = PurePosixPath(name).parent.as_posix().removeprefix(".")
        rows, problems, columns = read_metadata(folder / name, inside=inside, root=root)
        records, skipped, unused = records + rows, skipped + problems, unused | dict.fromkeys(columns)
    named = {record.picture for record in records}
    reason = f"no row of {listed(tables)} names it"
    skipped += [Skipped(name, None, name, "item", reason) for name in files if is_image(name) and name not in named]
    notes = [f"{listed(tables)}: {len(records):,} rows"]
    return records, skipped, notes + ([f"columns that were not used: {listed(unused)}"] if unused else [])


def read_metadata(path: Path, *, inside: str = "", root: Path | None = None) -> _Found:
    """Unchecked records of a metadata file, rows that are unusable, and the columns that were not used.

    ``inside`` is the folder of the file relative to that of the data, or "" if they are the same. The file must not
    lead out of ``root``.
    """
    name = f"{inside}/{path.name}" if inside else path.name
    records: list[Record] = []
    skipped: list[Skipped] = []
    columns: dict[str, None] = {}
    with open_regular(path, inside=root, most=LARGEST_METADATA) as file:
        for row, cells in _ROW_READERS[path.suffix.lower()](file, path):
            if row > MOST_ROWS:
                raise DataError(f"{path} has more than {MOST_ROWS:,} rows; divide it.")
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


def _csv_rows(binary: IO[bytes], path: Path) -> Iterator[_Row]:
    try:
        with io.TextIOWrapper(binary, encoding=_encoding(binary), errors="replace", newline="") as file:
            first = file.readline()
            names = {mark: {name.strip(' "\r\n').lower() for name in first.split(mark)} for mark in ",;\t"}
            delimiter = max(names, key=lambda mark: len(names[mark] & KNOWN_COLUMNS))
            file.seek(0)
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            header = [name.strip().lower() for name in next(reader, [])]
            for row, cells in enumerate(reader, start=2):
                if len(cells) > len(header):
                    yield row, f"it has {len(cells)} cells, the header {len(header)}"
                elif cells:
                    yield row, dict(zip(header, cells, strict=False))
    except csv.Error as error:
        raise DataError(f"{path} cannot be read as CSV ({error}); check its quotes, or write it again.") from error


def _jsonl_rows(file: IO[bytes], _path: Path) -> Iterator[_Row]:
    for row, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            cells = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield row, f"it is not JSON ({error})"
            continue
        yield row, cells if isinstance(cells, dict) else "it is JSON, but not an object with columns by name"


def _parquet_rows(binary: IO[bytes], path: Path) -> Iterator[_Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = 0
    try:
        with pq.ParquetFile(binary) as file:
            strings = check_parquet(file.metadata, path)
        # One value that is repeated in every row takes little space in the file; as a dictionary, also in memory.
        with pq.ParquetFile(binary, read_dictionary=strings) as file:
            names = file.schema_arrow.names
            others = dict.fromkeys(name for name in names if name not in KNOWN_COLUMNS)
            known = [name for name in names if name in KNOWN_COLUMNS]
            for batch in file.iter_batches(_PARQUET_BATCH, columns=known):
                for cells in zip(*map(_parquet_values, batch.columns), strict=True):
                    row += 1
                    yield row, dict(zip(batch.schema.names, cells, strict=True)) | others
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as parquet ({error}); check it, or write it again.") from error


def check_parquet(metadata: Any, path: Path) -> list[str]:
    """The paths of the columns of strings; DataError if a Parquet file would take too much memory."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    size = sum(chunk.total_uncompressed_size for chunk in chunks)
    values = max((chunk.num_values for chunk in chunks), default=0)
    most = min(MOST_ROWS, _MOST_ROWS_PER_BYTE * path.stat().st_size)
    if max(metadata.num_rows, values) > most or size > LARGEST_METADATA:
        found = f"{metadata.num_rows:,} rows, up to {values:,} values in a column and {size:,} bytes when unpacked"
        allowed = f"{most:,} rows and values and {LARGEST_METADATA:,} bytes"
        raise DataError(f"{path} has {found}; at most {allowed} are read from a file of its size. Divide it.")
    if any("DELTA_BYTE_ARRAY" in chunk.encodings for chunk in chunks):  # could repeat a long prefix in every row
        raise DataError(f"{path} has a column in the encoding DELTA_BYTE_ARRAY; write it in the default encoding.")
    return sorted({chunk.path_in_schema for chunk in chunks if chunk.physical_type == "BYTE_ARRAY"})


def _parquet_values(column: Any) -> list[Any]:
    """The values of a column; rows with the same string share one object."""
    if hasattr(column, "dictionary"):
        values = column.dictionary.to_pylist()
        return [None if index is None else values[index] for index in column.indices.to_pylist()]
    if not hasattr(column, "value_lengths"):
        return list(column.to_pylist())
    flat = iter(_parquet_values(column.flatten()))
    return [None if length is None else list(islice(flat, length)) for length in column.value_lengths().to_pylist()]


_ROW_READERS = dict(zip(METADATA_SUFFIXES, (_csv_rows, _jsonl_rows, _parquet_rows), strict=True))
