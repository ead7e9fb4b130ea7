"""Benchmarks as the community passes them on: matrices of features, tags and labels, rows in their maker's order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from rmsh.core.errors import DataError
from rmsh.data.benchmarks.mirflickr25k import TOPICS
from rmsh.data.benchmarks.published import Source
from rmsh.data.readers.feature_files import assemble_files
from rmsh.data.readers.matrices import SUFFIXES, places_in

FILE_NAMES = "fall"  # the key under which some files list the names of the pictures


def files_in(root: Path) -> list[Path]:
    """The matrix files of a folder and of the folders in it."""
    return sorted(path for pattern in ("*", "*/*") for path in root.glob(pattern) if path.suffix.lower() in SUFFIXES)


def read(root: Path) -> Source:
    """Read `mirflickr25k-*.mat`, `nus-wide-*.mat`, `FLICKR-25K.mat` and files like them; pixels are passed over.

    Raises:
        DataError: there are no labels, or the matrices do not fit each other.
    """
    files = files_in(root)
    names = [place.key for path in files for place in places_in(path) if place.key.lower() == FILE_NAMES]
    pairs, split, notes = assemble_files(files, {"ids": names[0]} if names else {}, source=str(root))
    labels = pairs.labels
    if labels is None:
        raise DataError(f"{root}: the matrices have no labels; a benchmark needs them. Add the file with LAll.")
    if names:
        pairs = replace(pairs, ids=np.array([_canonical_id(name) for name in pairs.ids]))
    if labels.shape[1] == len(TOPICS):
        pairs = replace(pairs, class_names=TOPICS)
        notes += ("the 24 label columns are taken for the topics of MIRFLICKR-25K in alphabetical order",)
    if split is not None:
        notes += ("the files come in parts; these were joined, and the split is drawn anew",)
    return Source(pairs, notes=notes, inputs=tuple(files), canonical_id=_canonical_id)


def _canonical_id(name: str) -> str:
    return name.rpartition("/")[2].removesuffix(".jpg")
