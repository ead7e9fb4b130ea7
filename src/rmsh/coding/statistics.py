"""What the bounds need to know of a set of labels, worked out once for all code lengths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rmsh.coding.entropy import label_entropy, similarity_entropy
from rmsh.errors import DataError

if TYPE_CHECKING:
    from rmsh.coding.entropy import LabelEntropyForm, SimilarityForm
    from rmsh.types import LabelArray, ScoreArray

__all__ = ["LabelStatistics"]


@dataclass(frozen=True, eq=False)
class LabelStatistics:
    """The labels of the items that have some, with their entropies; what is costly is computed when first asked for.

    Args:
        labels: 0/1 (n, classes), at least one item and at least one label an item; :meth:`of` sees to that.
        without_labels: how many items were left out because they have no label.

    Example:
        >>> statistics = LabelStatistics.of(np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0]]))
        >>> statistics.items, statistics.without_labels, statistics.classes, statistics.labels_per_item
        (2, 1, 3, 1.5)
        >>> statistics.entropy("independent"), statistics.similarity("size")
        (1.0, array([2., 1.]))
    """

    labels: LabelArray
    without_labels: int

    @classmethod
    def of(cls, labels: LabelArray) -> LabelStatistics:
        """Take the items with labels and count the others.

        Args:
            labels: 0/1 (n, classes).

        Raises:
            DataError: the labels are not a 0/1 matrix, or no item has one.
        """
        array = np.asarray(labels)
        if array.ndim != 2 or not ((array == 0) | (array == 1)).all():
            raise DataError(f"Labels of shape {array.shape} were given; they must be 0 or 1, of shape (n, classes).")
        labelled = array.any(axis=1)
        if not labelled.any():
            raise DataError(f"None of {len(array)} items has a label; the bounds of delta follow from labels.")
        return cls(array[labelled].astype(np.uint8), int((~labelled).sum()))

    @property
    def items(self) -> int:
        """How many items have labels."""
        return len(self.labels)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return int(self.labels.shape[1])

    @property
    def labels_per_item(self) -> float:
        """E|l|, the mean number of labels of the items that have some."""
        return float(self.labels.sum() / self.items)

    def entropy(self, form: LabelEntropyForm) -> float:
        """H(L) in bits, see :func:`rmsh.coding.entropy.label_entropy`."""
        return self._joint if form == "joint" else label_entropy(self.labels, form)

    def similarity(self, form: SimilarityForm) -> ScoreArray:
        """H_i of each item (n,), see :func:`rmsh.coding.entropy.similarity_entropy`."""
        return self._literal if form == "literal" else similarity_entropy(self.labels, form)

    @cached_property
    def _joint(self) -> float:
        return label_entropy(self.labels, "joint")

    @cached_property
    def _literal(self) -> ScoreArray:
        return similarity_entropy(self.labels, "literal")
