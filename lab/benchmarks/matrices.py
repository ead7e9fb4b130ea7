"""Matrix files as a source: widely used files of a whole benchmark, and features for its published items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from lab.benchmarks.published import TOPICS, Source
from rmsh.core.errors import DataError
from rmsh.data.readers.matrix_files import (
    SUFFIXES,
    MatrixKey,
    Part,
    Role,
    list_matrices,
    matrix_files,
    read_matrix_pairs,
    read_selected,
)

if TYPE_CHECKING:
    from rmsh.core.types import IdArray, IntArray
    from rmsh.data.pairs import Column

FILE_NAMES_KEY = "fall"  # the key of file names as ids in some matrix files, in lower case


def matrix_files_below(root: Path) -> list[Path]:
    """The matrix files of a folder and of its subfolders."""
    return sorted(path for pattern in ("*", "*/*") for path in root.glob(pattern) if path.suffix.lower() in SUFFIXES)


def read_matrices(root: Path) -> Source:
    """Read matrices of features, tags and labels, such as mirflickr25k-*.mat; pixels are ignored."""
    files = matrix_files_below(root)
    pairs, split, notes = read_matrix_pairs(files, source=str(root))
    labels = pairs.labels
    if labels is None:
        raise DataError(f"{root}: the matrices have no labels, which a benchmark needs. Add the file with LAll.")
    if any(matrix.key.lower() == FILE_NAMES_KEY for matrix in list_matrices(*files)):
        pairs = replace(pairs, ids=np.array([_image_name(name) for name in pairs.ids]))
    if labels.shape[1] == len(TOPICS):
        pairs = replace(pairs, class_names=TOPICS)
        notes += ("the 24 label columns are assumed to be the topics of MIRFLICKR-25K in alphabetical order",)
    if split is not None:
        notes += ("the parts of the files were joined, and a new split is drawn",)
    return Source(pairs, notes=notes, inputs=tuple(files), canonical_id=_image_name)


def _image_name(name: str) -> str:
    return name.rpartition("/")[2].removesuffix(".jpg")


def read_features(
    text: str, role: Role, ids: IdArray, *, wanted: IntArray, canonical_id: Callable[[str], str]
) -> tuple[Column, str]:
    """Features (m, d) of the ``wanted`` rows of ``ids`` from "FILE" or "FILE:KEY", and a note on their origin.

    Rows are found by the IDs in the file, spelt as ``canonical_id`` returns them; a file without IDs must have one row
    for each of ``ids``, in their order.
    """
    matrix = locate(text, role)
    id_lists = [other for other in list_matrices(matrix.path) if other.meaning == ("all", "ids")]
    selected: dict[Role, dict[Part, MatrixKey]] = {role: {"all": matrix}}
    if id_lists:
        selected["ids"] = {"all": id_lists[0]}
    pairs, _ = read_selected(selected, matrix.where)
    column = cast("Column", pairs.images if role == "images" else pairs.texts)
    if id_lists:
        rows = rows_by_id((canonical_id(str(name)) for name in pairs.ids), ids[wanted], matrix.where)
        return column[rows], f"{role} are features from {matrix}, rows by id"
    if len(pairs) != len(ids):
        rows_found = f"has {len(pairs):,} rows without ids for {len(ids):,} items"
        raise DataError(
            f"{matrix.where} {rows_found}; add the key 'ids', or give one row per item in the published order."
        )
    return column[wanted], f"{role} are features from {matrix}, rows in the published order"


def locate(text: str, role: Role) -> MatrixKey:
    """The matrix named by "FILE" or "FILE:KEY"; FILE alone must have one matrix, or one with a name for the role."""
    file, colon, key = text.rpartition(":")
    # A drive letter has a colon too, so that the part before it must be a matrix file.
    path, key = (Path(file), key) if colon and Path(file).suffix.lower() in SUFFIXES else (Path(text), "")
    matrices = list_matrices(*matrix_files(path))
    if key:
        same = [matrix for matrix in matrices if matrix.key == key]
        same = same or [matrix for matrix in matrices if matrix.key.lower() == key.lower()]
        if len(same) == 1:
            return same[0]
        found = f"several keys match {key!r}: {_described(same)}" if same else f"there is no key {key!r}"
        raise DataError(f"{path}: {found}; the keys are {_described(matrices)}.")
    if len(matrices) == 1:
        return matrices[0]
    fitting = [matrix for matrix in matrices if matrix.meaning == ("all", role) and len(matrix.shape) == 2]
    if len(fitting) != 1:
        raise DataError(f"{path}: several keys may be the {role}: {_described(matrices)}. Write '{text}:KEY'.")
    return fitting[0]


def _described(matrices: Sequence[MatrixKey]) -> str:
    return ", ".join(map(str, matrices)) or "none"


def rows_by_id(ids: Iterable[object], wanted: Sequence[object] | IdArray, source: str) -> list[int]:
    """The rows at which the wanted IDs are found among ``ids``; DataError if one is missing."""
    row_of = {str(name): row for row, name in enumerate(ids)}
    missing = [str(name) for name in wanted if str(name) not in row_of]
    if missing:
        found = f"{len(missing):,} of {len(wanted):,} items have no row, such as {missing[0]!r}"
        raise DataError(f"{source}: {found}; add them.")
    return [row_of[str(name)] for name in wanted]
