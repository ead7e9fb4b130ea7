"""Iterative quantisation (Gong and Lazebnik, CVPR 2011): the rotation after which signs lose least.

Minimises ||B - V R||^2 over binary B and R with orthonormal rows by turns: B = sgn(V R), then R by Procrustes. Where
there are more bits than dimensions, R is not square: its columns are directions that share the space evenly (a tight
frame), |V R| is |V| as before, and the same two updates hold. In a space of very few dimensions some of these bits
may coincide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rmsh.types import FloatArray, ScoreArray

__all__ = ["ITERATIONS", "iterative_quantisation", "procrustes", "signs"]

ITERATIONS = 50  # of the original


def signs(values: FloatArray) -> FloatArray:
    """-1 or 1, and 1 for 0, in the type of ``values``."""
    return np.where(values >= 0, 1, -1).astype(values.dtype)


def procrustes(products: ScoreArray) -> ScoreArray:
    """The matrix R (d, k), d <= k, with orthonormal rows for which <R, products> is largest.

    Example:
        >>> procrustes(np.array([[0.0, -2.0], [5.0, 0.0]])).round(6).tolist()
        [[0.0, -1.0], [1.0, 0.0]]
    """
    left, _, right = np.linalg.svd(products, full_matrices=False)
    return np.asarray(left @ right)


def iterative_quantisation(
    values: FloatArray, bits: int, *, rng: np.random.Generator, iterations: int = ITERATIONS
) -> tuple[ScoreArray, list[float]]:
    """Learn the rotation of centred values whose signs are the code.

    Args:
        values: V, float32 (n, d) with d <= bits.
        bits: the length of a code.
        rng: draws the first rotation.
        iterations: how many times both updates are made.

    Returns:
        R, float64 (d, bits), and the loss ||B - V R||^2 / n after each iteration, which never rises.
    """
    values = values.astype(np.float32, copy=False)
    rotation = procrustes(rng.standard_normal((values.shape[1], bits)))
    energy = float(np.square(values).sum(dtype=np.float64)) / len(values) + bits
    losses: list[float] = []
    for _ in range(iterations):
        codes = signs(values @ rotation.astype(np.float32))
        products = (values.T @ codes).astype(np.float64) / len(values)
        rotation = procrustes(products)
        losses.append(energy - 2 * float((rotation * products).sum()))
    return rotation, losses
