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
from rmsh.data.readers.folder import check_parquet
from rmsh.data.readers.matrix_files import list_matrices, read_matrix
from rmsh.data.splits import PARTS, Split, hold_out_validation

if TYPE_CHECKING:
    from rmsh.data.readers.feature_files import Role

FORMAT, VERSION = "rmsh-pairs", 1
MANIFEST, ITEMS = "manifest.json", "items.parquet"
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
    files = [ITEMS]
    for name, column in columns.items():
        files.append(f"{name}.npz" if sparse.issparse(column) else f"{name}.npy")
        with atomic(folder / files[-1]) as file:
            if sparse.issparse(column):
                sparse.save_npz(file, column)
            else:
                np.save(file, column, allow_pickle=False)
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


def is_prepared(folder: Path) -> bool:
    """Whether a folder contains finished prepared pairs of any version."""
    return (folder / ITEMS).is_file() and (folder / MANIFEST).is_file()


def read_prepared(folder: Path, skip: Collection[Role] = ()) -> tuple[Pairs, Split, dict[str, Any]]:
    """Read prepared pairs except the skipped roles, with their split and manifest."""
    path = folder / MANIFEST
    manifest = checked_format(read_json(path), path, name=FORMAT, version=VERSION, hint="prepare the pairs again")
    missing = [name for name in (*manifest["files"], SPLIT) if not (folder / name).is_file()]
    if missing:
        raise DataError(f"{folder} lacks {', '.join(missing)}; restore it or prepare the pairs again.")
    try:
        check_parquet(parquet.read_metadata(folder / ITEMS), folder / ITEMS)
        items = parquet.read_table(folder / ITEMS)
    except pa.ArrowException as error:
        raise FormatError(f"{folder / ITEMS} is damaged ({error}); restore it or prepare the pairs again.") from error
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
    return pairs, Split.load(folder / SPLIT, pairs.ids), manifest
