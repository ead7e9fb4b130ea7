"""Linear algebra for methods without gradient descent: centred features, ridge, iterative quantisation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from scipy import sparse

from rmsh.core.types import Features, FloatArray, ScoreArray
from rmsh.hash_function import HashFunction, Layer

_ROWS = 2048  # rows per block
ITERATIONS = 50  # of iterative quantisation, as in the original


@dataclass(frozen=True, eq=False)
class Centred:
    """A feature matrix (n, d), dense or sparse, with its mean (d,) subtracted in every product.

    The matrix is never copied: products are computed one block of rows at a time, and only that block becomes dense.

    Example:
        >>> x = Centred.of(np.array([[0.0, 1.0], [2.0, 1.0]], dtype=np.float32))
        >>> x.mean, x.times(np.eye(2)).tolist(), x.transposed_times(np.ones((2, 1))).tolist()
        (array([1., 1.]), [[-1.0, 0.0], [1.0, 0.0]], [[0.0], [0.0]])
    """

    features: Features
    mean: ScoreArray

    @classmethod
    def of(cls, features: Features) -> Self:
        """Centre features by their own mean."""
        matrix = cast("Any", features) if sparse.issparse(features) else np.asarray(features)
        return cls(features, np.asarray(matrix.mean(axis=0, dtype=np.float64)).ravel())

    def __len__(self) -> int:
        return int(self.features.shape[0])

    @property
    def width(self) -> int:
        """The number of features d."""
        return len(self.mean)

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Row ranges with their dense float32 blocks, before the mean is subtracted."""
        for start in range(0, len(self), _ROWS):
            rows = slice(start, min(start + _ROWS, len(self)))
            block = self.features[rows]
            yield rows, np.asarray(cast("Any", block).toarray() if sparse.issparse(block) else block, dtype=np.float32)

    def times(self, weights: ScoreArray) -> FloatArray:
        """(x - mean) @ weights, float32 (n, k)."""
        product, shift = weights.astype(np.float32), (self.mean @ weights).astype(np.float32)
        return np.concatenate([block @ product - shift for _, block in self.blocks()])

    def transposed_times(self, values: ScoreArray | FloatArray) -> ScoreArray:
        """(x - mean).T @ values, float64 (d, k), for values (n, k)."""
        total = -np.outer(self.mean, values.sum(axis=0, dtype=np.float64))
        for rows, block in self.blocks():
            total += block.T @ values[rows].astype(np.float32)
        return total

    def linear_hash(self, weights: ScoreArray) -> HashFunction:
        """The hash function with values (x - mean) @ weights."""
        bias = -self.mean @ weights
        return HashFunction((Layer(weights.astype(np.float32), bias.astype(np.float32), "none"),))


def cross_products(x: Centred, y: Centred) -> ScoreArray:
    """The sum of x_i y_i^T over the items, float64 (d, d'): n times the covariance."""
    total = np.zeros((x.width, y.width))
    for (_, x_block), (_, y_block) in zip(x.blocks(), y.blocks(), strict=True):
        left = x_block - x.mean  # float64, because the result is inverted
        total += left.T @ (left if x is y else y_block - y.mean)
    return total


def ridge(products: ScoreArray, share: float) -> ScoreArray:
    """Add ``share`` of the mean diagonal to the diagonal of a square matrix, which makes it safe to invert."""
    level = max(float(np.trace(products)) / len(products), 1e-12)  # constant features give a zero matrix
    return products + share * level * np.eye(len(products))


def signs(values: FloatArray) -> FloatArray:
    """-1 or 1, and 1 for 0, in the dtype of ``values``."""
    return np.where(values >= 0, 1, -1).astype(values.dtype)


def procrustes(products: ScoreArray) -> ScoreArray:
    """The matrix R (d, k), d <= k, with orthonormal rows that maximises <R, products>.

    Example:
        >>> procrustes(np.array([[0.0, -2.0], [5.0, 0.0]])).round(6).tolist()
        [[0.0, -1.0], [1.0, 0.0]]
    """
    left, _, right = np.linalg.svd(products, full_matrices=False)
    return np.asarray(left @ right)


def iterative_quantisation(
    values: FloatArray, bits: int, *, seed: int, iterations: int = ITERATIONS
) -> tuple[ScoreArray, list[float]]:
    """Find the rotation R of centred values V that minimises ||B - V R||^2 over binary B (Gong, Lazebnik, CVPR 2011).

    Two updates alternate: B = sgn(V R), then R by Procrustes. With more bits than dimensions the columns of R form a
    tight frame, |V R| = |V| still holds, and the same updates apply; in very few dimensions some bits may coincide.

    Returns:
        R, float64 (d, bits) for values (n, d) with d <= bits, and the loss ||B - V R||^2 / n after each iteration,
        which never rises.
    """
    values = values.astype(np.float32, copy=False)
    rotation = procrustes(np.random.default_rng(seed).standard_normal((values.shape[1], bits)))
    energy = float(np.square(values).sum(dtype=np.float64)) / len(values) + bits
    losses: list[float] = []
    for _ in range(iterations):
        codes = signs(values @ rotation.astype(np.float32))
        products = (values.T @ codes).astype(np.float64) / len(values)
        rotation = procrustes(products)
        losses.append(energy - 2 * float((rotation * products).sum()))
    return rotation, losses
