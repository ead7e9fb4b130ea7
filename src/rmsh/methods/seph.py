"""SePH: semantics-preserving hashing (Lin, Ding, Hu, Wang, CVPR 2015); supervised, in two steps, with kernels.

First, codes of the training items: probabilities P of pairs, proportional to the cosine of their labels, are to equal
those of the codes, Q, proportional to 1 / (1 + |h_i - h_j|^2 / 4). The divergence of P and Q plus a / |h| - 1 |^2 is
minimised over real H as t-SNE does, and H is rounded. Second, for each modality and bit, logistic regression on a
Gaussian kernel against 500 anchors predicts the codes from the features.

Deviations: P and Q are N x N in the original, and it learns from 5,000 pairs for that reason. So do we (``sample``),
but a block of rows at a time, so that neither matrix is ever whole. Features are not centred, since the kernel sees
differences only. A database item is coded from one modality, as a query is; the original's product of both
modalities' posteriors does not fit a search of texts by pictures.

Kernel features: anchors to compare with, and logistic regression on the comparisons.

The kernel is Gaussian, exp(-|x - z|^2 / width) (``rmsh.hash_function.KernelLayer``). It depends on differences only,
so that features need no centring.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

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
from rmsh.methods.base import Method, MethodConfig, Run
from rmsh.model import Model
from rmsh.training.closed_form import signs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmsh.core.types import FloatArray, LabelArray, ScoreArray
    from rmsh.data.pairs import Pairs

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


_ROWS = 256  # a block of P and Q


class SePHConfig(MethodConfig):
    """Options of SePH; the defaults are the original's."""

    sample: int = Field(5000, ge=3, description="pairs that are learned from, drawn at random")
    alpha: float = Field(0.01, ge=0, description="weight of |h| = 1")
    iterations: int = Field(100, ge=1, description="of the first step")
    step: float = Field(500.0, gt=0, description="size of a step; made for probabilities that sum to 1")
    anchors: Anchors = Field("k-means", description="centres of k-means (SePH_km) or random items (SePH_rnd)")
    anchor_count: int = Field(500, ge=1, description="anchors of the kernel")
    penalty: float = Field(0.01, gt=0, description="of the hash functions' norm in the kernel's space")


class SemanticEmbedding:
    """The objective of the first step over the items of some labels, and its minimisation.

    Args:
        labels: (n, C), 0 or 1.
        weight: a, of | |h| - 1 |^2.
    """

    def __init__(self, labels: LabelArray, *, weight: float) -> None:
        self.labels = unit_labels(labels).astype(np.float32)
        self.weight = weight
        # The sum of all cosines but those of an item with itself.
        whole = np.square(self.labels.sum(axis=0, dtype=np.float64)).sum() - np.square(self.labels).sum()
        self.total = max(float(whole), 1e-12)
        self.entropy = -sum(float(xlogy(p, p).sum()) for _, p in self._affinities())

    def _affinities(self) -> Iterator[tuple[slice, FloatArray]]:
        """The rows of P, a block at a time."""
        n = len(self.labels)
        for start in range(0, n, _ROWS):
            rows = slice(start, min(start + _ROWS, n))
            affinities = self.labels[rows] @ self.labels.T
            affinities /= np.float32(self.total)
            _clear_own(affinities, start)
            yield rows, affinities

    def __call__(self, h: FloatArray) -> tuple[float, FloatArray]:
        """The loss of h, (n, K), and its gradient.

        With M = (P - Q) * num, num_ij = 1 / (1 + |h_i - h_j|^2 / 4), the gradient of the divergence is
        (diag(M 1) - M) h. Q is num / sum(num): its part is divided by the sum when that is known.
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
            _clear_own(num, rows.start)
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
        """The H (n, bits) of least loss that was met, and the loss of each iterate.

        Momentum 0.5, a gain for each value that grows while its gradient keeps its sign (delta-bar-delta), and columns
        of mean zero, which keeps bits balanced.
        """
        h = (1e-4 * rng.standard_normal((len(self.labels), bits))).astype(np.float32)
        gains, move = np.ones_like(h), np.zeros_like(h)
        best, losses = h, []
        for _ in range(iterations):
            loss, gradient = self(h)
            losses.append(loss)
            if loss <= min(losses):
                best = h
            turned = np.sign(gradient) == np.sign(move)  # the move went up the gradient of now
            gains = np.maximum(np.where(turned, gains * 0.8, gains + 0.2), 0.01)
            move = 0.5 * move - step * gains * gradient
            h = h + move
            h = h - h.mean(axis=0)
        return best, losses


def _clear_own(block: FloatArray, start: int) -> None:
    """Set the entries of items with themselves to zero."""
    rows = np.arange(len(block))
    block[rows, start + rows] = 0


class SePH(Method):
    """Semantics-preserving hashing.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> pairs = generate_pairs(60)
        >>> SePH(bits=16).fit(pairs).encode(pairs.images, "image").packed.shape
        (60, 2)
    """

    name = "seph"
    summary = "codes whose distances follow the labels' affinities, then kernel logistic regression a bit"
    reference = "Lin, Ding, Hu, Wang: Semantics-Preserving Hashing for Cross-View Retrieval, CVPR 2015"
    Config = SePHConfig
    config: SePHConfig

    def _learn(self, pairs: Pairs, run: Run, facts: dict[str, Any]) -> Model:  # noqa: ARG002  # nothing to resume
        config, rng = self.config, np.random.default_rng(self.config.seed)
        rows = np.sort(rng.permutation(len(pairs))[: config.sample])
        labels = np.asarray(pairs.labels)[rows]
        embedding = SemanticEmbedding(labels, weight=config.alpha / (config.bits * len(rows)))
        h, losses = embedding.minimise(config.bits, iterations=config.iterations, step=config.step, rng=rng)
        facts |= {"sample": len(rows), "iterations": config.iterations, "loss": [losses[0], min(losses)]}
        codes = signs(h)
        functions = {m: self._hash_function(dense_rows(pairs.features(m), rows), codes) for m in MODALITIES}
        return Model(functions, self.name, config.model_dump(), facts)

    def _hash_function(self, features: FloatArray, codes: FloatArray) -> HashFunction:
        """The second step, for one modality: features (n, d) of items whose codes (n, K) are known."""
        config = self.config
        anchors = choose_anchors(features, config.anchor_count, how=config.anchors, seed=config.seed)
        width = np.array([max(mean_squared_distance(features), 1e-12)], dtype=np.float32)
        kernel = KernelLayer(anchors, width)
        weights = kernel_logistic_regression(kernel(features), kernel(anchors), codes, penalty=config.penalty)
        return HashFunction((kernel, Layer(weights.astype(np.float32), np.zeros(config.bits, np.float32), "none")))
