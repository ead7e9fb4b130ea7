"""Kernel features: anchors to compare with, and logistic regression on the comparisons.

The kernel is Gaussian, exp(-|x - z|^2 / width) (``rmsh.hash_function.KernelLayer``). It depends on differences only,
so that features need no centring.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

if TYPE_CHECKING:
    from rmsh.types import FloatArray, ScoreArray

__all__ = ["Anchors", "choose_anchors", "kernel_logistic_regression", "mean_squared_distance"]

Anchors: TypeAlias = Literal["k-means", "random"]


def mean_squared_distance(features: FloatArray) -> float:
    """The mean of |x_i - x_j|^2 over all pairs of rows, an item and itself included: twice the total variance.

    Example:
        >>> mean_squared_distance(np.array([[0.0], [2.0]], dtype=np.float32))
        2.0
    """
    return 2 * float(np.var(features, axis=0, dtype=np.float64).sum())


def choose_anchors(features: FloatArray, count: int, *, how: Anchors, seed: int) -> FloatArray:
    """Anchors (m, d) among features (n, d): the centres of k-means, or random rows; all rows where there are few."""
    if len(features) <= count:
        return features
    if how == "random":
        return features[np.random.default_rng(seed).permutation(len(features))[:count]]
    with warnings.catch_warnings():
        # Fewer distinct rows than anchors: some anchors coincide, which does no harm.
        warnings.simplefilter("ignore", ConvergenceWarning)
        centres = KMeans(count, n_init=1, max_iter=100, random_state=seed).fit(features).cluster_centers_
    return np.asarray(centres, dtype=np.float32)


def kernel_logistic_regression(
    kernel: FloatArray, anchor_kernel: FloatArray, codes: FloatArray, *, penalty: float, iterations: int = 200
) -> ScoreArray:
    """Weights W (m, K) so that sgn(kernel @ W) predicts the codes; all bits at once.

    Minimises, for each bit, sum_i log(1 + exp(-b_i k_i w)) + penalty w^T K_zz w with L-BFGS from zero.

    Args:
        kernel: (n, m), of the items with the anchors.
        anchor_kernel: K_zz (m, m), of the anchors with each other.
        codes: (n, K), -1 or 1.
        penalty: of the functions' norm in the kernel's space.
        iterations: of L-BFGS at most.
    """
    # With K_zz = R R^T and w = R^-T u the penalty is |u|^2: a problem that is far better conditioned.
    root = cholesky(anchor_kernel.astype(np.float64) + 1e-6 * np.eye(len(anchor_kernel)), lower=True)
    features = solve_triangular(root, kernel.T.astype(np.float64), lower=True).T
    shape = (features.shape[1], codes.shape[1])

    def loss(flat: ScoreArray) -> tuple[float, ScoreArray]:
        u = flat.reshape(shape)
        margins = codes * (features @ u)
        gradient = 2 * penalty * u - features.T @ (codes * expit(-margins))
        return float(np.logaddexp(0, -margins).sum() + penalty * (u * u).sum()), gradient.ravel()

    found = minimize(loss, np.zeros(shape[0] * shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": iterations})
    return np.asarray(solve_triangular(root.T, found.x.reshape(shape)))
