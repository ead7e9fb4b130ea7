"""Pairs: items with a picture, a text and labels, any of which may be missing. The value that all data becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from scipy import sparse

from rmsh.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.types import BitArray, Features, IdArray, IntArray, LabelArray, Modality

__all__ = ["Column", "Pairs", "is_raw"]

# What one modality of all items is: features (dense float32 or CSR), or raw strings (paths of pictures, texts).
Column: TypeAlias = "Features | NDArray[np.str_]"


def is_raw(column: Column) -> bool:
    """Whether a column holds paths or texts, not features."""
    return isinstance(column, np.ndarray) and column.dtype.kind == "U"


@dataclass(frozen=True, eq=False)
class Pairs:
    """n items in a fixed order.

    An item without a picture (or text) has False in ``has_image`` (``has_text``) and an arbitrary row in the column.
    An item whose labels are all zero has no labels: it is relevant to nothing, and supervised methods skip it.

    Args:
        ids: (n,) unique strings.
        images: features (n, d) or paths (n,), or None where no item has a picture.
        texts: features (n, d) or texts (n,), or None.
        labels: 0/1 (n, classes), or None.
        class_names: one name a column of ``labels``; "class 0" and so on where not given.
        has_image: (n,) which items have a picture; all, where not given.
        has_text: (n,) which items have a text; all, where not given.
        source: what an error message calls this data, such as a file.

    Raises:
        DataError: the message names the source, the row or column, what was expected and what to do.

    Example:
        >>> pairs = Pairs(ids=["a", "b"], images=np.eye(2), labels=np.array([[1, 0], [0, 0]]))
        >>> len(pairs), pairs.labelled, pairs.class_names
        (2, array([ True, False]), ('class 0', 'class 1'))
    """

    ids: IdArray
    images: Column | None = None
    texts: Column | None = None
    labels: LabelArray | None = None
    class_names: tuple[str, ...] = ()
    has_image: BitArray = None  # type: ignore[assignment]  # filled in by __post_init__
    has_text: BitArray = None  # type: ignore[assignment]
    source: str = "pairs"

    def __post_init__(self) -> None:
        ids = _checked_ids(self.ids, self.source)
        checked: dict[str, Any] = {"ids": ids}
        for name, mask_name in (("images", "has_image"), ("texts", "has_text")):
            column, mask = getattr(self, name), getattr(self, mask_name)
            checked[name] = None if column is None else _checked_column(column, len(ids), f"{self.source}: {name}")
            checked[mask_name] = _checked_mask(mask, column is not None, len(ids), f"{self.source}: {mask_name}")
        checked["labels"] = None if self.labels is None else _checked_labels(self.labels, len(ids), self.source)
        checked["class_names"] = _checked_names(self.class_names, checked["labels"], self.source)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def labelled(self) -> BitArray:
        """(n,) which items have at least one label."""
        if self.labels is None:
            return np.zeros(len(self), dtype=np.bool_)
        return np.asarray(self.labels.any(axis=1))

    def has(self, modality: Modality) -> BitArray:
        """(n,) which items have this modality."""
        return self.has_image if modality == "image" else self.has_text

    def column(self, modality: Modality) -> Column | None:
        """The column of a modality, raw or features."""
        return self.images if modality == "image" else self.texts

    def features(self, modality: Modality) -> Features:
        """The feature matrix of a modality.

        Raises:
            DataError: the modality is absent or still raw.
        """
        column = self.column(modality)
        if column is None:
            raise DataError(f"{self.source}: no item has {_an(modality)}; features of that modality are needed here.")
        if is_raw(column):
            raise DataError(
                f"{self.source}: the {modality}s are raw, features are needed here; run them through an encoder first "
                f"(--{modality}-encoder on the command line)."
            )
        return cast("Features", column)

    def take(self, rows: IntArray | BitArray) -> Pairs:
        """The items of some rows, in the order of ``rows``."""

        def pick(value: Any) -> Any:
            return None if value is None else value[rows]

        return replace(
            self,
            ids=self.ids[rows],
            images=pick(self.images),
            texts=pick(self.texts),
            labels=pick(self.labels),
            has_image=self.has_image[rows],
            has_text=self.has_text[rows],
        )

    def with_column(self, modality: Modality, column: Column) -> Pairs:
        """The same items with another column for a modality, such as features in place of raw texts."""
        return replace(self, images=column) if modality == "image" else replace(self, texts=column)


def _an(modality: Modality) -> str:
    return "an image" if modality == "image" else "a text"


def _checked_ids(ids: IdArray | Sequence[str], source: str) -> IdArray:
    array = np.asarray(ids, dtype=np.str_) if len(ids) else np.empty(0, dtype=np.str_)
    if array.ndim != 1:
        raise DataError(f"{source}: ids of shape {array.shape} were given; give one string an item.")
    unique, first, counts = np.unique(array, return_index=True, return_counts=True)
    if len(unique) != len(array):
        name = unique[counts > 1][np.argmin(first[counts > 1])]
        rows = np.flatnonzero(array == name)[:2]
        raise DataError(f"{source}: rows {rows[0]} and {rows[1]} both have the id {str(name)!r}; ids must differ.")
    return array


def _checked_column(column: Any, n: int, source: str) -> Column:
    values: Any
    if sparse.issparse(column):
        values = sparse.csr_array(column, dtype=np.float32)
        finite_rows = None if np.isfinite(values.data).all() else values
    else:
        values = np.asarray(column)
        if values.dtype.kind == "O" and all(isinstance(value, str) for value in values.flat):
            values = values.astype(np.str_)
        if values.dtype.kind == "U":
            finite_rows = None
        elif values.dtype.kind in "fiub":
            values = values.astype(np.float32, copy=False)
            finite_rows = None if np.isfinite(values).all() else values
        else:
            raise DataError(
                f"{source}: values of dtype {values.dtype} were given; give numbers, or strings for raw items."
            )
    wanted = 1 if is_raw(values) else 2
    if values.ndim != wanted or values.shape[0] != n:
        shape = f"({n},)" if wanted == 1 else f"({n}, features)"
        raise DataError(
            f"{source}: the shape is {values.shape}, but there are {n} items; {shape} is expected. Check that all "
            "matrices hold the same items, one a row."
        )
    if wanted == 2 and values.shape[1] == 0:
        raise DataError(f"{source}: the matrix has no columns; at least one feature is needed.")
    if finite_rows is not None:
        row, col = _first_not_finite(finite_rows)
        raise DataError(f"{source}: row {row}, column {col} is not a finite number; remove the item or mend the value.")
    return cast("Column", values)


def _first_not_finite(values: Any) -> tuple[int, int]:
    if sparse.issparse(values):
        entry = int(np.flatnonzero(~np.isfinite(values.data))[0])
        return int(np.searchsorted(values.indptr, entry, side="right") - 1), int(values.indices[entry])
    row, col = np.argwhere(~np.isfinite(values))[0]
    return int(row), int(col)


def _checked_mask(mask: BitArray | None, present: bool, n: int, source: str) -> BitArray:
    if mask is None:
        return np.full(n, present, dtype=np.bool_)
    array = np.asarray(mask)
    if array.dtype != np.bool_ or array.shape != (n,):
        raise DataError(f"{source}: {array.dtype} of shape {array.shape} was given; give one True or False an item.")
    if not present and array.any():
        raise DataError(
            f"{source}: {int(array.sum())} items are said to have this modality, but its column is missing."
        )
    return array


def _checked_labels(labels: Any, n: int, source: str) -> LabelArray:
    array = np.asarray(labels.todense() if sparse.issparse(labels) else labels)
    if array.ndim != 2 or array.shape[0] != n:
        raise DataError(
            f"{source}: labels of shape {array.shape} were given for {n} items; give 0/1 of shape ({n}, classes)."
        )
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        row, col = (int(v) for v in np.argwhere(wrong)[0])
        raise DataError(
            f"{source}: labels hold {array[row, col]!s} at row {row}, column {col}; labels are 0 or 1 "
            "(class numbers must be turned into one column a class)."
        )
    return array.astype(np.uint8)


def _checked_names(names: Sequence[str], labels: LabelArray | None, source: str) -> tuple[str, ...]:
    classes = 0 if labels is None else labels.shape[1]
    if not len(names):
        return tuple(f"class {c}" for c in range(classes))
    if len(names) != classes:
        raise DataError(
            f"{source}: {len(names)} class names were given for {classes} label columns; give one a column."
        )
    return tuple(str(name) for name in names)
