"""Pairs: items with a picture, a text and labels, any of which may be missing. The value that all data becomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rmsh.data.columns import (
    Column,
    checked_column,
    checked_ids,
    checked_labels,
    checked_mask,
    checked_names,
    is_raw,
)
from rmsh.errors import DataError

if TYPE_CHECKING:
    from rmsh.types import BitArray, Features, IdArray, IntArray, LabelArray, Modality

__all__ = ["Column", "Pairs", "is_raw"]


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
        """The same items with another column for a modality, such as features in place of raw texts.

        Where no column was, all items have the modality now.
        """
        field, mask = ("images", "has_image") if modality == "image" else ("texts", "has_text")
        changed: dict[str, Any] = {field: column}
        if self.column(modality) is None:
            changed[mask] = None
        return replace(self, **changed)


def _an(modality: Modality) -> str:
    return "an image" if modality == "image" else "a text"
