"""CCA-ITQ: canonical correlation, dimensions weighted by their correlations, then iterative quantisation.

The obvious baseline without labels or epochs (Gong and Lazebnik, CVPR 2011; Gong, Ke, Isard and Lazebnik, IJCV 2014).
Both modalities are projected on the directions in which they correlate most; each direction is weighted by its
correlation; one rotation, learned on both modalities together, minimises the loss of taking signs.

Departures from the original: it correlates images with labels and rotates images only; here images are correlated with
texts and the rotation serves both. Correlations weight linearly (the original's power is 4, for unquantised vectors).
The ridge is relative to the features' mean variance. Codes may be longer than the narrower features: see
``iterative_quantisation``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import Field
from scipy.linalg import cholesky, solve_triangular

from rmsh.core.types import MODALITIES, ScoreArray
from rmsh.methods.base import HashFunctions, Method, MethodConfig, Run
from rmsh.training.closed_form import ITERATIONS, Centred, cross_products, iterative_quantisation, ridge

if TYPE_CHECKING:
    from rmsh.data.pairs import Pairs


class CCAITQConfig(MethodConfig):
    """Options of CCA-ITQ."""

    ridge: float = Field(1e-2, gt=0, description="added to each variance, relative to the mean variance")
    power: float = Field(1.0, ge=0, description="exponent of the correlation that weights a dimension")
    iterations: int = Field(ITERATIONS, ge=1, description="iterations of the quantisation")


class Canonical(NamedTuple):
    """Canonical directions and the correlations of the projections on them."""

    x: ScoreArray  # (d, k); projections have variance 1, less the share of the ridge
    y: ScoreArray  # (d', k)
    correlations: ScoreArray  # (k,), descending


def canonical_correlation(xx: ScoreArray, yy: ScoreArray, xy: ScoreArray) -> Canonical:
    """All canonical directions of two sets of variables, from their (regularised) covariances.

    Example:
        >>> found = canonical_correlation(np.array([[4.0]]), np.array([[1.0]]), np.array([[1.0]]))
        >>> found.correlations, abs(found.x).tolist(), abs(found.y).tolist()
        (array([0.5]), [[0.5]], [[1.0]])
    """
    x_root, y_root = cholesky(xx, lower=True), cholesky(yy, lower=True)
    # The correlations of the whitened variables: L_x^-1 C_xy L_y^-T.
    half = solve_triangular(x_root, xy, lower=True)
    left, correlations, right = np.linalg.svd(solve_triangular(y_root, half.T, lower=True).T, full_matrices=False)
    return Canonical(
        solve_triangular(x_root.T, left), solve_triangular(y_root.T, right.T), np.minimum(correlations, 1.0)
    )


class CCAITQ(Method):
    """Canonical correlation and iterative quantisation."""

    name = "cca-itq"
    summary = "canonical correlation, dimensions weighted by their correlations, iterative quantisation"
    reference = "Gong, Lazebnik: Iterative Quantization: A Procrustean Approach to Learning Binary Codes, CVPR 2011"
    supervised = False
    Config = CCAITQConfig
    config: CCAITQConfig

    def _learn(self, pairs: Pairs, run: Run, facts: dict[str, Any]) -> HashFunctions:  # noqa: ARG002  # nothing to resume
        config = self.config
        image, text = sides = [Centred.of(pairs.features(m)) for m in MODALITIES]
        xx, yy = (ridge(cross_products(side, side) / len(side), config.ridge) for side in sides)
        found = canonical_correlation(xx, yy, cross_products(image, text) / len(image))
        weights = found.correlations[: config.bits] ** config.power
        maps = [directions[:, : len(weights)] * weights for directions in (found.x, found.y)]
        values = np.concatenate([side.times(m) for side, m in zip(sides, maps, strict=True)])
        rotation, losses = iterative_quantisation(values, config.bits, seed=config.seed, iterations=config.iterations)
        facts |= {
            "dimensions": len(weights),
            "correlations": [round(float(c), 4) for c in found.correlations[[0, len(weights) - 1]]],
            "quantisation_loss": [round(losses[0], 6), round(losses[-1], 6)],
        }
        return {m: s.linear_hash(w @ rotation) for m, s, w in zip(MODALITIES, sides, maps, strict=True)}
