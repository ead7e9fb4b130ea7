"""Pairs from matrix files: find the matrix of each role (images, texts, labels, ...), check that rows match, read.

The role of a matrix follows from its key, compared without case and punctuation. Published files call image features
XAll, pixels IAll, tags YAll, labels LAll and file names FAll; others come in parts, such as I_tr and I_te.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from scipy import sparse

from rmsh.core.errors import DataError
from rmsh.data.pairs import Pairs, checked_column, checked_ids, checked_labels
from rmsh.data.readers.matrix_files import MatrixKey, list_matrices, read_matrix
from rmsh.data.splits import Split

if TYPE_CHECKING:
    from numpy.typing import NDArray


Role: TypeAlias = Literal["images", "texts", "labels", "ids", "class_names"]
Part: TypeAlias = Literal["all", "database", "train", "query"]
ROLES: tuple[Role, ...] = get_args(Role)
BAG_DENSITY = 0.1  # a binary matrix with a smaller share of ones is a bag of words and is kept sparse

# A single letter is ambiguous unless it has an ending; only L alone always means labels.
_STEMS: dict[Role, tuple[str, ...]] = {
    "images": ("images", "image", "imgs", "img", "imagefeatures", "i"),
    "texts": ("texts", "text", "txt", "tags", "captions", "textfeatures", "t"),
    "labels": ("labels", "label", "l"),
    "ids": ("ids", "id"),
    "class_names": ("classnames", "names", "labelnames"),
}
_ENDINGS: dict[Part, tuple[str, ...]] = {
    "all": ("", "all"),
    "database": ("db", "database", "retrieval"),
    "train": ("tr", "train"),
    "query": ("te", "test", "query"),
}
_KNOWN_NAMES: dict[str, tuple[Role, Part]] = {
    stem + ending: (role, part)
    for role, stems in _STEMS.items()
    for part, endings in _ENDINGS.items()
    for stem in stems
    for ending in endings
    if stem + ending not in ("i", "t")
} | {"xall": ("images", "all"), "yall": ("texts", "all"), "fall": ("ids", "all")}


def role_of_key(key: str) -> tuple[Role, Part] | None:
    """The role and the part that a key's name implies, or None if it is unknown."""
    return _KNOWN_NAMES.get(re.sub(r"[^a-z0-9/]", "", key.lower()))


Selection: TypeAlias = Mapping[Role, Mapping[Part, MatrixKey]]  # "all", or the database (or "train") and the queries


def select_matrices(
    matrices: Sequence[MatrixKey], *, skip: Collection[Role] = (), source: str
) -> tuple[Selection, list[str]]:
    """Select a matrix, or its parts, for each role except the skipped ones, by well-known names.

    Also returns notes on what was guessed and what is not used.
    """
    notes: list[str] = []
    guessed = {role: _guess(matrices, role, notes) for role in ROLES if role not in skip}
    found = {role: by_part for role, by_part in guessed.items() if by_part}
    if "labels" not in found:
        found.pop("class_names", None)
    by_item = _by_item(found)
    if not by_item:
        keys = f"the keys are {_described(matrices)}"
        raise DataError(f"{source}: no key is named like images, texts or labels; {keys}. Rename them.")
    if len({tuple(by_part) for by_part in by_item.values()}) > 1:
        shown = ", ".join(f"{role} for {' and '.join(by_part)}" for role, by_part in by_item.items())
        raise DataError(f"{source}: the matrices come in different parts ({shown}); all need the same parts.")
    return found, notes + [f"{matrix} was not used" for matrix in matrices if role_of_key(matrix.key) is None]


def _by_item(selected: Selection) -> Selection:
    """The matrices that have one row per item."""
    return {role: by_part for role, by_part in selected.items() if role != "class_names"}


def _described(matrices: Sequence[MatrixKey]) -> str:
    return ", ".join(map(str, matrices)) or "none"


def _guess(matrices: Sequence[MatrixKey], role: Role, notes: list[str]) -> dict[Part, MatrixKey]:
    """The matrices whose names imply a role: one, or one each for the database and the queries."""
    found: dict[Part, MatrixKey] = {}
    for matrix in matrices:
        implied = role_of_key(matrix.key)
        if implied is None or implied[0] != role:
            continue
        if len(matrix.shape) > 2:
            notes.append(f"{matrix} was skipped: it has {len(matrix.shape)} dimensions, like pixels; features have 2")
            continue
        for other in found:
            if implied[1] == other or "all" in (implied[1], other):
                raise DataError(f"Two keys match the {role}: {found[other]} and {matrix}; remove one of them.")
        found[implied[1]] = matrix
    if "database" in found and "train" in found:
        notes.append(f"{found.pop('train')} was skipped: training uses the database, which usually has these rows")
    notes += [f"{role} were taken from {matrix}" for matrix in found.values()]
    return {part: found[part] for part in get_args(Part) if part in found}


def read_matrix_pairs(
    files: Sequence[Path], *, skip: Collection[Role] = (), source: str
) -> tuple[Pairs, Split | None, tuple[str, ...]]:
    """Pairs from matrix files, their split if the matrices come in parts, and notes on what was guessed."""
    selected, notes = select_matrices(list_matrices(*files), skip=skip, source=source)
    pairs, sizes = read_selected(selected, source)
    texts: Any = pairs.texts
    empty = np.count_nonzero(np.diff(texts.indptr) == 0) if sparse.issparse(texts) else 0
    if empty:
        notes.append(f"{empty:,} of {len(pairs):,} texts have no words")
    split = None
    if len(sizes) == 2:
        database, query = np.split(np.arange(len(pairs)), sizes[:1])
        split = Split(Path(source).stem, database, query, database)
    return pairs, split, tuple(notes)


def read_selected(selected: Selection, source: str) -> tuple[Pairs, list[int]]:
    """Pairs, and the number of items of each part; items without IDs are numbered."""
    by_item = _by_item(selected)
    parts = next(iter(by_item.values()))
    sizes = [_common_rows({role: by_part[part] for role, by_part in by_item.items()}, source) for part in parts]
    if not sum(sizes):
        raise DataError(f"{source}: the matrices have no rows; at least one item is needed.")
    columns: dict[str, Any] = {role: _read_parts(role, [*by_part.values()]) for role, by_part in selected.items()}
    return Pairs(**({"ids": np.arange(sum(sizes))} | columns), source=source), sizes


def _common_rows(matrices: Mapping[Role, MatrixKey], source: str) -> int:
    """The number of items, which must be the same in all matrices; a list of IDs may be a row or a column."""
    counts: dict[Role, int] = {}
    for role, matrix in matrices.items():
        if not matrix.shape:
            raise DataError(f"{matrix.where} is a single value; a matrix with one row per item is expected.")
        counts[role] = math.prod(matrix.shape) if role == "ids" else matrix.shape[0]
    if len(set(counts.values())) == 1:
        return counts.popitem()[1]
    shown = ", ".join(f"{counts[role]} of {role} ({matrix})" for role, matrix in matrices.items())
    widths = {matrix.shape[1:] for matrix in matrices.values()}
    rows = widths.pop() if len(widths) == 1 else counts.values()  # equal widths: all of them may be transposed
    turned = [matrix.where for matrix in matrices.values() if len(matrix.shape) == 2 and matrix.shape[1] in rows]
    raise DataError(
        f"{source}: the matrices have different numbers of rows: {shown}; each needs one row per item."
        + (f" Possibly transposed (features x items): {' and '.join(turned)}; transpose it." if turned else "")
    )


def _read_parts(role: Role, parts: Sequence[MatrixKey]) -> Any:
    columns = [_column(role, read_matrix(matrix), matrix.where) for matrix in parts]
    if len(columns) == 1:
        return columns[0]
    if len({column.shape[1:] for column in columns}) > 1:
        shown = " and ".join(map(str, parts))
        raise DataError(f"The parts of {role} have different widths: {shown}; all parts need the same features.")
    if any(sparse.issparse(column) for column in columns):
        return sparse.vstack(columns, format="csr")
    return np.concatenate(columns)


def _column(role: Role, matrix: Any, source: str) -> Any:
    if role == "class_names":
        return _strings(matrix, source)
    if role == "ids":
        return checked_ids(_strings(matrix, source), source)
    if role == "labels":
        return checked_labels(matrix, matrix.shape[0], source)
    if matrix.dtype.kind in "SU":
        return _strings(matrix, source)
    if role == "texts" and not sparse.issparse(matrix) and matrix.ndim == 2 and matrix.dtype.kind in "fiub":
        # A thin binary matrix is a bag of words.
        thin = np.count_nonzero(matrix) < BAG_DENSITY * matrix.size
        bag = sparse.csr_array(matrix) if thin else None
        matrix = bag if bag is not None and (bag.data == 1).all() else matrix
    return checked_column(matrix, matrix.shape[0], source)


def _strings(values: Any, source: str) -> NDArray[np.str_]:
    """A list of strings or integers, which MATLAB stores as a matrix of one row or column."""
    if sparse.issparse(values) or math.prod(values.shape) != max(values.shape, default=0):
        raise DataError(f"{source}: the shape is {values.shape}; a list of strings or integers is expected.")
    flat = values.ravel()
    if flat.dtype.kind == "S":
        try:
            return np.asarray(np.strings.decode(flat, "utf-8"))
        except UnicodeDecodeError as error:
            raise DataError(f"{source}: the strings are not valid UTF-8 ({error}); write them in UTF-8.") from error
    if flat.dtype.kind == "f" and np.isfinite(flat).all() and (flat == np.floor(flat)).all():
        flat = flat.astype(np.int64)
    if flat.dtype.kind not in "Uiu":
        raise DataError(f"{source}: the dtype is {values.dtype}; strings or integers are expected.")
    return np.asarray(flat, dtype=np.str_)
