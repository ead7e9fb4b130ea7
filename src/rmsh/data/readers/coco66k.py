"""The coco66k folder: 61,903 MS COCO images with a caption and labels of 80 classes, split as in the paper."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rmsh.core.errors import DataError
from rmsh.core.types import FloatArray, LabelArray
from rmsh.data.labels import unpack_labels
from rmsh.data.pairs import Pairs, listed
from rmsh.data.readers.matrix_files import list_matrices, read_matrix
from rmsh.data.splits import Split

PAIRS, LABELS, IMAGE_FEATURES = "pairs.tsv", "labels.npz", "image_features.u8.npy"
HEADER = ("id", "split", "caption")
LARGEST_ROOT = 2.4454997  # the square root of the largest feature, stored as 255


def is_coco66k(folder: Path) -> bool:
    """Whether a folder has the files of coco66k; the image features may be missing."""
    return (folder / PAIRS).is_file() and (folder / LABELS).is_file()


def decompand(stored: NDArray[np.uint8]) -> FloatArray:
    """The features from their stored bytes: x = (byte / 255 * 2.4454997)^2, float32 of the same shape."""
    table = ((np.arange(256) / 255 * LARGEST_ROOT) ** 2).astype(np.float32)
    return table[stored]


def read_coco66k(root: Path, *, image_features: bool = True) -> tuple[Pairs, Split]:
    """Read pairs with raw captions, and their split; the database is also the training part.

    Image features are float32 (n, 1280), 317 MB; without ``image_features`` no item has an image.
    """
    for name in (PAIRS, LABELS) + ((IMAGE_FEATURES,) if image_features else ()):
        if not (root / name).is_file():
            raise DataError(f"{root} has no {name}; coco66k is a folder with {PAIRS}, {LABELS} and {IMAGE_FEATURES}.")
    ids, parts, captions = _read_pairs(root / PAIRS)
    labels, names = _read_labels(root / LABELS, ids)
    images = None
    if image_features:
        stored = read_matrix(*list_matrices(root / IMAGE_FEATURES))
        if stored.dtype != np.uint8 or stored.ndim != 2 or len(stored) != len(ids):
            found = f"{stored.dtype} of shape {stored.shape}; uint8 of shape ({len(ids)}, features) is expected"
            raise DataError(f"{root / IMAGE_FEATURES} has {found}, as {PAIRS} has {len(ids)} rows.")
        images = decompand(stored)
    pairs = Pairs(ids=ids, images=images, texts=captions, labels=labels, class_names=names, source=str(root))
    database, query = np.flatnonzero(parts == "database"), np.flatnonzero(parts == "query")
    return pairs, Split("coco66k", database, query, database)


def _read_pairs(path: Path) -> tuple[NDArray[np.str_], ...]:
    """Ids, parts and captions, each (n,)."""
    try:
        header, *lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a text file in UTF-8 ({error}); write it again.") from error
    if tuple(header.split("\t")) != HEADER:
        raise DataError(f"{path}, line 1 is {header[:80]!r}; the tab-separated header {', '.join(HEADER)} is expected.")
    rows = [line.split("\t") for line in lines]
    fit = (len(row) == len(HEADER) and row[1] in ("database", "query") for row in rows)
    wrong = [f"line {i} ({lines[i - 2][:40]!r})" for i, fits in enumerate(fit, start=2) if not fits]
    if wrong:
        raise DataError(f"{path}: an id, 'database' or 'query', and a caption are expected; found {listed(wrong)}.")
    return tuple(np.array([row[field] for row in rows], dtype=np.str_) for field in range(len(HEADER)))


def _read_labels(path: Path, ids: NDArray[np.str_]) -> tuple[LabelArray, tuple[str, ...]]:
    """Labels (n, classes) and class names, after comparing the IDs."""
    matrices = {matrix.key: matrix for matrix in list_matrices(path)}
    missing = [key for key in ("ids", "labels", "names") if key not in matrices]
    if missing:
        raise DataError(f"{path} has no key {missing[0]!r}, only {', '.join(map(repr, matrices))}; write it again.")
    label_ids, packed, names = (read_matrix(matrices[key]) for key in ("ids", "labels", "names"))
    if len(label_ids) != len(ids) or len(packed) != len(ids):
        found = f"{len(label_ids)} ids and {len(packed)} rows of labels"
        raise DataError(f"{path} has {found}, but {PAIRS} has {len(ids)} rows; both must have the same items.")
    differing = np.flatnonzero(label_ids.astype(np.str_) != ids)
    if differing.size:
        rows = (f"row {row} ({label_ids[row]}, not {ids[row]})" for row in differing)
        raise DataError(f"{path}, key 'ids' differs from {PAIRS} at {listed(rows)}; both must have the same order.")
    return unpack_labels(packed, len(names)), tuple(str(name) for name in names)
