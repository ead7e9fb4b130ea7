"""Classifier-ITQ: one classifier per modality, square roots of label probabilities, PCA, iterative quantisation.

The obvious baseline with labels; there is no paper to follow. One network D -> 1024 -> C per modality predicts the
labels. The inner product of the square roots of two items' probabilities is their Bhattacharyya coefficient, class by
class, so these vectors are a common space of images and texts: one mean, one projection to K dimensions and one
rotation, learned on both together, serve both. Codes may be longer than the number of classes: see
``iterative_quantisation``.

The classifiers alone are two reference lines of a comparison, "mlp" and "logistic": the dot product of the
probabilities of two items is the expected number of labels they share, which shows what labels achieve before codes
become binary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from rmsh.core.types import MODALITIES, Features, FloatArray, Modality, ScoreArray
from rmsh.hash_function import HashFunction
from rmsh.methods.deep import HashObjective, NetworkConfig, NetworkMethod
from rmsh.training.closed_form import ITERATIONS, Centred, cross_products, iterative_quantisation
from rmsh.training.loop import Batch, Losses, TrainingSet
from rmsh.training.losses import classification_loss

if TYPE_CHECKING:
    from rmsh.data.pairs import Pairs
    from rmsh.methods.base import HashFunctions, Run


class Classifiers(HashObjective):
    """One network D -> hidden -> C per modality, and the cross-entropy of the labels."""

    def __init__(self, data: TrainingSet, config: NetworkConfig) -> None:
        super().__init__(data, data.labels.shape[1], output="none", **config.network())

    def forward(self, batch: Batch) -> Losses:
        logits = {"image": self.image(batch.images), "text": self.text(batch.texts)}
        return Losses({m: classification_loss(z, batch.labels).mean() for m, z in logits.items()})

    def export(self) -> HashFunctions:
        """The square roots of the probabilities as functions of the features."""
        return {"image": self.image.export(output="root-sigmoid"), "text": self.text.export(output="root-sigmoid")}


class MLPProbabilities(NetworkMethod):
    """Reference line: the label probabilities of two networks D -> 1024 -> C."""

    name = "mlp"
    summary = "dot product of the label probabilities of one network per modality; no codes"
    reference = "no paper"
    default_epochs = 4
    original_epochs = "none: this has no original"

    def _objective(self, data: TrainingSet) -> Classifiers:
        return Classifiers(data, self.config)

    def vectors(self, features: Features, modality: Modality) -> FloatArray:
        """The probabilities, float32 (n, C)."""
        return self.project(features, modality) ** 2


class LogisticProbabilities(MLPProbabilities):
    """Reference line: the label probabilities of logistic regression."""

    name = "logistic"
    summary = "dot product of the label probabilities of one logistic regression per modality; no codes"

    def _objective(self, data: TrainingSet) -> Classifiers:
        classifiers = super()._objective(data)
        # Without an activation between them, two layers are one linear map; its rank is full if they are wide enough.
        for network in (classifiers.image, classifiers.text):
            network.activations = ("none", "none")
        return classifiers


class ClassifierITQConfig(NetworkConfig):
    """Options of classifier-ITQ."""

    iterations: int = Field(ITERATIONS, ge=1, description="iterations of the quantisation")


def principal_directions(products: ScoreArray, count: int) -> ScoreArray:
    """The ``count`` directions of largest variance, or all, (d, k), in descending order.

    Example:
        >>> abs(principal_directions(np.diag([1.0, 5.0]), 1)).tolist()
        [[0.0], [1.0]]
    """
    return np.asarray(np.linalg.eigh(products)[1][:, ::-1][:, :count])


class ClassifierITQ(MLPProbabilities):
    """Classifiers, the square roots of their probabilities, and iterative quantisation."""

    name = "classifier-itq"
    summary = "one classifier per modality, square roots of label probabilities, PCA, iterative quantisation"
    reference = "no paper; the quantisation is Gong, Lazebnik: Iterative Quantization, CVPR 2011"
    Config = ClassifierITQConfig
    config: ClassifierITQConfig

    def _learn(self, pairs: Pairs, run: Run, facts: dict[str, Any]) -> HashFunctions:
        config, classifiers = self.config, super()._learn(pairs, run, facts)
        values = Centred.of(np.concatenate([classifiers[m](pairs.features(m)) for m in MODALITIES]))
        directions = principal_directions(cross_products(values, values), config.bits)
        rotation, losses = iterative_quantisation(
            values.times(directions), config.bits, seed=config.seed, iterations=config.iterations
        )
        facts |= {"dimensions": directions.shape[1], "quantisation_loss": [round(losses[i], 6) for i in (0, -1)]}
        last = values.linear_hash(directions @ rotation).layers
        return {m: HashFunction((*function.layers, *last)) for m, function in classifiers.items()}
