"""Feature matrices, dense or sparse: the few operations that have to know which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from rmsh.types import Features, FloatArray, IntArray

__all__ = ["dense_rows", "moments"]

_BLOCK = 64  # rows that stay in a processor's cache


def dense_rows(features: Features, rows: IntArray) -> FloatArray:
    """Some rows as a dense float32 array: how a batch leaves a sparse matrix.

    Example:
        >>> dense_rows(sparse.csr_array(np.eye(3, dtype=np.float32)), np.array([2]))
        array([[0., 0., 1.]], dtype=float32)
    """
    if sparse.issparse(features):
        return np.asarray(cast("Any", features)[rows].toarray(), dtype=np.float32)
    return np.take(np.asarray(features), rows, axis=0).astype(np.float32, copy=False)


def moments(features: Features) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each feature, float32 (d,); a sparse matrix is not made dense.

    Example:
        >>> moments(np.array([[0.0], [2.0]], dtype=np.float32))
        (array([1.], dtype=float32), array([1.], dtype=float32))
    """
    if sparse.issparse(features):
        matrix = cast("Any", features)
        mean = np.asarray(matrix.mean(axis=0, dtype=np.float64)).ravel()
        square = np.asarray(matrix.multiply(matrix).mean(axis=0, dtype=np.float64)).ravel()
        deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
    else:
        rows = np.asarray(features)
        # A block at a time: a copy of all in double precision would be twice as large as the features.
        blocks = [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]
        mean = sum((block.sum(axis=0, dtype=np.float64) for block in blocks), np.zeros(rows.shape[1])) / len(rows)
        squares = sum((np.square(block - mean).sum(axis=0) for block in blocks), np.zeros(rows.shape[1]))
        deviation = np.sqrt(squares / len(rows))
    return mean.astype(np.float32), deviation.astype(np.float32)
