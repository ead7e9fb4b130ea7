"""SePH: semantics-preserving hashing (Lin, Ding, Hu, Wang, CVPR 2015); supervised, in two steps, with kernels.

First, codes of the training items: the probabilities P of pairs, proportional to the cosine of their labels, are
approximated by those of the codes, Q, proportional to 1 / (1 + |h_i - h_j|^2 / 4). The divergence of P and Q plus
a | |h| - 1 |^2 is minimised over real H as in t-SNE, and H is rounded. Second, for each modality and bit, logistic
regression on a Gaussian kernel exp(-|x - z|^2 / width) with 500 anchors z predicts the codes from the features.

Departures from the original: P and Q are N x N, so it learns from 5,000 pairs. So do we (``sample``), but neither
matrix is stored: blocks of rows are computed as needed. Features are not centred, since the kernel depends on
differences only. A database item is coded from one modality, as a query is; with ``database_codes="unified"`` it is
coded as in the original, from the product of both modalities' posteriors divided by the prior of each bit.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from pydantic import Field
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import expit, xlogy
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from rmsh.core.types import MODALITIES
from rmsh.data.labels import unit_labels
from rmsh.data.pairs import dense_rows
from rmsh.hash_function import HashFunction, KernelLayer, Layer
from rmsh.methods.base import HashFunctions, MethodConfig, Run
from rmsh.methods.database import DatabaseMethod
from rmsh.training.closed_form import signs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmsh.core.types import FloatArray, LabelArray, ScoreArray
    from rmsh.data.pairs import Pairs

Anchors: TypeAlias = Literal["k-means", "random"]

_ROWS = 256  # rows per block of P and Q


def mean_squared_distance(features: FloatArray) -> float:
    """The mean of |x_i - x_j|^2 over all pairs of rows including i = j: twice the total variance.

    Example:
        >>> mean_squared_distance(np.array([[0.0], [2.0]], dtype=np.float32))
        2.0
    """
    return 2 * float(np.var(features, axis=0, dtype=np.float64).sum())


def select_anchors(features: FloatArray, count: int, *, how: Anchors, seed: int) -> FloatArray:
    """Anchors (m, d) of features (n, d): k-means centres or random rows; all rows if there are at most ``count``."""
    if len(features) <= count:
        return features
    if how == "random":
        return features[np.random.default_rng(seed).permutation(len(features))[:count]]
    with warnings.catch_warnings():
        # With fewer distinct rows than anchors some anchors coincide, which is harmless.
        warnings.simplefilter("ignore", ConvergenceWarning)
        centres = KMeans(count, n_init=1, max_iter=100, random_state=seed).fit(features).cluster_centers_
    return np.asarray(centres, dtype=np.float32)


def kernel_logistic_regression(
    kernel: FloatArray, anchor_kernel: FloatArray, codes: FloatArray, *, penalty: float, iterations: int = 200
) -> ScoreArray:
    """Weights W (m, K) for which sgn(kernel @ W) predicts the codes, all bits at once.

    Minimises, for each bit, sum_i log(1 + exp(-b_i k_i w)) + penalty w^T K_zz w with L-BFGS from zero, where k (n, m)
    is the kernel of items and anchors, K_zz (m, m) that of the anchors, and b (n, K) are codes of -1 and 1.
    """
    # With K_zz = R R^T and w = R^-T u the penalty is |u|^2, and the problem is far better conditioned.
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


class SePHConfig(MethodConfig):
    """Options of SePH; the defaults are the original's."""

    sample: int = Field(5000, ge=3, description="number of training pairs, drawn at random")
    alpha: float = Field(0.01, ge=0, description="weight of the quantisation loss")
    iterations: int = Field(100, ge=1, description="iterations of the first step")
    step: float = Field(500.0, gt=0, description="step size of the first step")
    anchors: Anchors = Field("k-means", description="k-means centres (SePH_km) or random items (SePH_rnd)")
    anchor_count: int = Field(500, ge=1, description="number of anchors of the kernel")
    penalty: float = Field(0.01, gt=0, description="weight of the hash functions' norm in the kernel space")
    database_codes: Literal["view", "unified"] = Field(
        "view", description="code of a database item: from one modality, or from the posteriors of both"
    )


class SemanticEmbedding:
    """The objective of the first step for labels (n, C) and the weight a of | |h| - 1 |^2, and its minimisation."""

    def __init__(self, labels: LabelArray, *, weight: float) -> None:
        self.labels = unit_labels(labels).astype(np.float32)
        self.weight = weight
        # The sum of all cosines except those of an item with itself.
        whole = np.square(self.labels.sum(axis=0, dtype=np.float64)).sum() - np.square(self.labels).sum()
        self.total = max(float(whole), 1e-12)
        self.entropy = -sum(float(xlogy(p, p).sum()) for _, p in self._affinities())

    def _affinities(self) -> Iterator[tuple[slice, FloatArray]]:
        """P in blocks of rows."""
        n = len(self.labels)
        for start in range(0, n, _ROWS):
            rows = slice(start, min(start + _ROWS, n))
            affinities = self.labels[rows] @ self.labels.T
            affinities /= np.float32(self.total)
            _clear_diagonal(affinities, start)
            yield rows, affinities

    def __call__(self, h: FloatArray) -> tuple[float, FloatArray]:
        """The loss of h, (n, K), and its gradient.

        With M = (P - Q) * num, num_ij = 1 / (1 + |h_i - h_j|^2 / 4), the gradient of the divergence is
        (diag(M 1) - M) h. Q is num / sum(num); its term is divided by the sum once that is known.
        """
        h1 = np.concatenate([h, np.ones((len(h), 1), h.dtype)], axis=1)  # one product gives M h and M 1
        squares = np.square(h).sum(axis=1)
        attraction, repulsion = np.empty_like(h1), np.empty_like(h1)
        divergence, normaliser = -self.entropy, 0.0
        for rows, p in self._affinities():
            spread = h[rows] @ (-0.5 * h.T)
            spread += 0.25 * (squares[rows, None] + squares)
            np.maximum(spread, 0, out=spread)
            num: FloatArray = np.reciprocal(1 + spread)
            _clear_diagonal(num, rows.start)
            divergence += float((p * np.log1p(spread)).sum(dtype=np.float64))
            normaliser += float(num.sum(dtype=np.float64))
            attraction[rows] = (p * num) @ h1
            repulsion[rows] = (num * num) @ h1
        m = attraction - repulsion / np.float32(normaliser)
        away = np.abs(h) - 1
        gradient = m[:, -1:] * h - m[:, :-1] + 2 * self.weight * away * np.sign(h)
        loss = divergence + np.log(normaliser) + self.weight * float(np.square(away).sum(dtype=np.float64))
        return float(loss), gradient.astype(np.float32, copy=False)

    def minimise(
        self, bits: int, *, iterations: int, step: float, rng: np.random.Generator
    ) -> tuple[FloatArray, list[float]]:
        """The iterate H (n, bits) of lowest loss, and the loss of each iterate.

        Momentum 0.5, a gain per value that grows while its gradient keeps its sign (delta-bar-delta), and columns of
        mean zero, which keeps bits balanced.
        """
        h = (1e-4 * rng.standard_normal((len(self.labels), bits))).astype(np.float32)
        gains, move = np.ones_like(h), np.zeros_like(h)
        best, losses = h, []
        for _ in range(iterations):
            loss, gradient = self(h)
            losses.append(loss)
            if loss <= min(losses):
                best = h
            turned = np.sign(gradient) == np.sign(move)  # the last move went against the current descent
            gains = np.maximum(np.where(turned, gains * 0.8, gains + 0.2), 0.01)
            move = 0.5 * move - step * gains * gradient
            h = h + move
            h = h - h.mean(axis=0)
        return best, losses


def _clear_diagonal(block: FloatArray, start: int) -> None:
    """Set the entries of items with themselves to zero, in a block that begins at row ``start``."""
    rows = np.arange(len(block))
    block[rows, start + rows] = 0


class SePH(DatabaseMethod):
    """Semantics-preserving hashing."""

    name = "seph"
    summary = "codes whose distances follow the labels' affinities, then kernel logistic regression per bit"
    reference = "Lin, Ding, Hu, Wang: Semantics-Preserving Hashing for Cross-View Retrieval, CVPR 2015"
    Config = SePHConfig
    config: SePHConfig

    def _learn(self, pairs: Pairs, run: Run, facts: dict[str, Any]) -> HashFunctions:  # noqa: ARG002  # nothing to resume
        config, rng = self.config, np.random.default_rng(self.config.seed)
        rows = np.sort(rng.permutation(len(pairs))[: config.sample])
        labels = np.asarray(pairs.labels)[rows]
        embedding = SemanticEmbedding(labels, weight=config.alpha / (config.bits * len(rows)))
        h, losses = embedding.minimise(config.bits, iterations=config.iterations, step=config.step, rng=rng)
        facts |= {"sample": len(rows), "iterations": config.iterations, "loss": [losses[0], min(losses)]}
        codes = signs(h)
        self.prior_ = codes.mean(axis=0)
        return {m: self._hash_function(dense_rows(pairs.features(m), rows), codes) for m in MODALITIES}

    def _database(self) -> Mapping[str, HashFunction]:
        """Each function is the logarithm of a posterior's odds; half that of the prior is subtracted from both."""
        if self.config.database_codes == "view":
            return {}
        half = np.arctanh(np.clip(self.prior_, -0.999, 0.999)).astype(np.float32)  # log((1 + m) / (1 - m)) / 2
        return {
            m: HashFunction((f.layers[0], cast("Layer", f.layers[1])._replace(bias=-half)))
            for m, f in self.model.functions.items()
        }

    def _hash_function(self, features: FloatArray, codes: FloatArray) -> HashFunction:
        """The second step for one modality: features (n, d) of items with codes (n, K)."""
        config = self.config
        anchors = select_anchors(features, config.anchor_count, how=config.anchors, seed=config.seed)
        width = np.array([max(mean_squared_distance(features), 1e-12)], dtype=np.float32)
        kernel = KernelLayer(anchors, width)
        weights = kernel_logistic_regression(kernel(features), kernel(anchors), codes, penalty=config.penalty)
        return HashFunction((kernel, Layer(weights.astype(np.float32), np.zeros(config.bits, np.float32), "none")))
