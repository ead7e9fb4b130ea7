"""Prepared pairs: a folder with items, features, labels and splits, whose manifest is written last.

manifest.json                  what it is, how it came about, and the SHA-256 of every other file
items.parquet                  id, has_image, has_text; image (a path) and text where these are raw
labels.npy                     0/1 (n, classes)
images.npy, texts.npy          features where there are some; texts.npz where they are a sparse bag of words
split.json, validation.json    who is searched, who asks, who is learned from; and the same to choose options on
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from scipy import sparse

from rmsh.core.errors import DataError, FormatError, InputError
from rmsh.core.files import atomic, checked_format, read_json, sha256, write_json
from rmsh.data.pairs import Pairs, is_raw
from rmsh.data.readers.matrices import places_in, read_matrix
from rmsh.data.splits import Split, hold_out_validation

if TYPE_CHECKING:
    from rmsh.data.pairs import Column
    from rmsh.data.readers.matrix_roles import Role

FORMAT, VERSION = "rmsh-pairs", 1
MANIFEST, ITEMS, LABELS = "manifest.json", "items.parquet", "labels.npy"
SPLIT, VALIDATION = "split.json", "validation.json"
RAW = {"images": "image", "texts": "text"}  # the column of the items that holds a raw modality


def refuse_finished(folder: Path) -> None:
    """Refuse a folder that holds prepared pairs already."""
    if (folder / MANIFEST).exists():
        raise InputError(f"{folder} holds prepared pairs already; give another folder, or remove this one.")


def write_prepared(folder: Path, pairs: Pairs, split: Split, *, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Write pairs and their split, and return the manifest: ``facts`` with counts and hashes."""
    refuse_finished(folder)
    files: dict[str, Callable[[IO[bytes]], None]] = {ITEMS: lambda file: parquet.write_table(_items(pairs), file)}
    if pairs.labels is not None:
        files[LABELS] = _saver(pairs.labels)
    for role, column in (("images", pairs.images), ("texts", pairs.texts)):
        if column is not None and not is_raw(column):
            files[f"{role}.npz" if sparse.issparse(column) else f"{role}.npy"] = _saver(column)
    for name, write in files.items():
        with atomic(folder / name) as file:
            write(file)
    held = hold_out_validation(split)
    splits = {SPLIT: split.save(folder / SPLIT, pairs.ids), VALIDATION: held.save(folder / VALIDATION, pairs.ids)}
    parts = {part: len(getattr(split, part)) for part in ("database", "query", "train")}
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


def _items(pairs: Pairs) -> Any:
    columns = {"id": pairs.ids, "has_image": pairs.has_image, "has_text": pairs.has_text}
    raw = {RAW[role]: column for role, column in (("images", pairs.images), ("texts", pairs.texts)) if _is_raw(column)}
    return pa.table({name: pa.array(column) for name, column in (columns | raw).items()})


def _is_raw(column: Column | None) -> bool:
    return column is not None and is_raw(column)


def _saver(column: Any) -> Callable[[IO[bytes]], None]:
    if sparse.issparse(column):
        return lambda file: sparse.save_npz(file, column)
    return lambda file: np.save(file, column, allow_pickle=False)


def is_prepared(folder: Path) -> bool:
    """Whether a folder holds prepared pairs, whole and of whatever version."""
    return (folder / ITEMS).is_file() and (folder / MANIFEST).is_file()


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of prepared pairs.

    Raises:
        FormatError: it is damaged or of a newer version.
    """
    path = folder / MANIFEST
    return checked_format(read_json(path), path, name=FORMAT, version=VERSION, hint="prepare the pairs anew")


def prepared_note(manifest: Mapping[str, Any]) -> str:
    """A sentence that says whose split it is, for the user to read."""
    return (
        f"{manifest['benchmark']} with the split {manifest['split']['name']!r}, seed {manifest['protocol']['seed']}, "
        f"SHA-256 {manifest['splits'][SPLIT]}"
    )


def read_prepared(folder: Path, skip: Collection[Role] = ()) -> tuple[Pairs, Split, dict[str, Any]]:
    """Read prepared pairs but the skipped roles, with their split and manifest.

    Raises:
        FormatError: a file is damaged or of a newer version.
        DataError: a file is missing, or the files do not fit each other.
    """
    manifest = read_manifest(folder)
    missing = [name for name in (*manifest["files"], SPLIT) if not (folder / name).is_file()]
    if missing:
        raise DataError(
            f"{folder} lacks {', '.join(missing)}, which its manifest names; restore it or prepare it anew."
        )
    items = _read_items(folder / ITEMS)
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


def _read_items(path: Path) -> Any:
    try:
        return parquet.read_table(path)
    except pa.ArrowException as error:
        raise FormatError(f"{path} is damaged ({error}); restore it or prepare it anew.") from error


def _read_column(folder: Path, role: str, items: Any, manifest: Mapping[str, Any]) -> Any:
    """A modality, raw from the items or as features from its file; None where it is absent."""
    if RAW[role] in items.column_names:
        return _strings(items, RAW[role])
    names = [name for name in manifest["files"] if Path(name).stem == role]
    return _read_file(folder / names[0]) if names else None


def _read_file(path: Path) -> Any:
    (place,) = places_in(path)
    return read_matrix(place)


def _strings(items: Any, name: str) -> Any:
    return items[name].to_numpy().astype(np.str_)
