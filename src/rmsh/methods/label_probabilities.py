"""Label probabilities: one classifier a modality; items are alike as far as they probably share labels.

No codes come of it: these are the reference lines of a table, what labels can give before anything is made binary. The
dot product of the probabilities of two items is the number of labels they are expected to share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmsh.methods.classifiers import ClassifierMethod, Classifiers
from rmsh.methods.deep import DeepConfig

if TYPE_CHECKING:
    from rmsh.training.loop import TrainingSet
    from rmsh.types import Features, FloatArray, Modality

__all__ = ["LogisticProbabilities", "MLPProbabilities"]


class MLPProbabilities(ClassifierMethod):
    """The probabilities of two networks D -> 1024 -> C.

    Example:
        >>> from rmsh.data.generated import generate_pairs
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
        >>> from rmsh.data.generated import generate_pairs
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
