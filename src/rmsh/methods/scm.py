"""SCM: semantic correlation maximisation, sequential (Zhang and Li, AAAI 2014); supervised, linear, closed form.

The inner products of the codes approximate K times the semantic similarity S = 2 L L^T - 1 1^T, where the label rows L
have length 1. Bits are learned one after another: each takes the linear functions of both modalities that correlate
most with the part of S that the earlier bits leave unexplained. S itself is never computed: with centred features (X^T
1 = 0) the updates need only

    C = K X^T S Y = 2 K (X^T L)(L^T Y),   then   C <- C - (X^T sgn(X w_x)) (Y^T sgn(Y w_y))^T   after each bit.

Departure from the original: the ridge is relative to the mean variance, since features may have any scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field
from scipy.linalg import cholesky, eigh, solve_triangular

from rmsh.core.types import MODALITIES, ScoreArray
from rmsh.data.labels import unit_labels
from rmsh.methods.base import HashFunctions, Method, MethodConfig, Run
from rmsh.training.closed_form import Centred, cross_products, ridge, signs

if TYPE_CHECKING:
    from rmsh.data.pairs import Pairs


class SCMConfig(MethodConfig):
    """Options of SCM."""

    ridge: float = Field(1e-3, gt=0, description="added to each variance, relative to the mean variance")


def leading_pair(matrix: ScoreArray) -> tuple[ScoreArray, ScoreArray]:
    """The first left and right singular vector, (d,) and (d',); the largest entry of the left one is positive.

    Example:
        >>> left, right = leading_pair(np.array([[0.0, -3.0], [1.0, 0.0]]))
        >>> left.round(6).tolist(), right.round(6).tolist()
        ([1.0, 0.0], [0.0, -1.0])
    """
    wide = matrix if len(matrix) <= matrix.shape[1] else matrix.T
    last = len(wide) - 1
    first = np.asarray(eigh(wide @ wide.T, subset_by_index=[last, last])[1][:, 0])
    second = wide.T @ first
    second = second / max(float(np.linalg.norm(second)), 1e-300)
    left, right = (first, second) if wide is matrix else (second, first)
    sign = 1.0 if left[np.abs(left).argmax()] >= 0 else -1.0
    return sign * left, sign * right


class SCM(Method):
    """Semantic correlation maximisation, one bit after another."""

    name = "scm"
    summary = "linear functions whose codes approximate the similarity of the labels, one bit after another"
    reference = "Zhang, Li: Large-Scale Supervised Multimodal Hashing with Semantic Correlation Maximization, AAAI 2014"
    Config = SCMConfig
    config: SCMConfig

    def _learn(self, pairs: Pairs, run: Run, facts: dict[str, Any]) -> HashFunctions:  # noqa: ARG002  # nothing to resume
        bits = self.config.bits
        labels = unit_labels(np.asarray(pairs.labels))
        sides = [Centred.of(pairs.features(m)) for m in MODALITIES]
        roots = [cholesky(ridge(cross_products(side, side), self.config.ridge), lower=True) for side in sides]
        x_labels, y_labels = (
            solve_triangular(root, side.transposed_times(labels), lower=True)
            for root, side in zip(roots, sides, strict=True)
        )
        # L_x^-1 C L_y^-T, whose singular vectors solve the generalised eigenproblem of C, C_xx and C_yy.
        residual = 2 * bits * x_labels @ y_labels.T
        weights = [np.empty((side.width, bits)) for side in sides]
        for bit in range(bits):
            used = []
            for side, root, weight, direction in zip(sides, roots, weights, leading_pair(residual), strict=True):
                weight[:, bit] = solve_triangular(root.T, direction)
                products = side.transposed_times(signs(side.times(weight[:, [bit]])))[:, 0]
                used.append(solve_triangular(root, products, lower=True))
            residual -= np.outer(*used)
        return {m: side.linear_hash(weight) for m, side, weight in zip(MODALITIES, sides, weights, strict=True)}
