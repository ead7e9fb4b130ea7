"""Multi-hot labels: their packed form in files, how often each class occurs, and labels as vectors of length 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmsh.errors import DataError

if TYPE_CHECKING:
    from rmsh.types import LabelArray, PackedArray, ScoreArray

__all__ = ["class_frequency", "pack_labels", "unit_labels", "unpack_labels"]


def pack_labels(labels: LabelArray) -> PackedArray:
    """Pack 0/1 labels (n, classes) into bytes (n, ceil(classes / 8)), class 0 in the most significant bit.

    Example:
        >>> pack_labels(np.array([[1, 0, 1]], dtype=np.uint8))
        array([[160]], dtype=uint8)
    """
    return np.packbits(labels, axis=1, bitorder="big")


def unpack_labels(packed: PackedArray, classes: int) -> LabelArray:
    """Undo :func:`pack_labels`.

    Raises:
        DataError: the bytes are not as wide as this number of classes needs.

    Example:
        >>> unpack_labels(np.array([[160]], dtype=np.uint8), 3)
        array([[1, 0, 1]], dtype=uint8)
    """
    if packed.dtype != np.uint8 or packed.ndim != 2 or packed.shape[1] != -(-classes // 8):
        raise DataError(
            f"Packed labels of dtype {packed.dtype} and shape {packed.shape} were given; {classes} classes need uint8 "
            f"of shape (n, {-(-classes // 8)})."
        )
    return np.unpackbits(packed, axis=1, count=classes, bitorder="big")


def class_frequency(labels: LabelArray) -> ScoreArray:
    """The part of all items that has each class, float64 (classes,); zeros where there are no items.

    Example:
        >>> class_frequency(np.array([[1, 0], [1, 1]], dtype=np.uint8))
        array([1. , 0.5])
    """
    counts: ScoreArray = labels.sum(axis=0, dtype=np.float64)
    return counts / max(len(labels), 1)


def unit_labels(labels: LabelArray) -> ScoreArray:
    """Labels as vectors of length 1, float64 (n, C); none stay zero.

    Example:
        >>> unit_labels(np.array([[1, 1, 1, 1], [0, 0, 0, 0]], dtype=np.uint8)).tolist()
        [[0.5, 0.5, 0.5, 0.5], [0.0, 0.0, 0.0, 0.0]]
    """
    lengths = np.sqrt(np.maximum(labels.sum(axis=1, keepdims=True), 1))
    return np.asarray(labels / lengths)
