"""CCA-ITQ: canonical correlation, dimensions weighted by their correlations, then iterative quantisation.

What a sensible engineer tries first (Gong and Lazebnik, CVPR 2011; Gong, Ke, Isard and Lazebnik, IJCV 2014): no
labels, no epochs. Both modalities are projected to the directions in which they agree most; a direction counts as
much as it agrees; one rotation, learned on both together, makes their signs lose least.

Deviations: the original of CCA-ITQ correlates pictures with labels and rotates pictures only; here pictures are
correlated with texts and the rotation serves both. Correlations weight linearly (the original's power is 4, for
unquantised vectors). The ridge is relative to the features' mean variance. Codes longer than the narrower features
are rotated out of as many dimensions as there are: see ``rmsh.training.closed_form``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import Field
from scipy.linalg import cholesky, solve_triangular

from rmsh.core.types import MODALITIES
from rmsh.methods.base import Method, MethodConfig, Run
from rmsh.model import Model
from rmsh.training.closed_form import ITERATIONS, Centred, cross_products, iterative_quantisation, ridge

if TYPE_CHECKING:
    from rmsh.core.types import ScoreArray
    from rmsh.data.pairs import Pairs

__all__ = ["CCAITQ", "CCAITQConfig", "canonical_correlation"]


class CCAITQConfig(MethodConfig):
    """Options of CCA-ITQ."""

    ridge: float = Field(1e-2, gt=0, description="added to each variance, relative to the mean variance")
    power: float = Field(1.0, ge=0, description="a dimension is weighted by its correlation to this power")
    iterations: int = Field(ITERATIONS, ge=1, description="of the quantisation")


class Canonical(NamedTuple):
    """Directions of both sides and how much the projections on them correlate."""

    x: ScoreArray  # (d, k), projections have variance 1 (less what the ridge takes)
    y: ScoreArray  # (d', k)
    correlations: ScoreArray  # (k,), falling


def canonical_correlation(xx: ScoreArray, yy: ScoreArray, xy: ScoreArray) -> Canonical:
    """All directions in which two sets of variables correlate, from their (regularised) covariances.

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
    """Canonical correlation and iterative quantisation.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> pairs = generate_pairs(60)
        >>> CCAITQ(bits=16).fit(pairs).encode(pairs.images, "image").packed.shape
        (60, 2)
    """

    name = "cca-itq"
    summary = "canonical correlation, dimensions weighted by their correlations, iterative quantisation"
    reference = "Gong, Lazebnik: Iterative Quantization: A Procrustean Approach to Learning Binary Codes, CVPR 2011"
    supervised = False
    Config = CCAITQConfig
    config: CCAITQConfig

    def _learn(self, pairs: Pairs, run: Run, facts: dict[str, Any]) -> Model:  # noqa: ARG002  # nothing to resume
        image, text = sides = [Centred.of(pairs.features(m)) for m in MODALITIES]
        xx, yy = (ridge(cross_products(side, side) / len(side), self.config.ridge) for side in sides)
        found = canonical_correlation(xx, yy, cross_products(image, text) / len(image))
        weighted = found.correlations[: self.config.bits] ** self.config.power
        maps = [directions[:, : len(weighted)] * weighted for directions in (found.x, found.y)]
        values = np.concatenate([s.times(m) for s, m in zip(sides, maps, strict=True)])
        rotation, losses = iterative_quantisation(
            values, self.config.bits, rng=np.random.default_rng(self.config.seed), iterations=self.config.iterations
        )
        facts |= {
            "dimensions": len(weighted),
            "correlations": [round(float(c), 4) for c in found.correlations[[0, len(weighted) - 1]]],
            "quantisation_loss": [round(losses[0], 6), round(losses[-1], 6)],
        }
        functions = {m: s.linear_hash(w @ rotation) for m, s, w in zip(MODALITIES, sides, maps, strict=True)}
        return Model(functions, self.name, self.config.model_dump(), facts)
