"""What the methods that learn to name labels share: a network a modality, and the square roots of its probabilities.

The inner product of the square roots is the Bhattacharyya coefficient of two items, class by class; so they are a
common space of pictures and texts by themselves.

Label probabilities: one classifier a modality; items are alike as far as they probably share labels.

No codes come of it: these are the reference lines of a table, what labels can give before anything is made binary. The
dot product of the probabilities of two items is the number of labels they are expected to share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from rmsh.hash_function import HashFunction, Layer
from rmsh.methods.deep import DeepConfig, DeepMethod, HashObjective
from rmsh.training.loop import Batch, Outcome, TrainingSet
from rmsh.training.losses import classification_loss

if TYPE_CHECKING:
    from rmsh.core.types import Features, FloatArray, Modality
    from rmsh.training.loop import TrainingSet


class Classifiers(HashObjective):
    """One network D -> hidden -> C a modality, and the cross-entropy of its labels."""

    def __init__(self, data: TrainingSet, config: DeepConfig) -> None:
        super().__init__(data, config, output="none", outputs=data.labels.shape[1])

    def forward(self, batch: Batch) -> Outcome:
        even = torch.ones(())
        logits = {"image": self.image(batch.images), "text": self.text(batch.texts)}
        return Outcome(
            {m: classification_loss(z, batch.labels, positive_weight=even).mean() for m, z in logits.items()}
        )

    def export(self) -> dict[Modality, HashFunction]:
        """The square roots of the probabilities as functions of the features."""
        return {m: square_rooted(function) for m, function in super().export().items()}


def square_rooted(function: HashFunction) -> HashFunction:
    """A classifier that gives the square roots of probabilities in the place of their logits."""
    *others, last = function.layers
    if not isinstance(last, Layer):
        raise TypeError("a classifier ends with a matrix product")
    return HashFunction((*others, last._replace(activation="root-sigmoid")))


class ClassifierMethod(DeepMethod):
    """A method that begins with classifiers; what it makes of their probabilities is its own."""

    default_epochs = 4
    original_epochs = "none: this has no original"

    def _objective(self, data: TrainingSet) -> Classifiers:
        return Classifiers(data, self.config)


class MLPProbabilities(ClassifierMethod):
    """The probabilities of two networks D -> 1024 -> C.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> pairs = generate_pairs(60)
        >>> MLPProbabilities(epochs=1, hidden=8).fit(pairs).vectors(pairs.images, "image").shape
        (60, 12)
    """

    name = "mlp"
    summary = "dot product of the label probabilities of a network a modality; no codes"
    reference = "no paper"
    Config = DeepConfig
    config: DeepConfig

    def vectors(self, features: Features, modality: Modality) -> FloatArray:
        """The probabilities, float32 (n, C); the model gives their square roots."""
        return self.project(features, modality) ** 2


class LogisticProbabilities(MLPProbabilities):
    """The probabilities of logistic regression.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> pairs = generate_pairs(60)
        >>> LogisticProbabilities(epochs=1).fit(pairs).vectors(pairs.texts, "text").shape
        (60, 12)
    """

    name = "logistic"
    summary = "dot product of the label probabilities of logistic regression a modality; no codes"

    def _objective(self, data: TrainingSet) -> Classifiers:
        classifiers = super()._objective(data)
        # Without an activation between them two layers are one linear map, of any rank as long as they are wide enough.
        for network in (classifiers.image, classifiers.text):
            network.activations = ("none", "none")
        return classifiers
