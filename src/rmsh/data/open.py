"""Open data by name or path: coco66k, prepared pairs, matrix files, image folders, metadata files, tar shards.

Prepared pairs are a folder with a benchmark and its split:

manifest.json             description, provenance, and the SHA-256 of every other file; written last
items.parquet             id, has_image, has_text; also image (a path) and text if these are raw
labels.npy                0/1 (n, classes)
images.npy, texts.npy     features, if any; texts.npz for a sparse bag of words
split.json                database, query and training items
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rmsh.core.errors import DataError, FormatError
from rmsh.core.files import cache_folder, checked_format, read_json
from rmsh.core.progress import OnProgress, ignore
from rmsh.data.pairs import Pairs, listed
from rmsh.data.readers import coco66k
from rmsh.data.readers.feature_tables import feature_tables, read_feature_tables
from rmsh.data.readers.folder import check_parquet, is_image, is_image_folder, read_folder
from rmsh.data.readers.matrix_files import SUFFIXES, Role, list_matrices, matrix_files, read_matrix, read_matrix_pairs
from rmsh.data.readers.packed_images import packed_files, packed_key, read_packed
from rmsh.data.records import METADATA_SUFFIXES, Origin, count_skipped, refuse_skipped, to_pairs
from rmsh.data.splits import Split, random_split
from rmsh.data.synthetic.generated import generate_pairs

PREPARED, PREPARED_VERSION = "rmsh-pairs", 1
MANIFEST, ITEMS, SPLIT = "manifest.json", "items.parquet", "split.json"
RAW = {"images": "image", "texts": "text"}  # the column of items.parquet for a raw modality
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


def open_pairs(
    spec: str | Path, *, skip: Collection[Role] = (), strict: bool = False, on_progress: OnProgress = ignore
) -> Opened:
    """Open pairs from a user's images and texts, from matrix files, or from a data set known by name.

    Args:
        spec: a folder of images with metadata.csv, .jsonl or .parquet, or with a .txt file per image; tar shards
            (.tar); a matrix file (.npz, .npy, .mat), a Parquet file with columns of features, or a folder of them;
            "coco66k" (in the folder named by the environment variable RMSH_COCO66K), "coco66k:FOLDER", "generated" or
            "generated:N" (N items).
        skip: roles that need not be read, such as ("images",) if only labels are needed.
        strict: fail instead of skipping unreadable parts of items and accepting items without labels.
        on_progress: called with the number of files read from a folder of images.

    Raises:
        DataError: the data cannot be read; the message names the file, the key or the row.

    Example:
        >>> opened = open_pairs("generated:40")
        >>> opened.name, len(opened.pairs), len(opened.split.query)
        ('generated', 40, 4)
    """
    opened = _open_spec(str(spec), skip, on_progress)
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


def _open_spec(spec: str, skip: Collection[Role], on_progress: OnProgress) -> Opened:
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
    if (path / ITEMS).is_file() and (path / MANIFEST).is_file():
        return _open_prepared(path, skip)
    if tables := feature_tables(path):
        pairs = read_feature_tables(tables, skip=skip, source=spec)
        note = f"features of {len(pairs):,} items were taken from {len(tables):,} Parquet files"
        return Opened(pairs, None, (note,), path.resolve().stem)
    if _has_raw_items(path):
        return _open_raw_items(path, on_progress)
    pairs, found, notes = read_matrix_pairs(matrix_files(path, allowed=_ALLOWED), skip=skip, source=spec)
    return Opened(pairs, found, notes, path.resolve().name if path.is_dir() else path.stem)


def _open_prepared(folder: Path, skip: Collection[Role]) -> Opened:
    import pyarrow as pa
    from pyarrow import parquet

    path, items_path = folder / MANIFEST, folder / ITEMS
    hint = "prepare the pairs again"
    manifest = checked_format(read_json(path), path, name=PREPARED, version=PREPARED_VERSION, hint=hint)
    missing = [name for name in (*manifest["files"], SPLIT) if not (folder / name).is_file()]
    if missing:
        raise DataError(f"{folder} lacks {', '.join(missing)}; restore it or {hint}.")
    try:
        check_parquet(parquet.read_metadata(items_path), items_path)
        items = parquet.read_table(items_path)
    except pa.ArrowException as error:
        raise FormatError(f"{items_path} is damaged ({error}); restore it or {hint}.") from error
    columns: dict[str, Any] = {"ids": items["id"].to_numpy().astype(np.str_)}
    for role in ("images", "texts", "labels"):
        files = [] if role in skip else [folder / name for name in manifest["files"] if Path(name).stem == role]
        if files:
            columns[role] = read_matrix(*list_matrices(*files))
        elif role not in skip and RAW.get(role) in items.column_names:
            columns[role] = items[RAW[role]].to_numpy().astype(np.str_)
    columns |= {f"has_{name}": items[f"has_{name}"].to_numpy() for role, name in RAW.items() if role in columns}
    names = tuple(manifest["class_names"]) if "labels" in columns else ()
    pairs = Pairs(**columns, class_names=names, source=str(folder))
    split, name = Split.load(folder / SPLIT, pairs.ids), manifest["benchmark"]
    seed, digest = manifest["protocol"]["seed"], manifest["splits"][SPLIT]
    return Opened(pairs, split, (f"{name} with the split {split.name!r}, seed {seed}, SHA-256 {digest}",), name)


def _has_raw_items(path: Path) -> bool:
    """Whether a path is a folder of images, a metadata file or tar shards; matrix files in a folder take precedence."""
    if not path.is_dir():
        return path.is_file() and (is_image(path.name) or path.suffix.lower() in (*METADATA_SUFFIXES, ".tar"))
    if any(file.suffix.lower() in SUFFIXES for file in path.iterdir()):
        return any((path / f"metadata{suffix}").is_file() for suffix in METADATA_SUFFIXES)
    return bool(packed_files(path)) or is_image_folder(path)


def _open_raw_items(path: Path, on_progress: OnProgress) -> Opened:
    if files := packed_files(path):
        unpacked = cache_folder() / "unpacked" / packed_key(files)
        origin, notes = read_packed(files, into=unpacked, inside=path if path.is_dir() else None)
    else:
        origin, notes = read_folder(path, on_progress=on_progress)
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
