"""Metadata files beside pictures: metadata.csv, .jsonl or .parquet, one row an item, as Hugging Face's imagefolder has.

The columns are ``file_name`` (relative to the folder of the metadata file), ``text`` or ``caption``, ``labels`` (names
separated by ";", or a list) and ``id`` (``file_name`` where not given); each may be absent, and cells may be empty.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from rmsh.core.errors import DataError
from rmsh.data.records import Record, Skipped

# field of a record -> the columns that may hold it, the first of them that is there counts
COLUMNS = {"picture": ("file_name",), "text": ("text", "caption"), "labels": ("labels", "label"), "id": ("id",)}
_DELIMITERS = ",;\t"

# Row and its cells by column; or a sentence where the row is none.
_Row: TypeAlias = "tuple[int, Mapping[str, Any] | str]"


def read_metadata(path: Path, *, inside: str = "") -> tuple[list[Record], list[Skipped], list[str]]:
    """Read the rows of a metadata file.

    Args:
        path: the file; its suffix says what it is.
        inside: the folder of the file below that of the data, "" where they are the same.

    Returns:
        Records, not yet checked; rows that are none; and columns that were not used.

    Raises:
        DataError: the file cannot be read, or has neither pictures nor texts.
    """
    name = f"{inside}/{path.name}" if inside else path.name
    records: list[Record] = []
    skipped: list[Skipped] = []
    columns: dict[str, None] = {}
    for row, cells in _READERS[path.suffix.lower()](path):
        if isinstance(cells, str):
            skipped.append(Skipped(name, row, "", "item", cells))
            continue
        columns |= dict.fromkeys(cells)
        try:
            records.append(record_of(cells, file=name, row=row, inside=inside))
        except ValueError as error:
            skipped.append(Skipped(name, row, "", "item", str(error)))
    known = {column for names in COLUMNS.values() for column in names}
    if columns and not {*columns} & {*COLUMNS["picture"], *COLUMNS["text"]}:
        raise DataError(
            f"{path} has the columns {', '.join(map(repr, columns))}; file_name (pictures), text or caption, or both "
            "are needed, and labels where there are some."
        )
    return records, skipped, [column for column in columns if column not in known]


def record_of(cells: Mapping[str, Any], *, file: str, row: int | None, inside: str = "", key: str = "") -> Record:
    """The record of a row.

    Args:
        cells: by column.
        file: that the row is from.
        row: its number there.
        inside: the folder that ``file_name`` starts from.
        key: the id, where the row has none.

    Raises:
        ValueError: a cell has a value that is not what its column is for; the message is a reason in words.

    Example:
        >>> record = record_of({"file_name": "a.jpg", "labels": "dog; park"}, file="metadata.csv", row=2)
        >>> record.id, record.labels
        ('a.jpg', ('dog', 'park'))
    """
    picture = _string(_cell(cells, "picture"), "file_name")
    if picture is not None:
        # Windows writes backslashes; and a name that leads up is for the check of all records to refuse.
        picture = "/".join(filter(None, [inside, picture.replace("\\", "/").removeprefix("./")])) if picture else None
    own = _string(_cell(cells, "id"), "id")
    labels = _labels(_cell(cells, "labels"))
    return Record(
        file, row, own or key or picture or f"{file}:{row}", picture, _string(_cell(cells, "text"), "text"), labels
    )


def _cell(cells: Mapping[str, Any], field: str) -> Any:
    return next((cells[name] for name in COLUMNS[field] if cells.get(name) is not None), None)


def _string(value: Any, column: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"its {column} is {str(value)[:40]!r}; a string is expected")


def _labels(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    names = value if isinstance(value, list) else str(_string(value, "labels")).split(";")
    return tuple(str(_string(name, "labels") or "").strip() for name in names)


def _csv_rows(path: Path) -> Iterator[_Row]:
    try:
        # utf-8-sig: spreadsheets put a byte-order mark first
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
        raise DataError(f"{path} cannot be read as CSV ({error}); check its quotes, or write it anew.") from error


def _delimiter(header: str) -> str:
    """What separates the cells of a header: the character with which most known columns are found."""
    known = {column for names in COLUMNS.values() for column in names}
    return max(_DELIMITERS, key=lambda mark: len({name.strip(' "\r\n').lower() for name in header.split(mark)} & known))


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

    known = {column for names in COLUMNS.values() for column in names}
    row = 0
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            used = [name for name in names if name in known]
            others = dict.fromkeys(name for name in names if name not in known)
            for batch in file.iter_batches(columns=used):
                for cells in batch.to_pylist():
                    row += 1
                    yield row, cells | others
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as parquet ({error}); check it, or write it anew.") from error


_READERS = {".csv": _csv_rows, ".jsonl": _jsonl_rows, ".parquet": _parquet_rows}
SUFFIXES = tuple(_READERS)
