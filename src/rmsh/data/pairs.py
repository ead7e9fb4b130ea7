"""Pairs: items with an image, a text and labels, any of which may be missing; every reader returns them.

The constructor checks each column and names the rows that are wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rmsh.core.errors import DataError
from rmsh.core.types import BitArray, Features, FloatArray, IdArray, IntArray, LabelArray, Modality

# One modality of all items: features (dense float32 or CSR), or raw strings (paths of images, texts).
Column: TypeAlias = "Features | NDArray[np.str_]"

MOST_PROBLEMS = 10
CHECKED_TOGETHER = 1 << 16  # numbers that fit the processor's cache
ROWS_TOGETHER = 64  # rows that fit the processor's cache


def is_raw(column: Column) -> bool:
    """Whether a column contains paths or texts rather than features."""
    return isinstance(column, np.ndarray) and column.dtype.kind == "U"


def listed(problems: Iterable[object], *, most: int = MOST_PROBLEMS) -> str:
    """The first ten problems, or ``most``, and the number of further ones."""
    texts = [str(problem) for problem in problems]
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")


def checked_ids(ids: IdArray | Sequence[str], source: str) -> IdArray:
    """IDs as an array of unique strings (n,)."""
    array = np.asarray(ids, dtype=np.str_) if len(ids) else np.empty(0, dtype=np.str_)
    if array.ndim != 1:
        raise DataError(f"{source}: got ids of shape {array.shape}; give one string per item.")
    unique, inverse, counts = np.unique(array, return_inverse=True, return_counts=True)
    if len(unique) != len(array):
        repeated = np.flatnonzero(counts[inverse] > 1)
        rows = (f"row {row} ({str(array[row])!r})" for row in repeated)
        raise DataError(f"{source}: the ids of these rows occur more than once: {listed(rows)}; ids must be unique.")
    return array


def checked_column(column: Any, n: int, source: str) -> Column:
    """A column of ``n`` items: float32 features (n, d), dense or CSR, or strings (n,)."""
    values: Any = column if sparse.issparse(column) else np.asarray(column)
    if values.dtype.kind in "fiub":
        as_float32 = sparse.csr_array if sparse.issparse(values) else np.ascontiguousarray
        with np.errstate(over="ignore"):  # a number beyond the range of float32 becomes infinite and is refused below
            values, shape = as_float32(values, dtype=np.float32), f"({n}, features)"
    elif values.dtype.kind == "U" or (values.dtype == object and all(isinstance(value, str) for value in values.flat)):
        values, shape = values.astype(np.str_, copy=False), f"({n},)"
    else:
        raise DataError(f"{source}: got values of dtype {values.dtype}; give numbers, or strings for raw items.")
    if values.ndim != (1 if is_raw(values) else 2) or values.shape[0] != n:
        raise DataError(f"{source}: the shape is {values.shape}, but there are {n} items; {shape} is expected.")
    if not is_raw(values):
        _check_features(values, source)
    return cast("Column", values)


def _check_features(values: Features, source: str) -> None:
    if values.shape[1] == 0:
        raise DataError(f"{source}: the matrix has no columns; at least one feature is needed.")
    flat = values.reshape(-1) if isinstance(values, np.ndarray) else values.data
    blocks = np.split(flat, range(CHECKED_TOGETHER, len(flat), CHECKED_TOGETHER))
    if all(np.isfinite(block).all() for block in blocks):
        return
    places = np.flatnonzero(~np.isfinite(flat))
    if isinstance(values, np.ndarray):
        rows, columns = np.divmod(places, values.shape[1])
    else:
        rows, columns = np.searchsorted(values.indptr, places, side="right") - 1, values.indices[places]
    rows, first = np.unique(rows, return_index=True)
    cells = (f"row {row}, column {column}" for row, column in zip(rows, columns[first], strict=True))
    raise DataError(f"{source}: these values are not finite 32-bit numbers: {listed(cells)}; correct them.")


def checked_mask(mask: BitArray | None, present: bool, n: int, source: str) -> BitArray:
    """The mask of ``n`` items that have a modality; without a mask, all if the column is present, else none."""
    if mask is None:
        return np.full(n, present, dtype=np.bool_)
    array = np.asarray(mask)
    if array.dtype != np.bool_ or array.shape != (n,):
        raise DataError(f"{source}: got {array.dtype} of shape {array.shape}; give one True or False per item.")
    if not present and array.any():
        raise DataError(f"{source}: {int(array.sum())} items are marked as present, but the column is missing.")
    return array


def checked_labels(labels: Any, n: int, source: str) -> LabelArray:
    """Labels of ``n`` items as uint8 0/1 (n, classes)."""
    array = labels.toarray() if sparse.issparse(labels) else np.asarray(labels)
    if array.dtype.kind not in "fiub":
        raise DataError(f"{source}: got labels of dtype {array.dtype}; give 0 and 1, one column per class.")
    if array.ndim != 2 or array.shape[0] != n:
        raise DataError(f"{source}: got labels of shape {array.shape} for {n} items; give 0/1 of shape ({n}, classes).")
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        rows = np.flatnonzero(wrong.any(axis=1))
        first = zip(rows, wrong[rows].argmax(axis=1), strict=True)
        cells = (f"row {row}, column {column} ({array[row, column]!s})" for row, column in first)
        raise DataError(f"{source}: labels must be 0 or 1, one column per class, but these are not: {listed(cells)}.")
    return array.astype(np.uint8, copy=False)


def checked_names(names: Sequence[str], labels: LabelArray | None, source: str) -> tuple[str, ...]:
    """One name per label column; "class 0" and so on by default."""
    classes = 0 if labels is None else labels.shape[1]
    if not len(names):
        return tuple(f"class {c}" for c in range(classes))
    if len(names) != classes:
        raise DataError(f"{source}: got {len(names)} class names for {classes} label columns; give one per column.")
    return tuple(str(name) for name in names)


def dense_rows(features: Features, rows: IntArray) -> FloatArray:
    """The given rows as a dense float32 array.

    Example:
        >>> dense_rows(sparse.csr_array(np.eye(3, dtype=np.float32)), np.array([2]))
        array([[0., 0., 1.]], dtype=float32)
    """
    if sparse.issparse(features):
        return np.asarray(cast("Any", features)[rows].toarray(), dtype=np.float32)
    return np.take(np.asarray(features), rows, axis=0).astype(np.float32, copy=False)


def bag_of_words(rows: Sequence[Sequence[int]], words: int) -> Features:
    """CSR float32 (n, words) with ones at the columns that each row lists."""
    ends = np.cumsum([0, *map(len, rows)])
    columns = np.fromiter(chain.from_iterable(rows), dtype=np.int64)
    return sparse.csr_array((np.ones(len(columns), dtype=np.float32), columns, ends), shape=(len(rows), words))


def moments(features: Features) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each feature, float32 (d,); a sparse matrix stays sparse."""
    if sparse.issparse(features):
        matrix = cast("Any", features)
        mean = np.asarray(matrix.mean(axis=0, dtype=np.float64)).ravel()
        square = np.asarray(matrix.multiply(matrix).mean(axis=0, dtype=np.float64)).ravel()
        deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
    else:
        rows = np.asarray(features)
        # In blocks: a copy of everything in double precision would be twice as large as the features.
        blocks = [rows[start : start + ROWS_TOGETHER] for start in range(0, len(rows), ROWS_TOGETHER)]
        mean = sum((block.sum(axis=0, dtype=np.float64) for block in blocks), np.zeros(rows.shape[1])) / len(rows)
        squares = sum((np.square(block - mean).sum(axis=0) for block in blocks), np.zeros(rows.shape[1]))
        deviation = np.sqrt(squares / len(rows))
    return mean.astype(np.float32), deviation.astype(np.float32)


@dataclass(frozen=True, eq=False)
class Pairs:
    """n items in a fixed order.

    An item without an image (or text) has False in ``has_image`` (``has_text``) and an arbitrary row in the column.
    An item whose labels are all zero is unlabelled: it is relevant to no query, and supervised methods skip it.
    An invalid column raises a DataError that names the source and the row or column.

    Example:
        >>> pairs = Pairs(ids=["a", "b"], images=np.eye(2), labels=np.array([[1, 0], [0, 0]]))
        >>> len(pairs), pairs.labelled, pairs.class_names
        (2, array([ True, False]), ('class 0', 'class 1'))
    """

    ids: IdArray  # (n,) unique strings
    images: Column | None = None  # features (n, d) or paths (n,); None if no item has an image
    texts: Column | None = None  # features (n, d) or texts (n,)
    labels: LabelArray | None = None  # 0/1 (n, classes)
    class_names: tuple[str, ...] = ()  # one per column of the labels; "class 0" and so on by default
    # (n,) masks of the items with an image or a text, by default all of them
    has_image: BitArray = None  # type: ignore[assignment]  # filled in by __post_init__
    has_text: BitArray = None  # type: ignore[assignment]
    source: str = "pairs"  # the name of this data in error messages, such as a file

    def __post_init__(self) -> None:
        ids = checked_ids(self.ids, self.source)
        checked: dict[str, Any] = {"ids": ids}
        for name, mask_name in (("images", "has_image"), ("texts", "has_text")):
            column, mask = getattr(self, name), getattr(self, mask_name)
            checked[name] = None if column is None else checked_column(column, len(ids), f"{self.source}: {name}")
            checked[mask_name] = checked_mask(mask, column is not None, len(ids), f"{self.source}: {mask_name}")
        checked["labels"] = None if self.labels is None else checked_labels(self.labels, len(ids), self.source)
        checked["class_names"] = checked_names(self.class_names, checked["labels"], self.source)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def labelled(self) -> BitArray:
        """(n,) mask of the items with at least one label."""
        if self.labels is None:
            return np.zeros(len(self), dtype=np.bool_)
        return np.asarray(self.labels.any(axis=1))

    def has(self, modality: Modality) -> BitArray:
        """(n,) mask of the items with this modality."""
        return self.has_image if modality == "image" else self.has_text

    def column(self, modality: Modality) -> Column | None:
        """The column of a modality, raw or features, or None."""
        return self.images if modality == "image" else self.texts

    def features(self, modality: Modality) -> Features:
        """The feature matrix of a modality; DataError if it is absent or still raw."""
        column = self.column(modality)
        if column is None:
            one = "an image" if modality == "image" else "a text"
            raise DataError(f"{self.source}: no item has {one}; {modality} features are needed here.")
        if is_raw(column):
            raise DataError(f"{self.source}: the {modality}s are raw; encode them to features (--{modality}-encoder).")
        return cast("Features", column)

    def take(self, rows: IntArray | BitArray) -> Pairs:
        """The items of the given rows, in their order."""
        columns = ("ids", "images", "texts", "labels", "has_image", "has_text")
        present: dict[str, Any] = {name: values for name in columns if (values := getattr(self, name)) is not None}
        return replace(self, **{name: values[rows] for name, values in present.items()})

    def with_column(self, modality: Modality, column: Column) -> Pairs:
        """The same items with another column for a modality; if the modality was missing, all items have it now."""
        field, mask = ("images", "has_image") if modality == "image" else ("texts", "has_text")
        changed: dict[str, Any] = {field: column}
        if self.column(modality) is None:
            changed[mask] = None
        return replace(self, **changed)
