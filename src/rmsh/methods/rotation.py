"""Rotation: the signs of randomly rotated features, the baseline that learns no code.

Each modality is centred by its own mean, because a gap between them would make bits constant. Features of the same
width, as from CLIP, are taken for one common space; otherwise the space is that of CCA-ITQ, whose learned rotation a
random one replaces. The distance of two codes estimates the angle of the vectors: its mean is K angle / pi.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.core.types import MODALITIES
from rmsh.methods.base import HashFunctions, Method, Run
from rmsh.methods.cca_itq import canonical_correlation
from rmsh.training.closed_form import Centred, cross_products, procrustes, ridge

if TYPE_CHECKING:
    from rmsh.data.pairs import Pairs


class Rotation(Method):
    name = "rotation"
    summary = "signs after a random rotation of features in a common space, or of their canonical correlations"
    reference = "Charikar: Similarity Estimation Techniques from Rounding Algorithms, STOC 2002"
    supervised = False

    def _learn(self, pairs: Pairs, run: Run, facts: dict[str, Any]) -> HashFunctions:  # noqa: ARG002  # nothing to resume
        image, text = sides = [Centred.of(pairs.features(m)) for m in MODALITIES]
        maps = [np.eye(image.width)] * 2
        if image.width != text.width:
            xx, yy = (ridge(cross_products(side, side) / len(side), 1e-2) for side in sides)
            found = canonical_correlation(xx, yy, cross_products(image, text) / len(image))
            maps = [(each * found.correlations)[:, : self.config.bits] for each in (found.x, found.y)]
        normal = np.random.default_rng(self.config.seed).standard_normal((maps[0].shape[1], self.config.bits))
        directions = procrustes(normal)  # a random rotation, or a tight frame if there are more bits than dimensions
        return {m: side.linear_hash(each @ directions) for m, side, each in zip(MODALITIES, sides, maps, strict=True)}
