"""Rotation: the signs of randomly rotated features, the baseline that learns no code.

Each modality is centred by its own mean, because a gap between them would make bits constant. Features of the same
width, as from CLIP, are taken for one common space, in which found items are ranked, too; otherwise the space is that
of CCA-ITQ, whose learned rotation a random one replaces. The distance of two codes estimates the angle of the vectors:
its mean is K angle / pi. The first bits of a code are a shorter code of the same kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.core.types import MODALITIES
from rmsh.hash_function import HashFunction, JointLayer, Layer
from rmsh.methods.base import HashFunctions, Method, Run
from rmsh.methods.cca_itq import canonical_correlation
from rmsh.training.closed_form import Centred, cross_products, procrustes, ridge

if TYPE_CHECKING:
    from rmsh.core.types import ScoreArray
    from rmsh.data.pairs import Pairs


class Rotation(Method):
    name = "rotation"
    summary = "signs after a random rotation of features in a common space, or of their canonical correlations"
    reference = "Charikar: Similarity Estimation Techniques from Rounding Algorithms, STOC 2002"
    supervised = False

    def _learn(self, pairs: Pairs, run: Run, facts: dict[str, Any]) -> HashFunctions:  # noqa: ARG002  # nothing to resume
        image, text = sides = [Centred.of(pairs.features(m)) for m in MODALITIES]
        if image.width == text.width:
            coder = Layer(
                self._directions(image.width).astype(np.float32), np.zeros(self.config.bits, np.float32), "none"
            )
            space, none = np.eye(image.width, dtype=np.float32), np.zeros(1, np.float32)
            centres = [JointLayer(space, -side.mean.astype(np.float32), none) for side in sides]
            return {m: HashFunction((centre, coder)) for m, centre in zip(MODALITIES, centres, strict=True)}
        xx, yy = (ridge(cross_products(side, side) / len(side), 1e-2) for side in sides)
        found = canonical_correlation(xx, yy, cross_products(image, text) / len(image))
        maps = [(each * found.correlations)[:, : self.config.bits] for each in (found.x, found.y)]
        directions = self._directions(maps[0].shape[1])
        return {m: side.linear_hash(each @ directions) for m, side, each in zip(MODALITIES, sides, maps, strict=True)}

    def _directions(self, width: int) -> ScoreArray:
        """A random rotation, (width, bits), or a tight frame if there are more bits than dimensions."""
        return procrustes(np.random.default_rng(self.config.seed).standard_normal((width, self.config.bits)))
