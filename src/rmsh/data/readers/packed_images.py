"""Images packed into files: tar shards (webdataset), Parquet files as Hugging Face writes them, its saved data sets.

In a tar shard, members with the same name up to the first dot form one item. A member with the suffix of an image is
the item's image; ``.txt`` is its text; ``.json`` has ``text`` or ``caption``, ``labels`` and ``id``; ``.cls`` is a
label. Only regular members are read: links, devices and sparse files, which can claim any size, are skipped.

In a Parquet file, the column ``image`` has the bytes of an image file, or a struct of ``bytes`` and ``path``; the other
columns are those of a metadata file. At most one group of rows, as the file has them, is in memory. A data set saved by
``Dataset.save_to_disk`` has ``state.json``, which lists its Arrow files; several of them, its splits, are folders in a
folder with ``dataset_dict.json``.

Images are unpacked because encoders and the search page read files. A file is written only under a checked relative
name.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO, Any

from rmsh.core.errors import DataError
from rmsh.core.files import make_folder, open_regular, read_json
from rmsh.data.readers.folder import IMAGE_SUFFIXES, LARGEST_TEXT, check_parquet, is_image
from rmsh.data.records import KNOWN_COLUMNS, Origin, Record, Skipped, check_records, leads_out, record_from_cells

LARGEST_IMAGE = 256 << 20  # bytes
_TAR, _ARROW = ".tar", ".arrow"


def packed_files(path: Path) -> list[Path]:
    """The tar shard that a path names, or those directly in a folder; if there are none, its :func:`tables_in`."""
    files = path.iterdir() if path.is_dir() else [path]
    return sorted(file for file in files if file.suffix.lower() == _TAR) or tables_in(path)


def packed_key(files: Sequence[Path]) -> str:
    """A name for the folder of unpacked images, which changes when a file does."""
    facts = [(str(file.resolve()), (stat := file.stat()).st_size, stat.st_mtime_ns) for file in files]
    return sha256(repr(facts).encode()).hexdigest()[:16]


def read_packed(
    files: Sequence[Path], *, into: Path, inside: Path | None = None, several: bool = False
) -> tuple[Origin, list[str]]:
    """The checked records of uncompressed shards or of tables, and notes; images are unpacked unless there.

    Shards outside the folder ``inside`` are refused. With ``several``, or more than one file, the name of an image
    begins with the name of its file; the other files may be on other machines.
    """
    records: list[Record] = []
    skipped: list[Skipped] = []
    suffix, keys = files[0].suffix.lower(), set[str]()
    make_folder(into, mode=0o700)
    for path in files:
        name = f"{path.parent.name}-{path.stem}" if path.suffix.lower() == _ARROW else path.stem
        prefix = f"{name}/" if several or len(files) > 1 else ""
        with open_regular(path, inside=inside if suffix == _TAR else None) as file:
            if suffix == _TAR:
                items = iter(_read_members(path, file, into, prefix=prefix, skipped=skipped).items())
            else:
                items = _unpack_rows(path, file, into, prefix=prefix, keys=keys, skipped=skipped)
            for row, (key, cells) in enumerate(items, start=1):
                try:
                    records.append(record_from_cells(cells, file=path.name, row=row, key=key))
                except ValueError as error:
                    skipped.append(Skipped(path.name, row, key, "item", str(error)))
    kept, more = check_records(records, into)
    note = f"{len(files):,} {'Arrow' if suffix == _ARROW else 'Parquet'} files with {len(records):,} rows"
    if suffix == _TAR:
        note = f"{len(files):,} shards, {len(records):,} items"
    return Origin(into, tuple(kept), (*skipped, *more), unpacked=True), [note]


def _read_members(
    shard: Path, opened: IO[bytes], into: Path, *, prefix: str, skipped: list[Skipped]
) -> dict[str, dict[str, Any]]:
    """The cells of each item of a shard by its key; members that cannot be used are added to ``skipped``."""
    samples: dict[str, dict[str, Any]] = {}
    try:
        with tarfile.open(fileobj=opened, mode="r:") as archive:
            for member in archive:
                if member.isdir():
                    continue
                path = PurePosixPath(member.name.removeprefix("./"))
                stem, dot, ending = path.name.partition(".")
                key, suffix = prefix + str(path.with_name(stem) if stem else path), (dot + ending).lower()
                problem = _member_problem(member, suffix)
                if problem is None and (file := archive.extractfile(member)) is not None:
                    cells = samples.setdefault(key, {})
                    if suffix in IMAGE_SUFFIXES:
                        problem = add_image(cells, file, f"{prefix}{path}", size=member.size, into=into)
                    else:
                        problem = _add_text(cells, file, suffix)
                if problem:
                    skipped.append(Skipped(shard.name, None, key, "item", f"{member.name!r}: {problem}"))
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(f"{shard} cannot be read as an uncompressed tar file ({error}); decompress it.") from error
    return samples


def _member_problem(member: tarfile.TarInfo, suffix: str) -> str | None:
    if not member.isreg() or member.issparse():
        return "it is a link, a device or a sparse file; only regular files are read"
    if "\\" in member.name or leads_out(member.name):
        return "its name leads out of the folder"
    limit = LARGEST_IMAGE if suffix in IMAGE_SUFFIXES else LARGEST_TEXT
    return f"it has {member.size:,} bytes, {limit:,} are allowed" if member.size > limit else None


def add_image(cells: dict[str, Any], file: IO[bytes], name: str, *, size: int, into: Path) -> str | None:
    """Unpack an image unless a file of its size is there, or return the reason why it was skipped."""
    if "file_name" in cells:
        return f"its item already has the image {cells['file_name']!r}"
    cells["file_name"], path = name, into / name
    try:
        if path.is_file() and path.stat().st_size == size:
            return None
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".{path.name}.tmp")
        unfinished.write_bytes(file.read())
        os.replace(unfinished, path)
    except (OSError, ValueError) as error:
        return f"it cannot be written ({error})"
    return None


def _add_text(cells: dict[str, Any], file: IO[bytes], suffix: str) -> str | None:
    """Add the content of a member to its item, or return the reason why it was skipped."""
    try:
        content = file.read().decode("utf-8-sig")
        if suffix == ".json":
            cells |= {name: value for name, value in dict(json.loads(content)).items() if name != "file_name"}
        elif suffix == ".txt":
            cells["text"] = content
        elif suffix == ".cls":
            cells["labels"] = [content]
    except (ValueError, TypeError, RecursionError) as error:
        return f"it cannot be read ({error})"
    return None


_COLUMN = "image"
_READ = KNOWN_COLUMNS | {_COLUMN}
_BATCH = 16  # rows decoded at once
_MOST_UNPACKED = 100  # times the size of the file
_SUFFIXES = {b"\x89PNG": ".png", b"GIF8": ".gif", b"RIFF": ".webp", b"II*\0": ".tif", b"MM\0*": ".tif"}


def tables_in(path: Path) -> list[Path]:
    """The files with images that a path names, or that are directly in a folder or in its folder "data", or saved."""
    files = [*path.glob("*.parquet"), *path.glob("data/*.parquet"), *_saved(path)] if path.is_dir() else [path]
    return sorted(file for file in files if file.suffix.lower() in (".parquet", _ARROW) and _has_images(file))


def _saved(folder: Path) -> list[Path]:
    """The Arrow files of a saved data set and its splits."""
    if (splits := folder / "dataset_dict.json").is_file():
        return [file for split in read_json(splits)["splits"] for file in _saved(folder / Path(split).name)]
    state = folder / "state.json"
    files = read_json(state).get("_data_files", []) if state.is_file() else []
    return [folder / Path(file["filename"]).name for file in files]


def _has_images(path: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with suppress(pa.ArrowException, OSError, DataError, KeyError), open_regular(path) as file:
        schema = pa.ipc.open_stream(file).schema if path.suffix.lower() == _ARROW else pq.read_schema(file)
        kind = schema.field(_COLUMN).type
        inner = [kind.field(place) for place in range(kind.num_fields)]
        kinds = [kind, *(field.type for field in inner if field.name == "bytes")]
        return any(pa.types.is_binary(one) or pa.types.is_large_binary(one) for one in kinds)
    return False


def _unpack_rows(
    table: Path, opened: IO[bytes], into: Path, *, prefix: str, keys: set[str], skipped: list[Skipped]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The key and the cells of each row; ``keys`` are those in use, and unusable images are added to ``skipped``."""
    most, size = _MOST_UNPACKED * table.stat().st_size, 0
    for row, (content, name, cells) in enumerate(_rows(opened, table), start=1):
        size += len(content)
        if size > most:
            raise DataError(f"{table} has more than {most:,} bytes of images; it would fill the disk.")
        key = name if name and name not in keys else f"{prefix}{row}"
        keys.add(key)
        problem: str | None = "its image has no bytes"
        if len(content) > LARGEST_IMAGE:
            problem = f"its image has {len(content):,} bytes, {LARGEST_IMAGE:,} are allowed"
        elif content:
            path = f"{prefix}{row}{_suffix(name, content)}"
            problem = add_image(cells, io.BytesIO(content), path, size=len(content), into=into)
        if problem:
            skipped.append(Skipped(table.name, row, key, "picture", problem))
        yield key, cells


def _rows(binary: IO[bytes], path: Path) -> Iterator[tuple[bytes, str, dict[str, Any]]]:
    """The image, its name and the other cells of each row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if path.suffix.lower() == _ARROW:
            stream = pa.ipc.open_stream(binary)
            schema, batches = stream.schema, _small_batches(stream)
        else:
            # With pre_buffer, later groups of rows would be read ahead.
            file = pq.ParquetFile(binary, pre_buffer=False, buffer_size=1 << 20)
            check_parquet(file.metadata, path)
            schema, columns = file.schema_arrow, [name for name in file.schema_arrow.names if name in _READ]
            batches = file.iter_batches(_BATCH, columns=columns, use_threads=False)
        classes = _class_names(schema.metadata or {})
        for batch in batches:
            for cells in batch.to_pylist():
                for column, known in classes.items():
                    if isinstance(number := cells.get(column), int) and 0 <= number < len(known):
                        cells[column] = known[number]
                cells.pop("file_name", None)
                image = cells.pop(_COLUMN)
                image = image if isinstance(image, dict) else {"bytes": image}
                yield image.get("bytes") or b"", str(image.get("path") or ""), cells
    except (pa.ArrowException, OSError) as error:
        kind = path.suffix.lower().removeprefix(".")
        raise DataError(f"{path} cannot be read as {kind} ({error}); check it, or write it again.") from error


def _small_batches(stream: Any) -> Iterator[Any]:
    for batch in stream:
        batch.validate(full=True)  # Arrow trusts its files otherwise
        known = batch.select([name for name in batch.schema.names if name in _READ])
        yield from (known.slice(row, _BATCH) for row in range(0, known.num_rows, _BATCH))


def _class_names(metadata: dict[bytes, bytes]) -> dict[str, list[str]]:
    """The class names of columns that have numbers of classes, as Hugging Face describes them."""
    with suppress(ValueError, KeyError, AttributeError, TypeError):
        columns = json.loads(metadata[b"huggingface"])["info"]["features"]
        return {name: column["names"] for name, column in columns.items() if column.get("_type") == "ClassLabel"}
    return {}


def _suffix(name: str, content: bytes) -> str:
    known = next((suffix for start, suffix in _SUFFIXES.items() if content.startswith(start)), ".jpg")
    return PurePosixPath(name).suffix.lower() if is_image(name) else known
