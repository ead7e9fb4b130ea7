"""Tar shards in the webdataset layout: members with the same name up to the first dot form one item.

A member with the suffix of an image is the item's image; ``.txt`` is its text; ``.json`` has ``text`` or ``caption``,
``labels`` and ``id``; ``.cls`` is a label. Images are unpacked because encoders and the search page read files. A file
is written only under a checked relative name, and only regular members are read: links, devices and sparse files, which
can claim any size, are skipped.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO, Any

from rmsh.core.errors import DataError
from rmsh.core.files import make_folder, open_regular
from rmsh.data.readers.folder import IMAGE_SUFFIXES, LARGEST_TEXT
from rmsh.data.records import Origin, Record, Skipped, check_records, leads_out, record_from_cells

LARGEST_IMAGE = 256 << 20  # bytes


def shards_in(path: Path) -> list[Path]:
    """The path itself if it is a shard, or the shards directly in a folder."""
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix.lower() == ".tar")
    return [path] if path.suffix.lower() == ".tar" else []


def shards_key(shards: Sequence[Path]) -> str:
    """A name for the folder of unpacked images, which changes when a shard does."""
    facts = [(str(shard.resolve()), (stat := shard.stat()).st_size, stat.st_mtime_ns) for shard in shards]
    return sha256(repr(facts).encode()).hexdigest()[:16]


def read_shards(
    shards: Sequence[Path], *, into: Path, inside: Path | None = None, several: bool = False
) -> tuple[Origin, list[str]]:
    """The checked records of uncompressed shards ``inside`` a folder, and notes; images are unpacked unless there."""
    records: list[Record] = []
    skipped: list[Skipped] = []
    make_folder(into, mode=0o700)
    for shard in shards:
        prefix = f"{shard.stem}/" if several or len(shards) > 1 else ""  # several: perhaps on other machines
        with open_regular(shard, inside=inside) as file:
            samples, problems = _read_members(shard, file, into, prefix=prefix)
        skipped += problems
        for row, (key, cells) in enumerate(samples.items(), start=1):
            try:
                records.append(record_from_cells(cells, file=shard.name, row=row, key=key))
            except ValueError as error:
                skipped.append(Skipped(shard.name, row, key, "item", str(error)))
    kept, more = check_records(records, into)
    notes = [f"{len(shards):,} shards, {len(records):,} items"]
    return Origin(into, tuple(kept), (*skipped, *more), unpacked=True), notes


def _read_members(
    shard: Path, opened: IO[bytes], into: Path, *, prefix: str
) -> tuple[dict[str, dict[str, Any]], list[Skipped]]:
    """The cells of each item by its key, and the members that were skipped."""
    samples: dict[str, dict[str, Any]] = {}
    skipped: list[Skipped] = []
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
    return samples, skipped


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
