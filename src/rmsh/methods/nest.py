"""NEST: nested codes from labels, pairs or both, this project's default method.

Training has two stages. First, one network per modality learns label probabilities and an embedding from a shared
hidden layer: the probabilities by classification, where there are labels, the embedding by contrast with the other
items of a batch, where there are pairs. Then a small network per modality, the coder, maps both to bits. In a batch,
the softmax over Hamming distances from one modality to the other follows a target: a share for the item's own
counterpart, and the rest by the gains of the shared labels; an item without labels uses the similarity of texts
instead. The loss applies to the whole code and, in each step, to two of its prefixes of half, a quarter, ... of the
length, so that a prefix is a code of its own. Tanh becomes steeper during the second stage. Labels are checked as in
GLINT. docs/explanation/nest.md has the equations and the effect of each part.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from pydantic import Field
from torch import Tensor, nn

from rmsh.core.types import BitArray, Features, IntArray
from rmsh.hash_function import HashFunction, JointLayer, Layer, RootLayer
from rmsh.methods.deep import DeepConfig, DeepMethod, HashObjective
from rmsh.training.label_noise import fit_label_model, probability_correct
from rmsh.training.loop import Batch, Losses, Schedule, TrainingSet, batch_size, dropout_rate, enough_epochs
from rmsh.training.losses import classification_loss, target_shares
from rmsh.training.networks import HashNetwork, InputScaling, dropout_mask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmsh.data.pairs import Pairs
    from rmsh.methods.base import HashFunctions, Run

# Rows that pass the networks at once outside of training steps; also the sample for the label model.
_BLOCK = 4096
# Images and texts that a batch needs for contrast and normalisation.
_MIN_ITEMS = 2
# Labelled items from which the share of wrong labels can be estimated.
_MIN_CHECKED = 100
# The share of the first stage after which labels are checked, and that in which dropout falls.
_CHECK, _ANNEALING = 0.1, 0.8
# The share of the second stage in which tanh becomes steeper.
_STEEPENING = 0.8
# Labelled items up to which dropout does not fall, and from which it falls to zero.
_FEW, _MANY = 2000, 10_000
# The least dropout: at the start, where there are labels; throughout, where there are none.
_DROPOUT, _DROPOUT_OF_PAIRS = 0.35, 0.4
# Temperature of the similarity of texts where there are no labels.
_TEXT_TEMPERATURE = 0.15
# The part of the target, beside the counterpart, that follows the similarity of texts where there are no labels.
_TEXT_SHARE = 0.5
# The shortest prefix that is trained, and the number of prefixes in a step.
_SHORTEST, _PREFIXES = 32, 2
# Prefixes up to this length have the smallest share of the counterpart and the highest temperature per bit.
_SHORT = 64
# What each doubling beyond it adds to the share of the counterpart.
_FINER_SHARE = 0.27
# The sharpness of the softmax, per length, of prefixes up to there, and what each doubling adds.
_SHARPNESS, _FINER_SHARPNESS = 12, 4
# The learning rate of the second stage, relative to the first.
_SECOND_RATE = 1.5


class NESTConfig(DeepConfig):
    """Options of NEST."""

    bits: int = Field(256, ge=1, le=512, description="code length; prefixes of half, a quarter, ... are codes as well")
    own: float = Field(0.2, ge=0, le=1, description="share of an item's counterpart in the target of short prefixes")
    gain: float = Field(
        8.0, gt=1, description="base of the gain: the target of an item is gain^r - 1 for r shared labels"
    )
    steepness: float = Field(8.0, ge=1, description="final steepness of the last tanh; it starts at 1")
    hidden: int = Field(1024, ge=1, description="width of the hidden layer of the first stage")
    embedding: int = Field(256, ge=2, description="dimensions of the embedding")
    width: int = Field(384, ge=1, description="width of a coder's hidden layer")
    dropout: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="hidden-layer rate; none: 0.35, falling to 0, or 0.4 without labels; more for few pairs, and kept",
    )
    use_labels: bool = Field(True, description="learn from labels where there are any, not from pairs alone")
    check_labels: bool = Field(True, description="reduce the weight of labels that seem to belong to another item")
    epochs: int | None = Field(
        None, ge=1, description="passes over the pairs per stage; none: 14 and 18, more for few pairs"
    )
    batch: int | None = Field(
        None, ge=3, description="items per step, four times as many in the second stage; none: 256, fewer for few pairs"
    )
    learning_rate: float = Field(
        3e-3, gt=0, description="peak learning rate of Adam, half as high again in the second stage"
    )


class NEST(DeepMethod):
    """Nested codes from labels, pairs or both.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> method = NEST(bits=64, epochs=1, hidden=8).fit(generate_pairs(60))
        >>> method.encode(generate_pairs(60).images, "image").packed.shape
        (60, 8)
    """

    name = "nest"
    summary = "label probabilities and a contrastive embedding, coded so that every prefix ranks by meaning"
    reference = "this project: docs/explanation/nest.md"
    supervised = False
    needs_both = False
    Config = NESTConfig
    default_epochs = 14
    version = 3
    config: NESTConfig

    @classmethod
    def _required(cls, pairs: Pairs) -> dict[str, BitArray]:
        alone = {"alone and without labels": (pairs.has_image & pairs.has_text) | pairs.labelled}
        return super()._required(pairs) | alone

    def _learn(self, pairs: Pairs, run: Run, facts: dict[str, Any]) -> HashFunctions:
        return super()._learn(
            pairs if self.config.use_labels else replace(pairs, labels=None, class_names=()), run, facts
        )

    def _stages(self, items: int) -> list[Schedule]:
        small = batch_size(items, self.config.batch)
        large = min(4 * small, items)
        rate, epochs = self.config.learning_rate, self.config.epochs or enough_epochs(items, large, usual=18)
        return [
            Schedule(self._epochs(items), small, rate, "one-cycle"),
            Schedule(epochs, large, _SECOND_RATE * rate, "one-cycle"),
        ]

    def _objective(self, data: TrainingSet) -> Objective:
        return Objective(data, self.config, epochs=[stage.epochs for stage in self._stages(len(data))])


class Objective(HashObjective):
    """The loss of the first stage's networks, then that of the coders."""

    label_weights: Tensor  # (N,) 0 without labels, else the probability that the labels are the item's own

    def __init__(self, data: TrainingSet, config: NESTConfig, *, epochs: list[int]) -> None:
        nn.Module.__init__(self)  # the networks differ from those of other methods
        self.config, (self.first_stage, self.second_stage) = config, epochs
        self.classes = data.labels.shape[1]
        self.image_network, self.text_network = (
            _network(features, self.classes, config) for features in data.present_features()
        )
        self.log_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))  # of the contrastive loss
        self.image_coder, self.text_coder = (_coder(self.classes, config) for _ in range(2))
        self.text_coder.load_state_dict(self.image_coder.state_dict())  # equal meanings start with equal codes
        self.register_buffer("label_weights", torch.from_numpy(data.labels.any(axis=1)).float())
        self.outputs: Tensor | None = None  # (2, N, classes + dimensions) of the first stage, once it is finished
        self.kept_dropout = kept_dropout(len(data)) if self.classes else 0.0

    def begin_epoch(self, epoch: int, data: TrainingSet) -> None:
        """Check the labels early; between the stages, store the outputs; then make tanh steeper.

        Dropout falls where there are labels: items that were trained on are then remembered better. What few items are
        remembered by does not help with others, so their dropout is kept, and the coders receive outputs with dropout.
        """
        if epoch < self.first_stage:
            if self.config.check_labels and epoch == math.ceil(_CHECK * self.first_stage):
                self._check_labels(data)
            if self.classes:
                rest = 1 - (epoch + 0.5) / self.first_stage
                self._set_dropout(max(self.kept_dropout, min(1.0, rest / _ANNEALING)))
            return
        if self.outputs is None or self.kept_dropout:
            self._set_dropout(self.kept_dropout)
            self.outputs = torch.empty(2, len(data), self.classes + self.config.embedding, dtype=torch.float16)
            for batch, outputs in self._predictions(data, np.arange(len(data)), dropout=self.kept_dropout > 0):
                self.outputs[:, batch.rows] = joint(outputs, self.classes).half()
        progress = (epoch - self.first_stage + 0.5) / self.second_stage
        for coder in (self.image_coder, self.text_coder):
            coder.steepness.fill_(steepness_at(progress, self.config.steepness))

    def _set_dropout(self, share: float) -> None:
        for network in (self.image_network, self.text_network):
            network.dropout = network.initial_dropout * share

    def _check_labels(self, data: TrainingSet) -> None:
        labelled = np.flatnonzero(data.labels.any(axis=1))
        if len(labelled) < _MIN_CHECKED:
            return
        sample = labelled[np.linspace(0, len(labelled) - 1, min(len(labelled), _BLOCK)).astype(np.int64)]
        ((items, outputs),) = self._predictions(data, sample)
        model = fit_label_model(outputs[..., : self.classes], items.labels, items.present)
        for batch, found in self._predictions(data, labelled):
            logits = found[..., : self.classes]
            self.label_weights[batch.rows] = probability_correct(logits, batch.labels, model, batch.present)

    @torch.no_grad()
    def _predictions(
        self, data: TrainingSet, rows: IntArray, *, dropout: bool = False
    ) -> Iterator[tuple[Batch, Tensor]]:
        """Blocks of items with the outputs (2, n, classes + dimensions) of both networks."""
        training = self.training
        self.eval()
        self.image_network.training = self.text_network.training = dropout  # but not their normalisation
        for start in range(0, len(rows), _BLOCK):
            batch = data.batch(rows[start : start + _BLOCK])
            yield batch, torch.stack([self.image_network(batch.images), self.text_network(batch.texts)])
        self.train(training)

    def forward(self, batch: Batch) -> Losses:
        return self._learn_meaning(batch) if self.outputs is None else self._learn_codes(batch, self.outputs)

    def _learn_meaning(self, batch: Batch) -> Losses:
        """Classification of labelled images and texts; contrast of each pair with the other pairs of the batch."""
        embeddings, terms = [], {}
        weights = self.label_weights[batch.rows]
        paired = batch.present.all(dim=0)
        sides = (("image labels", self.image_network, batch.images), ("text labels", self.text_network, batch.texts))
        for (name, network, features), has in zip(sides, batch.present, strict=True):
            if has.sum() < _MIN_ITEMS:  # too few to normalise
                return Losses({"pairs": torch.zeros((), requires_grad=True)})
            outputs = network(features if has.all() else features[has])
            embeddings.append(F.normalize(outputs[paired[has], self.classes :], dim=1))
            if self.classes:
                losses = classification_loss(outputs[:, : self.classes], batch.labels[has])
                terms[name] = (weights[has] * losses).sum() / len(has)
        if paired.sum() >= _MIN_ITEMS:
            similarities = self.log_scale.exp().clamp(max=100.0) * embeddings[0] @ embeddings[1].T
            own = torch.arange(len(similarities))
            terms["pairs"] = (F.cross_entropy(similarities, own) + F.cross_entropy(similarities.T, own)) / 2
        return Losses(terms or {"pairs": torch.zeros((), requires_grad=True)})

    def _learn_codes(self, batch: Batch, outputs: Tensor) -> Losses:
        """Rank the texts of a batch for its images and vice versa; they need not belong to the same items."""
        images, texts = (has.nonzero().ravel() for has in batch.present)
        if min(len(images), len(texts)) < _MIN_ITEMS:
            return Losses({"ranking": torch.zeros((), requires_grad=True)})
        z_images = self.image_coder(outputs[0, batch.rows[images]].float())
        z_texts = self.text_coder(outputs[1, batch.rows[texts]].float())
        targets = Targets(batch, self.label_weights[batch.rows], images, texts, gain=self.config.gain)
        losses = [targets.loss(z_images[:, :n], z_texts[:, :n], own=self.config.own) for n in self._lengths()]
        return Losses({"ranking": torch.stack(losses).sum()})

    def _lengths(self) -> list[int]:
        """The whole code and some of its prefixes, drawn at random."""
        prefixes = prefix_lengths(self.config.bits)
        drawn = torch.randperm(len(prefixes))[:_PREFIXES].tolist()
        return [self.config.bits, *(prefixes[each] for each in drawn)]

    def export(self) -> HashFunctions:
        """The hash functions as plain arrays: hidden layer, probabilities and embedding, coder."""
        return {
            "image": HashFunction((*self.image_network.export(self.classes), *self.image_coder.export().layers)),
            "text": HashFunction((*self.text_network.export(self.classes), *self.text_coder.export().layers)),
        }

    def facts(self) -> dict[str, Any]:
        """The lengths that are codes, and the mean probability that labels are correct."""
        labelled = self.label_weights[self.label_weights > 0]
        trusted = round(labelled.mean().item(), 4) if len(labelled) else None
        return {"prefixes": prefix_lengths(self.config.bits), "trusted": trusted}


class Targets:
    """What the codes of a batch should rank, images for texts and texts for images, at all lengths.

    A query with labels ranks the labelled items by the gains of shared labels, weighted by how probable the labels are.
    A query without labels ranks the items by the similarity of their texts to its own, and its counterpart first. In
    both cases the counterpart has a further share, which depends on the length.

    ``weights`` (n,) is how probable the labels of each item are, 0 without labels; ``images`` and ``texts`` are the
    rows of the batch with an image and with a text; ``gain`` is the base of the gains.
    """

    def __init__(self, batch: Batch, weights: Tensor, images: Tensor, texts: Tensor, *, gain: float) -> None:
        labels, (is_labelled_image, is_labelled_text) = batch.labels, (weights[images] > 0, weights[texts] > 0)
        self.labelled = is_labelled_image, is_labelled_text
        shared, same = labels[images] @ labels[texts].T, images[:, None] == texts
        self.pairs = same.nonzero(as_tuple=True)
        to_text = target_shares(shared, base=gain, weights=weights[texts]) * weights[images, None]
        to_image = target_shares(shared.T, base=gain, weights=weights[images]) * weights[texts, None]
        if not (is_labelled_image.all() and is_labelled_text.all()):
            to_text = torch.where(is_labelled_image[:, None], to_text, _similar_texts(batch, images, texts, same))
            to_image = torch.where(is_labelled_text[:, None], to_image, _similar_texts(batch, texts, images, same.T))
        self.both = to_text + to_image.T
        # The target of a query without a counterpart or without relevant items sums to less than 1.
        self.masses = [
            (to_text.sum(dim=1), same.any(dim=1).float()),
            (to_image.sum(dim=1), same.any(dim=0).float()),
        ]

    def loss(self, z_images: Tensor, z_texts: Tensor, *, own: float) -> Tensor:
        """Cross-entropy of softmax(-distance / temperature) with the targets, summed over both directions.

        The relaxed codes, (n, L) of images and (m, L) of texts, may be prefixes; ``own`` is the share of the
        counterpart at short lengths. Both softmaxes are normalised from one matrix of exponentials; a labelled query
        counts labelled items only, because whether others are relevant is not known.
        """
        length = z_images.shape[1]
        finer = max(0.0, math.log2(length / _SHORT))  # long prefixes have room for finer meanings
        own = min(max(own, 0.75), own + _FINER_SHARE * finer)
        sharpness = min((_SHARPNESS + _FINER_SHARPNESS * finer) / length, 0.5)
        logits = (0.5 * sharpness * z_images) @ z_texts.T  # -distance / temperature, up to a constant
        most = logits.detach().amax()
        exponentials = (logits - most).exp()
        loss = -(1 - own) * (self.both * logits).sum() - 2 * own * logits[self.pairs].sum()
        labelled_images, labelled_texts = self.labelled
        sides = (exponentials, labelled_images, labelled_texts), (exponentials.T, labelled_texts, labelled_images)
        for (each, queries, items), (others, counterparts) in zip(sides, self.masses, strict=True):
            sums = each.sum(dim=1)
            if not items.all():
                sums = torch.where(queries, each @ items.float(), sums)
            loss = loss + (((1 - own) * others + own * counterparts) * (sums.clamp_min(1e-30).log() + most)).sum()
        return loss / max(len(z_images), len(z_texts))


def _similar_texts(batch: Batch, queries: Tensor, items: Tensor, same: Tensor) -> Tensor:
    """The target of queries without labels: similarity of texts, where there are any, and the counterpart."""
    texts, has_text = F.normalize(batch.texts, dim=1), batch.present[1]
    similar = (texts[queries] @ texts[items].T / _TEXT_TEMPERATURE).masked_fill(~has_text[items], -math.inf)
    similar = similar.softmax(dim=1).nan_to_num(0.0) * has_text[queries, None]
    return torch.lerp(same.float(), similar, _TEXT_SHARE)


class JointNetwork(nn.Module):
    """D -> hidden -> label logits and embedding, with normalisation over the batch and dropout at input and hidden.

    Features that are never negative enter as square roots.
    """

    def __init__(self, features: Features, outputs: int, *, hidden: int, dropout: float) -> None:
        super().__init__()
        self.root = bool(features.min() >= 0)
        self.scaling = InputScaling(np.sqrt(features) if self.root else features)
        self.hidden, self.norm = nn.Linear(features.shape[1], hidden), nn.BatchNorm1d(hidden)
        self.output = nn.Linear(hidden, outputs)
        self.initial_dropout = self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        x = self.scaling(x.sqrt() if self.root else x)
        h = F.relu(self.norm(self.hidden(self._drop(x, self.dropout / 2))))
        outputs: Tensor = self.output(self._drop(h, self.dropout))
        return outputs

    def _drop(self, x: Tensor, rate: float) -> Tensor:
        return x * dropout_mask(x, rate) if self.training and round(rate * 256) else x

    @torch.no_grad()
    def export(self, classes: int) -> tuple[RootLayer | Layer | JointLayer, ...]:
        """The trained network as layers of plain arrays."""
        mean, variance = cast("Tensor", self.norm.running_mean), cast("Tensor", self.norm.running_var)
        gain = self.norm.weight / torch.sqrt(variance + self.norm.eps)
        weight = gain[:, None] * self.hidden.weight
        bias = self.norm.bias + gain * (self.hidden.bias - mean) + weight @ self.scaling.offset
        first = Layer(np.ascontiguousarray((weight * self.scaling.scale).numpy().T), bias.numpy(), "relu")
        outputs = np.ascontiguousarray(self.output.weight.numpy().T)
        second = JointLayer(outputs, self.output.bias.numpy().copy(), np.array([classes], np.float32))
        root = (RootLayer(np.array([first.inputs], np.float32)),) if self.root else ()
        return (*root, first, second)


def _network(features: Features, classes: int, config: NESTConfig) -> JointNetwork:
    dropout = config.dropout
    if dropout is None:
        dropout = max(_DROPOUT if classes else _DROPOUT_OF_PAIRS, dropout_rate(features.shape[0]))
    return JointNetwork(features, classes + config.embedding, hidden=config.hidden, dropout=dropout)


def _coder(classes: int, config: NESTConfig) -> HashNetwork:
    inputs = np.full((1, classes + config.embedding), 1.0, np.float32)
    inputs *= math.sqrt((2 if classes else 1) / inputs.size)  # the norm of unit vectors side by side
    coder = HashNetwork(InputScaling(inputs, "norm"), config.bits, hidden=config.width, batch_norm=True)
    if coder.norm is not None:
        coder.norm.weight.requires_grad_(False)  # a trainable gain would undo the steepness
    return coder


def kept_dropout(items: int) -> float:
    """The share of the dropout that items with labels keep to the end of both stages.

    Example:
        >>> [kept_dropout(items) for items in (500, 2000, 6000, 10_000, 50_000)]
        [1.0, 1.0, 0.5, 0.0, 0.0]
    """
    return min(1.0, max(0.0, (_MANY - items) / (_MANY - _FEW)))


def steepness_at(progress: float, final: float) -> float:
    """The steepness of tanh at a point of the second stage between 0 and 1: linear from 1 to ``final``.

    Example:
        >>> [round(steepness_at(p, 16.0), 4) for p in (0.0, 0.4, 0.8, 1.0)]
        [1.0, 8.5, 16.0, 16.0]
    """
    return 1 + (final - 1) * min(1.0, progress / _STEEPENING)


def square_roots(logits: Tensor) -> Tensor:
    """The square roots of the probabilities with these logits.

    Example:
        >>> round(square_roots(torch.tensor(0.0)).item(), 4)  # of one half
        0.7071
    """
    return torch.exp(0.5 * F.logsigmoid(logits))


def joint(outputs: Tensor, classes: int) -> Tensor:
    """What a coder receives: square roots of the label probabilities and the embedding, each of unit length.

    Example:
        >>> joint(torch.tensor([[0.0, 3.0, 4.0]]), classes=1).tolist()
        [[1.0, 0.6..., 0.8...]]
    """
    roots = F.normalize(square_roots(outputs[..., :classes]), dim=-1)
    return torch.cat([roots, F.normalize(outputs[..., classes:], dim=-1)], dim=-1)


def prefix_lengths(bits: int) -> list[int]:
    """Half the length, a quarter, ... down to 32 bits.

    Example:
        >>> prefix_lengths(256), prefix_lengths(48)
        ([128, 64, 32], [])
    """
    lengths = [bits >> halvings for halvings in range(1, 10)]
    return [length for length in lengths if length >= _SHORTEST]
