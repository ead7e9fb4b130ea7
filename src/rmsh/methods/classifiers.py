"""What the methods that learn to name labels share: a network a modality, and the square roots of its probabilities.

The inner product of the square roots is the Bhattacharyya coefficient of two items, class by class; so they are a
common space of pictures and texts by themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from rmsh.hash_function import HashFunction, Layer
from rmsh.methods.deep import DeepConfig, DeepMethod, HashObjective
from rmsh.training.loop import Batch, Outcome, TrainingSet
from rmsh.training.losses import classification_loss

if TYPE_CHECKING:
    from rmsh.types import Modality

__all__ = ["ClassifierMethod", "Classifiers", "square_rooted"]


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
