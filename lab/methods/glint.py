"""GLINT: graded listwise training through label probabilities, a method of this project that NEST replaced.

Training has two stages. First, one classifier per modality learns label probabilities: a space that images and texts
share. Then a small network per modality, the coder, maps the square roots of these probabilities to bits. The coders
minimise a smooth form of the measure itself: in a batch, the softmax over Hamming distances from one modality to the
other follows the gains of the shared labels. Their tanh becomes steeper during the stage, so
that taking the sign loses little. The classifiers are fixed by then, so the second stage processes small vectors only.
Early in the first stage, before the classifiers memorise items, they estimate which labels belong to another item, and
these count less from then on (``rmsh.training.label_noise``). An item with only an image or only a text trains its
classifier, and is a query and a database item in that modality. docs/explanation/glint.md has the equations and the
effect of each part.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from pydantic import Field
from torch import Tensor

from rmsh.core.types import MODALITIES
from rmsh.hash_function import HashFunction
from rmsh.methods.deep import DeepConfig, DeepMethod, HashObjective
from rmsh.methods.nest import square_roots, steepness_at
from rmsh.training.label_noise import fit_label_model, probability_correct
from rmsh.training.loop import Batch, Losses, Schedule, TrainingSet, batch_size, dropout_rate
from rmsh.training.losses import classification_loss, target_shares
from rmsh.training.networks import HashNetwork, InputScaling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmsh.core.types import IntArray
    from rmsh.methods.base import HashFunctions

# Rows that pass the classifiers at once; also the sample for the label model and for the scale of the coders' input.
_BLOCK = 4096
# Images and texts that a batch needs for ranking and normalisation.
_MIN_ITEMS = 2
# The share of the first stage after which labels are checked: common patterns are learned, single items are not.
_CHECK = 0.1


class GLINTConfig(DeepConfig):
    """Options of GLINT."""

    gain: float = Field(
        8.0, gt=1, description="base of the gain: the target of an item is gain^r - 1 for r shared labels"
    )
    temperature: float | None = Field(None, gt=0, description="of the softmax, in bits; none: from the code length")
    steepness: float = Field(16.0, ge=1, description="final steepness of the last tanh; it starts at 1")
    hidden: int = Field(1024, ge=1, description="width of a classifier's hidden layer")
    width: int = Field(256, ge=1, description="width of a coder's hidden layer")
    dropout: float | None = Field(
        None, ge=0, lt=1, description="rate in the classifiers' hidden layers; none: 0.1, more for few pairs"
    )
    check_labels: bool = Field(True, description="reduce the weight of labels that seem to belong to another item")
    epochs: int | None = Field(None, ge=1, description="passes over the pairs per stage; none: 16, more for few pairs")
    batch: int | None = Field(None, ge=3, description="items per step; none: 256, fewer for few pairs")
    learning_rate: float = Field(5e-3, gt=0, description="peak learning rate of Adam in each stage")


class GLINT(DeepMethod):
    """Graded listwise training through label probabilities.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> method = GLINT(bits=16, epochs=1, hidden=8).fit(generate_pairs(60))
        >>> method.encode(generate_pairs(60).images, "image").packed.shape
        (60, 2)
    """

    name = "glint"
    summary = "label probabilities, coded so that Hamming distances rank a batch by the gains of its shared labels"
    reference = "this project: docs/explanation/glint.md"
    needs_both = False
    Config = GLINTConfig
    default_epochs = 16
    passes = 2  # the classifiers, then the coders
    shape = "one-cycle"
    config: GLINTConfig

    def _stages(self, items: int) -> list[Schedule]:
        stage = Schedule(
            self._epochs(items), batch_size(items, self.config.batch), self.config.learning_rate, self.shape
        )
        return [stage, stage]

    def _objective(self, data: TrainingSet) -> Objective:
        return Objective(data, self.config, classifier_epochs=self._epochs(len(data)))


class Objective(HashObjective):
    """The loss of the classifiers in the first epochs, then that of the coders, whose inputs are probabilities."""

    label_weights: Tensor  # (N,) the probability that the labels of each training item are its own

    def __init__(self, data: TrainingSet, config: GLINTConfig, *, classifier_epochs: int) -> None:
        super().__init__(data, data.labels.shape[1], scaling="norm", hidden=config.hidden, output="none")
        for network, features in zip((self.image, self.text), data.present_features(), strict=True):
            network.dropout = dropout_rate(features.shape[0]) if config.dropout is None else config.dropout
        self.config, self.classifier_epochs = config, classifier_epochs
        self.temperature = config.temperature or max(2.0, config.bits / 16)
        self.image_coder, self.text_coder = (_coder(data, config) for _ in range(2))
        self.text_coder.load_state_dict(self.image_coder.state_dict())  # equal labels start with equal codes
        self.register_buffer("label_weights", torch.ones(len(data)))
        self.roots: Tensor | None = None  # (2, N, C) of the training items, once the classifiers are trained

    def begin_epoch(self, epoch: int, data: TrainingSet) -> None:
        """Check the labels early; between the stages, store the classifiers' outputs; then make tanh steeper."""
        if epoch < self.classifier_epochs:
            if self.config.check_labels and epoch == math.ceil(_CHECK * self.classifier_epochs):
                self._check_labels(data)
            return
        if self.roots is None:
            self.roots = torch.empty(2, len(data), data.labels.shape[1], dtype=torch.float16)
            for batch, logits in self._predictions(data, np.arange(len(data))):
                self.roots[:, batch.rows] = square_roots(logits).half()
        progress = (epoch + 0.5) / self.classifier_epochs - 1  # both stages have the same number of epochs
        for coder in (self.image_coder, self.text_coder):
            coder.steepness.fill_(steepness_at(progress, self.config.steepness))

    def _check_labels(self, data: TrainingSet) -> None:
        sample = np.linspace(0, len(data) - 1, min(len(data), _BLOCK)).astype(np.int64)
        ((items, sample_logits),) = self._predictions(data, sample)
        model = fit_label_model(sample_logits, items.labels, items.present)
        for batch, logits in self._predictions(data, np.arange(len(data))):
            self.label_weights[batch.rows] = probability_correct(logits, batch.labels, model, batch.present)

    @torch.no_grad()
    def _predictions(self, data: TrainingSet, rows: IntArray) -> Iterator[tuple[Batch, Tensor]]:
        """Blocks of items with the classifiers' logits, without dropout."""
        training = self.training
        self.eval()
        for start in range(0, len(rows), _BLOCK):
            batch = data.batch(rows[start : start + _BLOCK])
            yield batch, self._logits(batch)
        self.train(training)

    def _logits(self, batch: Batch) -> Tensor:
        """(2, n, C)."""
        return torch.stack([self.image(batch.images), self.text(batch.texts)])

    def forward(self, batch: Batch) -> Losses:
        return self._classify(batch) if self.roots is None else self._rank(batch, self.roots)

    def _classify(self, batch: Batch) -> Losses:
        losses = classification_loss(self._logits(batch), batch.labels)
        losses = self.label_weights[batch.rows] * batch.present * losses
        return Losses({"image labels": losses[0].mean(), "text labels": losses[1].mean()})

    def _rank(self, batch: Batch, roots: Tensor) -> Losses:
        """Rank the texts of a batch for its images and vice versa; they need not belong to the same items."""
        has_image, has_text = batch.present
        images, texts = batch.rows[has_image], batch.rows[has_text]
        if min(len(images), len(texts)) < _MIN_ITEMS:
            zero = torch.zeros((), requires_grad=True)
            return Losses({"image to text": zero, "text to image": zero})
        z_images, z_texts = self.image_coder(roots[0, images].float()), self.text_coder(roots[1, texts].float())
        distances, shared = bit_distances(z_images, z_texts), batch.labels[has_image] @ batch.labels[has_text].T
        i2t = self._targets(shared, images, texts)
        t2i = i2t if batch.present.all() else self._targets(shared.T, texts, images)
        return Losses(
            {
                "image to text": listwise_loss(distances, i2t, temperature=self.temperature),
                "text to image": listwise_loss(distances.T, t2i, temperature=self.temperature),
            }
        )

    def _targets(self, shared: Tensor, queries: Tensor, database: Tensor) -> Tensor:
        """Target shares, weighted by how probable the labels of both items are."""
        shares = target_shares(shared, base=self.config.gain, weights=self.label_weights[database])
        return self.label_weights[queries][:, None] * shares

    def export(self) -> HashFunctions:
        """The hash functions as plain arrays: classifier, square roots of probabilities, coder."""
        classifiers, coders = (self.image, self.text), (self.image_coder, self.text_coder)
        return {
            m: HashFunction((*classifier.export(output="root-sigmoid").layers, *coder.export().layers))
            for m, classifier, coder in zip(MODALITIES, classifiers, coders, strict=True)
        }

    def facts(self) -> dict[str, Any]:
        """The temperature, and the mean probability that labels are correct."""
        return {"temperature": self.temperature, "trusted": round(self.label_weights.mean().item(), 4)}


def _coder(data: TrainingSet, config: GLINTConfig) -> HashNetwork:
    # An item's square roots have about the norm of its 0/1 labels, which therefore determine the scale.
    scaling = InputScaling(data.labels[:_BLOCK].astype(np.float32), "norm")
    coder = HashNetwork(scaling, config.bits, hidden=config.width, batch_norm=True)
    if coder.norm is not None:
        coder.norm.weight.requires_grad_(False)  # a trainable gain would undo the steepness
    return coder


def bit_distances(z: Tensor, others: Tensor) -> Tensor:
    """(K - z.z') / 2, (n, m), of relaxed codes (n, K) and (m, K): the Hamming distance if all values are -1 or 1.

    For values between -1 and 1 it is the expected distance of codes drawn with the mean z.

    Example:
        >>> bit_distances(torch.tensor([[1.0, -1.0]]), torch.tensor([[1.0, 1.0], [0.0, 0.0]])).tolist()
        [[1.0, 1.0]]
    """
    return 0.5 * (z.shape[1] - z @ others.T)


def listwise_loss(distances: Tensor, shares: Tensor, *, temperature: float) -> Tensor:
    """Cross-entropy of softmax(-distance / temperature) with the target shares (n, m), averaged over the rows.

    ``distances`` are (n, m), in bits; a row of ``shares`` that is zero has no loss.

    Example:
        >>> listwise_loss(torch.tensor([[0.0, 100.0]]), torch.tensor([[0.75, 0.25]]), temperature=4.0).item()
        6.25
    """
    return -(shares * F.log_softmax(distances / -temperature, dim=1)).sum() / len(shares)
