"""Pairs from matrix files: find the matrix of each role (images, texts, labels, ...), check that rows match, read."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rmsh.core.errors import DataError
from rmsh.data.pairs import Pairs, checked_column, checked_ids, checked_labels
from rmsh.data.readers.matrix_files import MatrixKey, Part, list_matrices, read_matrix
from rmsh.data.splits import Split

Role: TypeAlias = Literal["images", "texts", "labels", "ids", "class_names"]
ROLES: tuple[Role, ...] = get_args(Role)
BAG_DENSITY = 0.1  # a binary matrix with a smaller share of ones is a bag of words and is kept sparse

Selection: TypeAlias = Mapping[Role, Mapping[Part, MatrixKey]]  # "all", or the database (or "train") and the queries


def select_matrices(
    matrices: Sequence[MatrixKey], *, skip: Collection[Role] = (), source: str
) -> tuple[Selection, list[str]]:
    """A matrix, or its parts, for each role that is not skipped, by the meaning of keys; and notes on these guesses."""
    found: dict[Role, dict[Part, MatrixKey]] = {role: {} for role in ROLES}
    notes, unused = [], []
    for matrix in matrices:
        part, role = matrix.meaning or ("all", None)
        if role not in found or matrix.key.lower() in ("i", "t"):  # without a part, these letters may mean anything
            unused.append(f"{matrix} was not used")
        elif role in skip:
            continue
        elif len(matrix.shape) > 2:
            notes.append(f"{matrix} was skipped: it has {len(matrix.shape)} dimensions, like pixels; features have 2")
        elif clash := next((m for other, m in found[role].items() if part == other or "all" in (part, other)), None):
            raise DataError(f"Two keys match the {role}: {clash} and {matrix}; remove one of them.")
        else:
            found[role][part] = matrix
    superfluous = [parts.pop("train") for parts in found.values() if {"database", "train"} <= parts.keys()]
    notes += [
        f"{matrix} was skipped: training uses the database, which usually has these rows" for matrix in superfluous
    ]
    if not found["labels"]:
        found["class_names"].clear()
    # The parts of a role in the order of their type: the database or the training rows, then the queries.
    selected = {
        r: {part: parts[part] for part in get_args(Part) if part in parts} for r, parts in found.items() if parts
    }
    by_item = _by_item(selected)
    if not by_item:
        keys = f"the keys are {', '.join(map(str, matrices)) or 'none'}"
        raise DataError(f"{source}: no key is named like images, texts or labels; {keys}. Rename them.")
    if len({tuple(by_part) for by_part in by_item.values()}) > 1:
        shown = ", ".join(f"{role} for {' and '.join(by_part)}" for role, by_part in by_item.items())
        raise DataError(f"{source}: the matrices come in different parts ({shown}); all need the same parts.")
    notes += [f"{role} were taken from {matrix}" for role, parts in selected.items() for matrix in parts.values()]
    return selected, notes + unused


def _by_item(selected: Selection) -> Selection:
    """The matrices that have one row per item."""
    return {role: by_part for role, by_part in selected.items() if role != "class_names"}


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
