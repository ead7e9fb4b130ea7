"""Somebody's own data, whatever its form: a folder of pictures, one metadata file of it, or tar shards."""

from __future__ import annotations

from pathlib import Path

from rmsh.cache import cache_folder
from rmsh.data import metadata
from rmsh.data.folder import is_picture_folder, read_folder
from rmsh.data.matrices import SUFFIXES as MATRIX_SUFFIXES
from rmsh.data.records import Origin, check_records
from rmsh.data.webdataset import read_webdataset, shards_in, shards_name
from rmsh.progress import OnProgress, ignore

__all__ = ["is_own_data", "read_own_data"]


def is_own_data(path: Path) -> bool:
    """Whether a path is of these forms; a folder with files of matrices is not."""
    if not path.is_dir():
        return path.is_file() and path.suffix.lower() in (*metadata.SUFFIXES, ".tar")
    if any(file.suffix.lower() in MATRIX_SUFFIXES for file in path.iterdir()):
        return any((path / f"metadata{suffix}").is_file() for suffix in metadata.SUFFIXES)
    return bool(shards_in(path)) or is_picture_folder(path)


def read_own_data(path: Path, *, on_progress: OnProgress = ignore) -> tuple[Origin, list[str]]:
    """Read items with raw pictures and texts; the pictures of shards are unpacked into the cache.

    Returns:
        The records with what was left out of them, and notes on what was guessed.

    Raises:
        DataError: a file cannot be read.
    """
    shards = shards_in(path)
    if shards:
        unpacked = cache_folder() / "unpacked" / shards_name(shards)
        return read_webdataset(shards, into=unpacked, on_progress=on_progress)
    if path.is_dir():
        return read_folder(path)
    records, none, unused = metadata.read_metadata(path)
    kept, skipped = check_records(records, path.parent)
    notes = [
        f"{path.name}: {len(records):,} rows",
        *([f"columns that were not used: {', '.join(unused)}"] if unused else []),
    ]
    return Origin(path.parent, tuple(kept), (*none, *skipped)), notes
