"""Entropies of multi-hot labels, in bits: of the labels themselves, and of the similarities an item has to others.

What the bounds need to know of a set of labels, worked out once for all code lengths.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from scipy.special import entr

from rmsh.core.errors import ConfigError, DataError, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rmsh.core.types import IntArray, LabelArray, ScoreArray

LabelEntropyForm: TypeAlias = Literal["independent", "joint"]
SimilarityForm: TypeAlias = Literal["size", "log2", "literal"]

# Overlaps counted at a time by the literal form: about 25 MB of working memory.
BLOCK_ENTRIES = 1 << 21


def check_form(form: str, allowed: tuple[str, ...]) -> None:
    """Refuse a name that is none of the allowed ones."""
    if form not in allowed:
        raise ConfigError(f"The form {form!r} is unknown; choose one of {', '.join(map(repr, allowed))}.")


def binary_entropy(p: ArrayLike) -> ScoreArray:
    """H2(p) = -p log2 p - (1-p) log2 (1-p) in bits, with 0 log 0 = 0.

    Args:
        p: probabilities, any shape.

    Returns:
        float64 of the same shape.

    Raises:
        InputError: a value is not in [0, 1].

    Example:
        >>> binary_entropy([0, 0.25, 0.5, 1]).round(4)
        array([0.    , 0.8113, 1.    , 0.    ])
    """
    values = np.asarray(p, dtype=np.float64)
    wrong = ~((values >= 0) & (values <= 1))  # this way round, so that nan is wrong too
    if wrong.any():
        raise InputError(f"The probability {values[wrong].flat[0]} was given; it must be from 0 to 1.")
    return np.asarray((entr(values) + entr(1 - values)) / math.log(2))


def inverse_binary_entropy(entropy: float) -> float:
    """The p in [0, 1/2] with H2(p) = entropy, by bisection.

    Args:
        entropy: bits, from 0 to 1.

    Raises:
        InputError: the entropy is not in [0, 1].

    Example:
        >>> round(inverse_binary_entropy(0.8112781244591328), 9)
        0.25
    """
    if not 0 <= entropy <= 1:
        raise InputError(f"An entropy of {entropy} bits was given; one bit has an entropy from 0 to 1.")
    low, high = 0.0, 0.5
    for _ in range(60):  # halves the interval to below the resolution of a float
        middle = (low + high) / 2
        low, high = (middle, high) if binary_entropy(middle) <= entropy else (low, middle)
    return low


def label_entropy(labels: LabelArray, form: LabelEntropyForm = "independent") -> float:
    """H(L), the bits it takes to say which labels an item has.

    ``independent``, the paper's, adds the entropies of the classes as if they knew nothing of each other: it is never
    below the joint one. ``joint`` is the entropy of the distinct label sets as often as they occur; it is estimated
    from counts ("plug-in"), so it is biased low: n items show at most log2 n bits.

    Args:
        labels: 0/1 (n, classes), n at least 1.
        form: ``independent`` or ``joint``.

    Example:
        >>> labels = np.array([[1, 1], [1, 1], [0, 0], [0, 0]], dtype=np.uint8)
        >>> label_entropy(labels), label_entropy(labels, "joint")
        (2.0, 1.0)
    """
    check_form(form, get_args(LabelEntropyForm))
    if form == "independent":
        return float(binary_entropy(labels.mean(axis=0)).sum())
    _, _, counts = _distinct_rows(labels)
    return float(entr(counts / len(labels)).sum() / math.log(2))


def _distinct_rows(labels: LabelArray) -> tuple[IntArray, IntArray, IntArray]:
    """Where each distinct row is first, which of them each row is, and how often each occurs."""
    packed = np.packbits(labels, axis=1)  # an eighth of the bytes to sort
    _, first, inverse, counts = np.unique(packed, axis=0, return_index=True, return_inverse=True, return_counts=True)
    return first, inverse.ravel(), counts


def similarity_entropy(labels: LabelArray, form: SimilarityForm = "size") -> ScoreArray:
    """H_i of each item i with label set l_i: the bits it takes to say how similar another item is to it.

    ``size`` is |l_i|, what the paper puts in place of H_i. ``log2`` is log2 |l_i|, the entropy of |l_i| equally
    likely levels. ``literal`` is the paper's estimator::

        H_i = - sum over j = 1..|l_i| of p_j log2 p_j,    p_j = p(s_i = j / |l_i|)

    where p_j is counted among the items whose label set is not larger than l_i: with S = |l_i & l| / max(|l_i|, |l|),
    these are the items for which |l_i & l| = S |l_i|, the printed denominator. (As printed, the denominator also counts
    larger label sets that share nothing with l_i, and the numerator larger ones whose S happens to be j / |l_i|; both
    are left out here, so that the p_j are probabilities.) Items that share nothing are in the denominator.

    Args:
        labels: 0/1 (n, classes), at least one label an item.
        form: ``size``, ``log2`` or ``literal``.

    Returns:
        float64 (n,).

    Raises:
        InputError: an item has no label.

    Example:
        >>> labels = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1]], dtype=np.uint8)
        >>> similarity_entropy(labels), similarity_entropy(labels, "log2")
        (array([2., 1., 2., 1.]), array([1., 0., 1., 0.]))
        >>> similarity_entropy(labels, "literal")  # the first: one of 4 shares 2 labels, two share 1
        array([1. , 0.5, 1. , 0.5])
    """
    check_form(form, get_args(SimilarityForm))
    sizes: IntArray = labels.sum(axis=1, dtype=np.int64)
    if not sizes.all():
        row = int(np.flatnonzero(sizes == 0)[0])
        raise InputError(f"The item in row {row} has no label; leave out items without labels.")
    if form == "size":
        return sizes.astype(np.float64)
    return np.asarray(np.log2(sizes)) if form == "log2" else _literal_entropy(labels)


def _literal_entropy(labels: LabelArray) -> ScoreArray:
    """The paper's estimator, once a distinct label set: 57,000 COCO items have 13,000."""
    first, inverse, counts = _distinct_rows(labels)
    rows = labels[first]
    sizes = rows.sum(axis=1, dtype=np.int64)
    entropies = np.empty(len(rows))
    for size in np.unique(sizes):
        not_larger = sizes <= size
        others, weights = rows[not_larger], counts[not_larger].astype(np.float64)
        for block in _blocks(np.flatnonzero(sizes == size), len(others)):
            overlaps = _overlap_counts(rows[block], others, weights)
            # Column 0, nothing shared, is part of the total but not of the sum.
            entropies[block] = entr(overlaps[:, 1:] / weights.sum()).sum(axis=1) / math.log(2)
    return np.asarray(entropies[inverse])


def _blocks(rows: IntArray, columns: int) -> Iterator[IntArray]:
    """The rows in parts that keep a (part, columns) matrix within BLOCK_ENTRIES."""
    step = max(1, BLOCK_ENTRIES // columns)
    return (rows[start : start + step] for start in range(0, len(rows), step))


def _overlap_counts(rows: LabelArray, others: LabelArray, weights: ScoreArray) -> ScoreArray:
    """How many of the others share 0, 1, ... labels with each row, float64 (rows, classes + 1)."""
    # float32 for the fast product; it is exact for whole numbers up to 2**24
    shared = (rows.astype(np.float32) @ others.T.astype(np.float32)).astype(np.int64)
    return np.stack([np.bincount(row, weights, minlength=rows.shape[1] + 1) for row in shared])


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
