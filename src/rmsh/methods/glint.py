"""GLINT: graded listwise training through label probabilities, this project's own method.

Two stages. First a classifier a modality learns to give each label a probability: a space in which pictures and texts
meet by themselves. Then a small network a modality, the coder, folds the square roots of these probabilities into bits.
What the coders minimise is the measure itself, made smooth: in a batch, the softmax over Hamming distances from one
modality to the other follows the gains of the shared labels (``rmsh.training.losses``). Their tanh becomes steeper as
they learn, so that little is lost to the sign. The classifiers are done by then: the second stage sees small vectors
only and costs little. Early, while the classifiers know no item by heart, they are asked which labels are another
item's, and these count less from then on. An item with a picture or a text alone teaches its
classifier, and is one of those that ask or are asked. docs/glint.md has the equations and what each part is worth.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from pydantic import Field
from torch import Tensor, nn

from rmsh.hash_function import HashFunction
from rmsh.methods.base import Method, MethodConfig, Run
from rmsh.methods.classifiers import square_rooted
from rmsh.model import Model
from rmsh.training.label_noise import fit_label_model, trust_of
from rmsh.training.loop import (
    Batch,
    Outcome,
    Schedule,
    TrainingSet,
    enough_epochs,
    fitting_batch,
    fitting_dropout,
    train,
)
from rmsh.training.losses import bit_distances, classification_loss, graded_shares, listwise_loss
from rmsh.training.networks import HashNetwork, InputScaling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmsh.core.types import BitArray, Features, IntArray, Modality
    from rmsh.data.pairs import Pairs

__all__ = ["GLINT", "GLINTConfig"]

_STAGES = 2
# Rows that pass the classifiers at once; so many also tell which labels can be believed, and how long an input is.
_BLOCK = 4096
# Pictures and texts of a batch, without which there is nothing to rank or to normalise.
_LEAST = 2
# The share of the second stage in which tanh becomes steeper.
_STEEPENING = 0.8
# The share of the first stage after which labels are checked: what is common is learned, what is single is not.
_CHECK = 0.1


class GLINTConfig(MethodConfig):
    """Options of GLINT."""

    gain: float = Field(8.0, gt=1, description="an item deserves a share of gain^r - 1, where r labels are shared")
    temperature: float | None = Field(
        None, gt=0, description="of the softmax, in bits; None: from the length of a code"
    )
    steepness: float = Field(16.0, ge=1, description="of the last tanh in the end; it begins with 1")
    hidden: int = Field(1024, ge=1, description="width of a classifier's hidden layer")
    width: int = Field(256, ge=1, description="width of a coder's hidden layer")
    dropout: float | None = Field(
        None, ge=0, lt=1, description="of the classifiers' hidden layers; None: 0.1, more where pairs are few"
    )
    check_labels: bool = Field(True, description="whether labels that seem to be another item's count less")
    epochs: int | None = Field(None, ge=1, description="passes of each stage; None: 16, more where pairs are few")
    batch: int | None = Field(None, ge=3, description="items a step; None: 256, fewer where pairs are few")
    learning_rate: float = Field(5e-3, gt=0, description="of Adam, the peak of each stage")


class GLINT(Method):
    """Graded listwise training through label probabilities.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> method = GLINT(bits=16, epochs=1, hidden=8).fit(generate_pairs(60))
        >>> method.encode(generate_pairs(60).images, "image").packed.shape
        (60, 2)
    """

    name = "glint"
    summary = "label probabilities, coded so that Hamming distances rank a batch by the gains of its shared labels"
    reference = "this project: docs/glint.md"
    needs_both = False
    Config = GLINTConfig
    config: GLINTConfig

    def _learn(self, pairs: Pairs, run: Run, facts: dict[str, Any]) -> Model:
        config = self.config
        data = TrainingSet(
            pairs.features("image"),
            pairs.features("text"),
            np.asarray(pairs.labels),
            has_image=pairs.has_image,
            has_text=pairs.has_text,
        )
        schedule = self._schedule(len(data))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            objective = Objective(data, config, classifier_epochs=schedule.epochs // _STAGES)
        facts |= {
            "epochs": objective.classifier_epochs,
            "batch": schedule.batch,
            "temperature": objective.temperature,
        }
        facts["history"] = train(objective, data, schedule=schedule, seed=config.seed, **self._run_options(pairs, run))
        facts["trusted"] = round(objective.trust.mean().item(), 4)
        return Model(objective.export(), self.name, config.model_dump(), facts)

    def _schedule(self, items: int) -> Schedule:
        """Few pairs make few steps: batches shrink and epochs multiply until there are enough to learn from."""
        config = self.config
        batch = fitting_batch(items, config.batch)
        epochs = config.epochs or enough_epochs(items, batch, usual=16)
        return Schedule(_STAGES * epochs, batch, config.learning_rate, "one-cycle", cycles=_STAGES)


class Objective(nn.Module):
    """The classifiers' loss in the first epochs, then that of the coders, which see probabilities only."""

    trust: Tensor  # (N,) in the labels of each training item

    def __init__(self, data: TrainingSet, config: GLINTConfig, *, classifier_epochs: int) -> None:
        super().__init__()
        self.config, self.classifier_epochs = config, classifier_epochs
        self.temperature = config.temperature or max(2.0, config.bits / 16)
        classes = data.labels.shape[1]
        self.image = _classifier(_present(data.images, data.has_image), classes, config)
        self.text = _classifier(_present(data.texts, data.has_text), classes, config)
        self.image_coder, self.text_coder = (_coder(data, config) for _ in range(2))
        self.text_coder.load_state_dict(self.image_coder.state_dict())  # what is one label begins as one code
        self.register_buffer("trust", torch.ones(len(data)))
        self.roots: Tensor | None = None  # (2, N, C) of the training items, once the classifiers are done

    def begin_epoch(self, epoch: int, data: TrainingSet) -> None:
        """Early, check the labels; between the stages, keep what is said of every item; then make tanh steeper."""
        if epoch < self.classifier_epochs:
            if self.config.check_labels and epoch == math.ceil(_CHECK * self.classifier_epochs):
                self._check_labels(data)
            return
        if self.roots is None:
            self._keep_roots(data)
        progress = (epoch + 0.5) / self.classifier_epochs - 1  # both stages have as many epochs
        for coder in (self.image_coder, self.text_coder):
            coder.steepness.fill_(steepness_at(progress, self.config.steepness))

    def _check_labels(self, data: TrainingSet) -> None:
        sample = np.linspace(0, len(data) - 1, min(len(data), _BLOCK)).astype(np.int64)
        ((some, said_of_some),) = self._said(data, sample)
        model = fit_label_model(said_of_some, some.labels, some.present)
        for batch, said in self._said(data, np.arange(len(data))):
            self.trust[batch.rows] = trust_of(said, batch.labels, model, batch.present)

    def _keep_roots(self, data: TrainingSet) -> None:
        self.roots = torch.empty(2, len(data), data.labels.shape[1], dtype=torch.float16)
        for batch, logits in self._said(data, np.arange(len(data))):
            self.roots[:, batch.rows] = square_roots(logits).half()

    @torch.no_grad()
    def _said(self, data: TrainingSet, rows: IntArray) -> Iterator[tuple[Batch, Tensor]]:
        """Items a block at a time, and what the classifiers say of them without dropout."""
        learning = self.training
        self.eval()
        for start in range(0, len(rows), _BLOCK):
            batch = data.batch(rows[start : start + _BLOCK])
            yield batch, self._logits(batch)
        self.train(learning)

    def forward(self, batch: Batch) -> Outcome:
        return self._name(batch) if self.roots is None else self._rank(batch, self.roots)

    def _name(self, batch: Batch) -> Outcome:
        losses = classification_loss(self._logits(batch), batch.labels, positive_weight=torch.ones(()))
        losses = self.trust[batch.rows] * batch.present * losses
        return Outcome({"pictures named": losses[0].mean(), "texts named": losses[1].mean()})

    def _rank(self, batch: Batch, roots: Tensor) -> Outcome:
        """The pictures of a batch and its texts ask each other; they need not be of the same items."""
        has_image, has_text = batch.present
        pictures, texts = batch.rows[has_image], batch.rows[has_text]
        if min(len(pictures), len(texts)) < _LEAST:
            nothing = torch.zeros((), requires_grad=True)
            return Outcome({"pictures ask": nothing, "texts ask": nothing})
        image, text = self.image_coder(roots[0, pictures].float()), self.text_coder(roots[1, texts].float())
        distances, shared = bit_distances(image, text), batch.labels[has_image] @ batch.labels[has_text].T
        of_pictures = self._shares(shared, pictures, texts)
        of_texts = of_pictures if batch.present.all() else self._shares(shared.T, texts, pictures)
        return Outcome(
            {
                "pictures ask": listwise_loss(distances, of_pictures, temperature=self.temperature),
                "texts ask": listwise_loss(distances.T, of_texts, temperature=self.temperature),
            }
        )

    def _shares(self, shared: Tensor, asking: Tensor, asked: Tensor) -> Tensor:
        """What those who ask want of those they ask, as far as the labels of either are believed."""
        shares = graded_shares(shared, base=self.config.gain, trust=self.trust[asked])
        return self.trust[asking][:, None] * shares

    def _logits(self, batch: Batch) -> Tensor:
        """What the classifiers say of a batch, (2, n, C)."""
        return torch.stack([self.image(batch.images), self.text(batch.texts)])

    def export(self) -> dict[Modality, HashFunction]:
        """The hash functions as plain arrays: classifier, square roots of probabilities, coder."""
        return {"image": _whole(self.image, self.image_coder), "text": _whole(self.text, self.text_coder)}


def _whole(classifier: HashNetwork, coder: HashNetwork) -> HashFunction:
    return HashFunction((*square_rooted(classifier.export()).layers, *coder.export().layers))


def _present(features: Features, has: BitArray | None) -> Features:
    return features if has is None or has.all() else features[has]


def _classifier(features: Features, classes: int, config: GLINTConfig) -> HashNetwork:
    return HashNetwork(
        InputScaling(features, "norm"),
        classes,
        hidden=config.hidden,
        activation="relu",
        output="none",
        dropout=fitting_dropout(features.shape[0]) if config.dropout is None else config.dropout,
    )


def _coder(data: TrainingSet, config: GLINTConfig) -> HashNetwork:
    # An item's square roots are about as long as the 0/1 labels they stand for, which gives the scale.
    scaling = InputScaling(data.labels[:_BLOCK].astype(np.float32), "norm")
    coder = HashNetwork(scaling, config.bits, hidden=config.width, activation="relu", batch_norm=True)
    if coder.norm is not None:
        coder.norm.weight.requires_grad_(False)  # a gain that learns would take back what steepness gives
    return coder


def steepness_at(progress: float, final: float) -> float:
    """How steep tanh is at a point of the second stage between 0 and 1: from 1 to ``final``, in a straight line.

    Example:
        >>> [round(steepness_at(p, 16.0), 4) for p in (0.0, 0.4, 0.8, 1.0)]
        [1.0, 8.5, 16.0, 16.0]
    """
    return 1 + (final - 1) * min(1.0, progress / _STEEPENING)


def square_roots(logits: Tensor) -> Tensor:
    """The square roots of the probabilities that logits stand for.

    Example:
        >>> round(square_roots(torch.tensor(0.0)).item(), 4)  # of one half
        0.7071
    """
    return torch.exp(0.5 * F.logsigmoid(logits))
