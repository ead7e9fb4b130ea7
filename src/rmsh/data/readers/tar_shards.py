"""Tar shards in the form of webdataset: members of one name before the first dot are one item.

A picture's suffix makes it the picture; ``.txt`` is the text; ``.json`` holds ``text`` or ``caption``, ``labels`` and
``id``; ``.cls`` is a label. Pictures are unpacked, as encoders and the search page read files. Nothing of an archive
decides where a file goes but a checked relative name, and only plain files are read: links, devices and sparse files,
which claim any size, are listed as left out.
"""

from __future__ import annotations

import json
import os
import tarfile
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any

from rmsh.core.errors import DataError
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.data.readers.folder import LARGEST_TEXT, PICTURE_SUFFIXES
from rmsh.data.readers.metadata import record_of
from rmsh.data.records import Origin, Record, Skipped, check_records

LARGEST_PICTURE = 256 << 20  # bytes of a picture file


def shards_in(path: Path) -> list[Path]:
    """The shards that a path names: itself, or those directly in a folder."""
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix.lower() == ".tar")
    return [path] if path.suffix.lower() == ".tar" else []


def shards_name(shards: Sequence[Path]) -> str:
    """A name for the unpacked pictures of shards: another one when a shard is another file.

    Example:
        >>> len(shards_name([]))
        16
    """
    facts = [(str(shard.resolve()), (stat := shard.stat()).st_size, stat.st_mtime_ns) for shard in shards]
    return sha256(repr(facts).encode()).hexdigest()[:16]


def read_webdataset(
    shards: Sequence[Path], *, into: Path, on_progress: OnProgress = ignore
) -> tuple[Origin, list[str]]:
    """Read the items of shards and unpack their pictures.

    Args:
        shards: uncompressed .tar files.
        into: the folder to unpack into; a picture that is there already, with its size, is not written again.
        on_progress: is told of every shard.

    Returns:
        The records with what was left out of them, and notes.

    Raises:
        DataError: a shard is damaged, or compressed.
    """
    records: list[Record] = []
    skipped: list[Skipped] = []
    start = time.perf_counter()
    into.mkdir(parents=True, exist_ok=True)
    for done, shard in enumerate(shards, start=1):
        found, none = _read_shard(shard, into, prefix=f"{shard.stem}/" if len(shards) > 1 else "")
        records, skipped = records + found, skipped + none
        on_progress(Progress("unpack", done, len(shards), "shard", time.perf_counter() - start))
    kept, more = check_records(records, into)
    return Origin(into, tuple(kept), (*skipped, *more), unpacked=True), [
        f"{len(shards):,} shards, {len(records):,} items"
    ]


def _read_shard(shard: Path, into: Path, *, prefix: str) -> tuple[list[Record], list[Skipped]]:
    samples, skipped = _read_members(shard, into, prefix)
    records: list[Record] = []
    for row, (key, cells) in enumerate(samples.items(), start=1):
        try:
            records.append(record_of(cells, file=shard.name, row=row, key=key))
        except ValueError as error:
            skipped.append(Skipped(shard.name, row, key, "item", str(error)))
    return records, skipped


def _read_members(shard: Path, into: Path, prefix: str) -> tuple[dict[str, dict[str, Any]], list[Skipped]]:
    """The cells of each item by its key, and members that were left out; pictures are unpacked."""
    samples: dict[str, dict[str, Any]] = {}
    skipped: list[Skipped] = []
    try:
        with tarfile.open(shard, mode="r:") as archive:
            for member in archive:
                if member.isdir():
                    continue
                key, suffix = _key_and_suffix(member.name)
                problem = _problem(member, suffix)
                if problem is None and (file := archive.extractfile(member)) is not None:
                    cells = samples.setdefault(prefix + key, {})
                    problem = _take(cells, file, suffix, member=member, into=into, prefix=prefix)
                if problem:
                    skipped.append(Skipped(shard.name, None, prefix + key, "item", f"{member.name!r}: {problem}"))
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(
            f"{shard} cannot be read as an uncompressed tar file ({error}); unpack it if it is compressed, or fetch it "
            "anew."
        ) from error
    return samples, skipped


def _key_and_suffix(name: str) -> tuple[str, str]:
    """A member's name up to the first dot of its last part, and the rest.

    Example:
        >>> _key_and_suffix("./train/0001.seg.PNG")
        ('train/0001', '.seg.png')
    """
    path = PurePosixPath(name.removeprefix("./"))
    stem, dot, suffix = path.name.partition(".")
    return str(path.with_name(stem)) if stem else str(path), (dot + suffix).lower()


def _problem(member: tarfile.TarInfo, suffix: str) -> str | None:
    if not member.isreg() or member.issparse():
        return "it is a link, a device or a sparse file; only plain files are read"
    name = member.name
    if name.startswith("/") or "\\" in name or ".." in PurePosixPath(name).parts or PureWindowsPath(name).drive:
        return "its name leads out of the folder"
    limit = LARGEST_PICTURE if suffix in PICTURE_SUFFIXES else LARGEST_TEXT
    return f"it has {member.size:,} bytes, {limit:,} are allowed" if member.size > limit else None


def _take(
    cells: dict[str, Any], file: IO[bytes], suffix: str, *, member: tarfile.TarInfo, into: Path, prefix: str
) -> str | None:
    """Add what a member says to the cells of its item, or return why it says nothing."""
    if suffix in PICTURE_SUFFIXES:
        if "file_name" in cells:
            return f"its item has the picture {cells['file_name']!r} already"
        cells["file_name"] = prefix + member.name.removeprefix("./")
        return _unpack(file, into / cells["file_name"], member.size)
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


def _unpack(file: IO[bytes], path: Path, size: int) -> str | None:
    """Write a picture unless it is there with its size."""
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
