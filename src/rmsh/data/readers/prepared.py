"""Prepared pairs: a folder with items, features, labels and splits, whose manifest is written last.

manifest.json                  description, provenance, and the SHA-256 of every other file
items.parquet                  id, has_image, has_text; also image (a path) and text if these are raw
labels.npy                     0/1 (n, classes)
images.npy, texts.npy          features, if any; texts.npz for a sparse bag of words
split.json, validation.json    database, query and training items; the same for choosing options
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from scipy import sparse

from rmsh.core.errors import DataError, FormatError, InputError
from rmsh.core.files import atomic, checked_format, read_json, sha256, write_json
from rmsh.data.pairs import Pairs, is_raw
from rmsh.data.readers.matrix_files import list_matrices, read_matrix
from rmsh.data.splits import PARTS, Split, hold_out_validation

if TYPE_CHECKING:
    from rmsh.data.readers.feature_files import Role

FORMAT, VERSION = "rmsh-pairs", 1
MANIFEST, ITEMS, LABELS = "manifest.json", "items.parquet", "labels.npy"
SPLIT, VALIDATION = "split.json", "validation.json"
RAW = {"images": "image", "texts": "text"}  # the column of items.parquet for a raw modality


def refuse_finished(folder: Path) -> None:
    """Raise an InputError if the folder already contains prepared pairs."""
    if (folder / MANIFEST).exists():
        raise InputError(f"{folder} already contains prepared pairs; give another folder, or remove this one.")


def write_prepared(folder: Path, pairs: Pairs, split: Split, *, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Write pairs and their split, and return the manifest: ``facts`` with counts and hashes."""
    refuse_finished(folder)
    columns: dict[str, Any] = {"labels": pairs.labels, "images": pairs.images, "texts": pairs.texts}
    columns = {name: column for name, column in columns.items() if column is not None}
    raw = {RAW[name]: columns.pop(name) for name in RAW if name in columns and is_raw(columns[name])}
    items = {"id": pairs.ids, "has_image": pairs.has_image, "has_text": pairs.has_text, **raw}
    with atomic(folder / ITEMS) as file:
        parquet.write_table(pa.table({name: pa.array(column) for name, column in items.items()}), file)
    files = [ITEMS, *(_write_column(folder, name, column) for name, column in columns.items())]
    held = hold_out_validation(split)
    splits = {SPLIT: split.save(folder / SPLIT, pairs.ids), VALIDATION: held.save(folder / VALIDATION, pairs.ids)}
    parts = {part: len(getattr(split, part)) for part in PARTS}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        **facts,
        "items": len(pairs),
        "class_names": list(pairs.class_names),
        "split": {"name": split.name, **parts},
        "splits": splits,
        "files": {name: sha256(folder / name) for name in files},
    }
    write_json(folder / MANIFEST, manifest)
    return manifest


def _write_column(folder: Path, name: str, column: Any) -> str:
    """Write a matrix, and return the name of its file."""
    file_name = f"{name}.npz" if sparse.issparse(column) else f"{name}.npy"
    with atomic(folder / file_name) as file:
        if sparse.issparse(column):
            sparse.save_npz(file, column)
        else:
            np.save(file, column, allow_pickle=False)
    return file_name


def is_prepared(folder: Path) -> bool:
    """Whether a folder contains finished prepared pairs of any version."""
    return (folder / ITEMS).is_file() and (folder / MANIFEST).is_file()


def prepared_note(manifest: Mapping[str, Any]) -> str:
    """A sentence that names the benchmark and its split."""
    return (
        f"{manifest['benchmark']} with the split {manifest['split']['name']!r}, seed {manifest['protocol']['seed']}, "
        f"SHA-256 {manifest['splits'][SPLIT]}"
    )


def read_prepared(folder: Path, skip: Collection[Role] = ()) -> tuple[Pairs, Split, dict[str, Any]]:
    """Read prepared pairs except the skipped roles, with their split and manifest."""
    path = folder / MANIFEST
    manifest = checked_format(read_json(path), path, name=FORMAT, version=VERSION, hint="prepare the pairs again")
    missing = [name for name in (*manifest["files"], SPLIT) if not (folder / name).is_file()]
    if missing:
        raise DataError(f"{folder} lacks {', '.join(missing)}; restore it or prepare the pairs again.")
    try:
        items = parquet.read_table(folder / ITEMS)
    except pa.ArrowException as error:
        raise FormatError(f"{folder / ITEMS} is damaged ({error}); restore it or prepare the pairs again.") from error
    columns = {role: _read_column(folder, role, items, manifest) for role in RAW if role not in skip}
    masks = {f"has_{RAW[role]}": items[f"has_{RAW[role]}"].to_numpy() for role in columns if columns[role] is not None}
    labelled = LABELS in manifest["files"] and "labels" not in skip
    pairs = Pairs(
        ids=_strings(items, "id"),
        labels=_read_file(folder / LABELS) if labelled else None,
        class_names=tuple(manifest["class_names"]) if labelled else (),
        source=str(folder),
        **columns,
        **masks,
    )
    return pairs, Split.load(folder / SPLIT, pairs.ids), manifest


def _read_column(folder: Path, role: str, items: Any, manifest: Mapping[str, Any]) -> Any:
    """A modality, raw from the items or as features from its file, or None."""
    if RAW[role] in items.column_names:
        return _strings(items, RAW[role])
    names = [name for name in manifest["files"] if Path(name).stem == role]
    return _read_file(folder / names[0]) if names else None


def _read_file(path: Path) -> Any:
    (matrix,) = list_matrices(path)
    return read_matrix(matrix)


def _strings(items: Any, name: str) -> Any:
    return items[name].to_numpy().astype(np.str_)
