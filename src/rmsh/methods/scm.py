"""SCM: semantic correlation maximisation, sequential (Zhang and Li, AAAI 2014); supervised, linear, closed form.

The codes' inner products are to equal K times the semantic similarity of the items, S = 2 L L^T - 1 1^T with the
labels L of length 1, one bit after the other: each bit takes the linear functions of both modalities that correlate
most with what the bits before it have left of S. S itself is never made: with centred features (X^T 1 = 0) the update
needs only

    C = K X^T S Y = 2 K (X^T L)(L^T Y),   then   C <- C - (X^T sgn(X w_x)) (Y^T sgn(Y w_y))^T   after each bit.

Deviations: the ridge on the variances is relative to their mean, since ours may come in any scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field
from scipy.linalg import cholesky, eigh, solve_triangular

from rmsh.core.types import MODALITIES
from rmsh.data.labels import unit_labels
from rmsh.methods.base import Method, MethodConfig, Run
from rmsh.model import Model
from rmsh.training.closed_form import Centred, cross_products, ridge, signs

if TYPE_CHECKING:
    from rmsh.core.types import ScoreArray
    from rmsh.data.pairs import Pairs

__all__ = ["SCM", "SCMConfig", "leading_pair"]


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
    rows, columns = matrix.shape
    if columns < rows:  # the products of the smaller side are cheaper to decompose
        right = _leading_eigenvector(matrix.T @ matrix)
        left = _unit(matrix @ right)
    else:
        left = _leading_eigenvector(matrix @ matrix.T)
        right = _unit(matrix.T @ left)
    sign = 1.0 if left[np.abs(left).argmax()] >= 0 else -1.0
    return sign * left, sign * right


def _leading_eigenvector(products: ScoreArray) -> ScoreArray:
    last = len(products) - 1
    return np.asarray(eigh(products, subset_by_index=[last, last])[1][:, 0])


def _unit(vector: ScoreArray) -> ScoreArray:
    return vector / max(float(np.linalg.norm(vector)), 1e-300)


class SCM(Method):
    """Semantic correlation maximisation, one bit after the other.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> pairs = generate_pairs(60)
        >>> SCM(bits=16).fit(pairs).encode(pairs.images, "image").packed.shape
        (60, 2)
    """

    name = "scm"
    summary = "linear functions whose codes rebuild the similarity of the labels, one bit after the other"
    reference = "Zhang, Li: Large-Scale Supervised Multimodal Hashing with Semantic Correlation Maximization, AAAI 2014"
    Config = SCMConfig
    config: SCMConfig

    def _learn(self, pairs: Pairs, run: Run, facts: dict[str, Any]) -> Model:  # noqa: ARG002  # nothing to resume
        bits = self.config.bits
        labels = unit_labels(np.asarray(pairs.labels))
        sides = [Centred.of(pairs.features(m)) for m in MODALITIES]
        roots = [cholesky(ridge(cross_products(side, side), self.config.ridge), lower=True) for side in sides]
        x_labels, y_labels = (_whitened(r, s.transposed_times(labels)) for r, s in zip(roots, sides, strict=True))
        # L_x^-1 C L_y^-T, whose singular vectors solve the generalised eigenproblem of C, C_xx and C_yy.
        residual = 2 * bits * x_labels @ y_labels.T
        weights = [np.empty((side.width, bits)) for side in sides]
        for bit in range(bits):
            used = []
            for side, root, weight, direction in zip(sides, roots, weights, leading_pair(residual), strict=True):
                weight[:, bit] = solve_triangular(root.T, direction)
                used.append(_whitened(root, side.transposed_times(signs(side.times(weight[:, [bit]])))[:, 0]))
            residual -= np.outer(*used)
        functions = {m: side.linear_hash(weight) for m, side, weight in zip(MODALITIES, sides, weights, strict=True)}
        return Model(functions, self.name, self.config.model_dump(), facts)


def _whitened(root: ScoreArray, values: ScoreArray) -> ScoreArray:
    return np.asarray(solve_triangular(root, values, lower=True))
