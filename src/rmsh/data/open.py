"""Open data by name or path: benchmarks, prepared pairs, matrix files, image folders, metadata files, tar shards."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rmsh.core.cache import cache_folder
from rmsh.core.errors import DataError
from rmsh.data.benchmarks import coco66k
from rmsh.data.pairs import Pairs, listed
from rmsh.data.readers.feature_files import Role, read_matrix_pairs
from rmsh.data.readers.folder import is_image, is_image_folder, read_folder
from rmsh.data.readers.matrix_files import SUFFIXES, matrix_files
from rmsh.data.readers.parquet_images import read_tables, tables_in
from rmsh.data.readers.prepared import SPLIT, is_prepared, read_prepared
from rmsh.data.readers.tar_shards import read_shards, shards_in, shards_key
from rmsh.data.records import METADATA_SUFFIXES, Origin, count_skipped, refuse_skipped, to_pairs
from rmsh.data.splits import Split, random_split
from rmsh.data.synthetic.generated import generate_pairs

COCO66K_VARIABLE = "RMSH_COCO66K"
_ALLOWED = (
    "'coco66k', 'generated', an image or a folder of images, a .csv, .jsonl or .parquet file that lists them, a .tar "
    "shard, or matrices"
)


@dataclass(frozen=True, eq=False)
class Opened:
    """Data with what is known about it."""

    pairs: Pairs
    split: Split | None  # the split that comes with the data
    notes: tuple[str, ...]  # sentences for the user about what was guessed and what was skipped
    name: str  # short, such as "coco66k"
    origin: Origin | None = None  # for a user's own images and texts, their folder and what was left out

    def __post_init__(self) -> None:
        if self.split is not None:
            self.split.check(len(self.pairs))


def open_pairs(spec: str | Path, *, skip: Collection[Role] = (), strict: bool = False) -> Opened:
    """Open pairs from a user's images and texts, from matrix files, or from a data set known by name.

    Args:
        spec: a folder of images with metadata.csv, .jsonl or .parquet, or with a .txt file per image; tar shards
            (.tar); a matrix file (.npz, .npy, .mat, .h5, .hdf5) or a folder of them; "coco66k" (in the folder named by
            the environment variable RMSH_COCO66K), "coco66k:FOLDER", "generated" or "generated:N" (N items).
        skip: roles that need not be read, such as ("images",) if only labels are needed.
        strict: fail instead of skipping unreadable parts of items and accepting items without labels.

    Returns:
        The pairs, their split if they have one, and notes.

    Raises:
        DataError: the data cannot be read; the message names the file, the key or the row.

    Example:
        >>> opened = open_pairs("generated:40")
        >>> opened.name, len(opened.pairs), len(opened.split.query)
        ('generated', 40, 4)
    """
    opened = _open_spec(str(spec), skip)
    if strict and opened.origin is not None:
        refuse_skipped(opened.origin.skipped, opened.name)
    unlabelled = np.flatnonzero(~opened.pairs.labelled)
    if strict and unlabelled.size:
        found = f"{unlabelled.size} of {len(opened.pairs)} items have no label (rows {listed(unlabelled)})"
        raise DataError(f"{opened.name}: {found}; remove them, or allow items without labels.")
    if opened.pairs.labels is None or not unlabelled.size:
        return opened
    note = f"{unlabelled.size:,} of {len(opened.pairs):,} items have no label; supervised methods skip them"
    return replace(opened, notes=(*opened.notes, note))


def _open_spec(spec: str, skip: Collection[Role]) -> Opened:
    name, _, argument = spec.partition(":")
    path = Path(spec)
    if name == "generated":
        return _open_generated(argument)
    if name == "coco66k" or coco66k.is_coco66k(path):
        folder = (argument or os.environ.get(COCO66K_VARIABLE)) if name == "coco66k" else spec
        if not folder:
            raise DataError(f"The folder of coco66k is unknown; set {COCO66K_VARIABLE} or write 'coco66k:FOLDER'.")
        pairs, split = coco66k.read_coco66k(Path(folder), image_features="images" not in skip)
        return Opened(pairs, split, (), "coco66k")
    if is_prepared(path):
        pairs, split, manifest = read_prepared(path, skip)
        note = (
            f"{manifest['benchmark']} with the split {split.name!r}, seed {manifest['protocol']['seed']}, "
            f"SHA-256 {manifest['splits'][SPLIT]}"
        )
        return Opened(pairs, split, (note,), manifest["benchmark"])
    if _has_raw_items(path):
        return _open_raw_items(path)
    pairs, found, notes = read_matrix_pairs(matrix_files(path, allowed=_ALLOWED), skip=skip, source=spec)
    return Opened(pairs, found, notes, path.resolve().name if path.is_dir() else path.stem)


def _has_raw_items(path: Path) -> bool:
    """Whether a path is a folder of images, a metadata file or tar shards; matrix files in a folder take precedence."""
    if not path.is_dir():
        return path.is_file() and (is_image(path.name) or path.suffix.lower() in (*METADATA_SUFFIXES, ".tar"))
    if any(file.suffix.lower() in SUFFIXES for file in path.iterdir()):
        return any((path / f"metadata{suffix}").is_file() for suffix in METADATA_SUFFIXES)
    return bool(shards_in(path) or tables_in(path)) or is_image_folder(path)


def _open_raw_items(path: Path) -> Opened:
    if shards := shards_in(path):
        unpacked = cache_folder() / "unpacked" / shards_key(shards)
        origin, notes = read_shards(shards, into=unpacked, inside=path if path.is_dir() else None)
    elif tables := tables_in(path):
        origin, notes = read_tables(tables, into=cache_folder() / "unpacked" / shards_key(tables))
    else:
        origin, notes = read_folder(path)
    left_out = count_skipped(origin.skipped)
    if left_out and not origin.records:
        raise DataError(f"{path} has no usable item: {'; '.join(left_out)}; correct them.")
    pairs = to_pairs(origin.records, folder=origin.folder, source=str(path))
    return Opened(pairs, None, (*notes, *left_out), path.resolve().stem, origin)


def _open_generated(argument: str) -> Opened:
    if argument and not (argument.isascii() and argument.isdigit() and int(argument) >= 10):
        raise DataError(f"Got 'generated:{argument}'; write 'generated:N' with N at least 10.")
    pairs = generate_pairs(int(argument)) if argument else generate_pairs()
    split = random_split(len(pairs), len(pairs) // 10, name="generated")
    note = f"{len(pairs):,} pairs were generated; they are not real data"
    return Opened(pairs, split, (note,), "generated")
