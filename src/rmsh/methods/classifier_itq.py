"""Classifier-ITQ: a classifier a modality, square roots of its label probabilities, PCA, iterative quantisation.

What a sensible engineer with labels tries first; there is no paper to follow. One network D -> 1024 -> C a modality
learns to name the labels. The square roots of its C probabilities are a common space by themselves, so that one mean,
one projection to K dimensions and one rotation, learned on pictures and texts together, serve both.

Codes longer than there are classes are rotated out of C dimensions: see ``rmsh.training.closed_form``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from rmsh.core.types import MODALITIES
from rmsh.hash_function import HashFunction
from rmsh.methods.classifiers import ClassifierMethod
from rmsh.methods.deep import DeepConfig
from rmsh.training.closed_form import ITERATIONS, Centred, cross_products, iterative_quantisation

if TYPE_CHECKING:
    from rmsh.core.types import FloatArray, ScoreArray
    from rmsh.data.pairs import Pairs
    from rmsh.hash_function import AnyLayer
    from rmsh.methods.base import Run
    from rmsh.model import Model

__all__ = ["ClassifierITQ", "ClassifierITQConfig", "principal_directions"]


class ClassifierITQConfig(DeepConfig):
    """Options of classifier-ITQ."""

    iterations: int = Field(ITERATIONS, ge=1, description="of the quantisation")


def principal_directions(products: ScoreArray, count: int) -> ScoreArray:
    """The ``count`` directions of most variance, or all, (d, k); most first.

    Example:
        >>> abs(principal_directions(np.diag([1.0, 5.0]), 1)).tolist()
        [[0.0], [1.0]]
    """
    return np.asarray(np.linalg.eigh(products)[1][:, ::-1][:, :count])


class ClassifierITQ(ClassifierMethod):
    """Classifiers, the square roots of their probabilities, and iterative quantisation.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> pairs = generate_pairs(60)
        >>> ClassifierITQ(bits=16, epochs=1, hidden=8).fit(pairs).encode(pairs.images, "image").packed.shape
        (60, 2)
    """

    name = "classifier-itq"
    summary = "a classifier a modality, square roots of label probabilities, PCA, iterative quantisation"
    reference = "no paper; the quantisation is Gong, Lazebnik: Iterative Quantization, CVPR 2011"
    Config = ClassifierITQConfig
    config: ClassifierITQConfig

    def _learn(self, pairs: Pairs, run: Run, facts: dict[str, Any]) -> Model:
        classifiers = super()._learn(pairs, run, facts)
        values = np.concatenate([classifiers.project(pairs.features(m), m) for m in MODALITIES])
        rotation, told = self._rotation(values)
        functions = {m: HashFunction((*f.layers, rotation)) for m, f in classifiers.functions.items()}
        return replace(classifiers, functions=functions, facts={**classifiers.facts, **told})

    def _rotation(self, values: FloatArray) -> tuple[AnyLayer, dict[str, Any]]:
        """Mean, principal directions and rotation as one layer, and what there is to tell of them."""
        centred = Centred.of(values)
        directions = principal_directions(cross_products(centred, centred), self.config.bits)
        rotation, losses = iterative_quantisation(
            centred.times(directions),
            self.config.bits,
            rng=np.random.default_rng(self.config.seed),
            iterations=self.config.iterations,
        )
        ends = [round(losses[0], 6), round(losses[-1], 6)]
        (layer,) = centred.linear_hash(directions @ rotation).layers
        return layer, {"dimensions": directions.shape[1], "quantisation_loss": ends}
