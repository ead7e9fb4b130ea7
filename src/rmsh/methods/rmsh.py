"""RMSH: robust multilevel semantic hashing (Song, Zhao, Tan, 2020), the method this project is named after.

Two networks map pictures and texts to relaxed codes z in (-1, 1)^K. A triplet of items must keep the order of its label
similarities, with a margin of delta times their difference, and items that share no label must stay delta apart, where
delta follows from coding-theory bounds (``rmsh.coding``). Two small networks make pseudo-codes, whose labels are the
union and the intersection of two items' labels; a classifier keeps every code true to its own labels; and quantisation
draws z to the common binary code b of an item's picture and text. Equation names are those of the paper.

Where the paper is silent, an option decides; DISCREPANCIES.md lists them and what each is worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from rmsh.coding.bounds import check_delta, choose_delta
from rmsh.data.labels import class_frequency
from rmsh.methods.base import Method, MethodConfig, Run
from rmsh.model import Model
from rmsh.training.loop import Batch, Outcome, Schedule, TrainingSet, train
from rmsh.training.losses import (
    classification_loss,
    common_code,
    margin_triplet_loss,
    quantisation_loss,
    squared_distances,
)
from rmsh.training.networks import HashNetwork, InputScaling, Scaling
from rmsh.training.triplets import Order, draw, order_by_anchor, order_by_tags, pairs_of, similarity

if TYPE_CHECKING:
    from typing import Self

    from rmsh.data.pairs import Pairs
    from rmsh.hash_function import HashFunction
    from rmsh.types import FloatArray, LabelArray, Modality

__all__ = ["RMSH", "RMSHConfig", "positive_weights"]

# Which members of a triplet are texts: both intra-modal triplets first, then {y1,x2,x3}, {x1,y2,x3}, {x1,x2,y3} of the
# picture's loss and their mirror images of the text's loss.
_PLACES = ((0, 0, 0), (1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 0))
_INTRA = 2

# Eq. (final_loss1) sums classification and quantisation over the three members of a triplet. Each item is one of three
# members in three triplets, so passing every item once and multiplying by three gives the same expectation.
_MEMBERS = 3


# Where the user leaves the epochs to us.
_LEAST_STEPS = 800


class RMSHConfig(MethodConfig):
    """Options of RMSH; the defaults differ from the paper where it was better on validation (DISCREPANCIES.md)."""

    delta: float | None = Field(None, gt=0, description="minimum distance of dissimilar items; None: from the bounds")
    confidence: float = Field(0.9, gt=0.5, lt=1, description="p of the lower bound of delta")
    distance: Literal["hamming", "raw"] = Field("hamming", description="|z1-z2|^2/4, in bits; or |z1-z2|^2 as printed")

    lambda1: float = Field(0.3, ge=0, description="weight of intra-modal triplets")
    lambda2: float = Field(3.0, ge=0, description="weight of inter-modal triplets")
    lambda3: float = Field(1.0, ge=0, description="weight of the pseudo-codes' classification")
    lambda4: float = Field(0.1, ge=0, description="weight of quantisation")
    positive_weight: float | None = Field(None, gt=0, description="w_p; None: from the label frequencies")

    classification: bool = Field(True, description="False is the ablation RMSH-C")
    triplet: bool = Field(True, description="False is the ablation RMSH-T")
    pseudo_codes: bool = Field(True, description="False is the ablation RMSH-P")

    triplets_per_item: int = Field(4, ge=1, description="triplets drawn for each item of a batch")
    inter_anchor: Literal["max_tags", "query"] = Field("max_tags", description="the reference of inter-modal triplets")
    mask_equal: bool = Field(True, description="no ranking of two partners that are equally similar")
    mask_empty: bool = Field(True, description="no terms for a pseudo-code whose label set is empty")
    class_reduction: Literal["sum", "mean"] = Field("sum", description="of the cross-entropy over the classes")
    heads: Literal["shared", "each"] = Field("shared", description="one classifier, or one for each modality")
    pseudo_networks: Literal["shared", "each"] = Field("shared", description="one f_u and f_t, or one each a modality")
    code_update: Literal["batch", "epoch"] = Field("batch", description="b from this batch, or from the last epoch")

    hidden: int = Field(1024, ge=1, description="width of the hidden layer")
    activation: Literal["tanh", "relu"] = Field("relu", description="of the hidden layer")
    batch_norm: bool = Field(True, description="batch normalisation before the last tanh")
    dropout: float = Field(0.3, ge=0, lt=1, description="of the hidden layer")
    scaling: Scaling = Field("norm", description="of the features: one factor for all, or each standardised")

    epochs: int | None = Field(None, ge=1, description="passes over the pairs; None: 10, more where pairs are few")
    batch: int | None = Field(None, ge=3, description="items a step; None: 512, fewer where pairs are few")
    learning_rate: float = Field(5e-3, gt=0, description="of Adam; the peak where it varies")
    schedule: Literal["constant", "one-cycle"] = Field("one-cycle", description="of the learning rate")

    @model_validator(mode="after")
    def _delta_fits_the_code(self) -> Self:
        if self.delta is not None:
            check_delta(self.delta, self.bits)
        return self


# Everything the paper states, and METHODS' default where it does not.
_PAPER: dict[str, Any] = {
    "lambda1": 0.01,
    "lambda2": 0.1,
    "lambda3": 0.1,
    "lambda4": 0.1,
    "positive_weight": 30.0,
    "triplets_per_item": 1,
    "activation": "tanh",
    "batch_norm": False,
    "dropout": 0.0,
    "scaling": "standardise",
    "epochs": 50,
    "batch": 128,
    "learning_rate": 1e-3,
    "schedule": "constant",
}


class RMSH(Method):
    """Robust multilevel semantic hashing.

    Example:
        >>> from rmsh.data.generated import generate_pairs
        >>> method = RMSH(bits=16, epochs=1, hidden=8).fit(generate_pairs(60))
        >>> method.encode(generate_pairs(60).images, "image").packed.shape
        (60, 2)
    """

    name = "rmsh"
    summary = "margin-adaptive triplets with a minimum distance from coding theory, pseudo-codes, classification"
    reference = "Song, Zhao, Tan: Deep Robust Multilevel Semantic Cross-Modal Hashing, 2020"
    Config = RMSHConfig
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": _PAPER,
        "paper-literal": {**_PAPER, "distance": "raw", "mask_equal": False, "mask_empty": False},
    }
    config: RMSHConfig

    def _learn(self, pairs: Pairs, run: Run, facts: dict[str, Any]) -> Model:
        config = self.config
        labels = np.asarray(pairs.labels)
        delta, facts["delta"] = self._delta(labels)
        weights = positive_weights(labels, config.positive_weight)
        facts["positive_weight"] = [round(float(w), 3) for w in np.unique(weights)[[0, -1]]]
        data = TrainingSet(pairs.features("image"), pairs.features("text"), labels)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            objective = Objective(data, config, delta=delta, positive_weight=weights)
        schedule = self._schedule(len(data))
        facts |= {"epochs": schedule.epochs, "batch": schedule.batch}
        facts["history"] = train(objective, data, schedule=schedule, seed=config.seed, **self._run_options(pairs, run))
        functions: dict[Modality, HashFunction] = {"image": objective.image.export(), "text": objective.text.export()}
        return Model(functions, self.name, config.model_dump(), facts)

    def _schedule(self, items: int) -> Schedule:
        """Few pairs make few steps: batches shrink and epochs multiply until there are enough to learn from."""
        config = self.config
        batch = min(config.batch or min(512, max(32, items // 16)), items)
        epochs = config.epochs or max(10, -(-_LEAST_STEPS // (items // batch)))
        return Schedule(epochs, batch, config.learning_rate, config.schedule)

    def _delta(self, labels: LabelArray) -> tuple[float, dict[str, Any]]:
        """The minimum distance of dissimilar items, and why it is that."""
        if self.config.delta is not None:
            return self.config.delta, {"delta": self.config.delta, "reason": "given by the user"}
        choice = choose_delta(labels, self.config.bits, confidence=self.config.confidence)
        return float(choice.delta), choice.to_json()


def positive_weights(labels: LabelArray, given: float | None) -> FloatArray:
    """The weight of a positive label in the classification loss, for each class (C,).

    Args:
        labels: (n, C) of the training items.
        given: one weight for all classes; None derives them: the square root of negatives per positive, so that a rare
            class counts more, but not so much that its few items rule the loss.
    """
    if given is not None:
        return np.full(labels.shape[1], given, dtype=np.float32)
    share = np.maximum(class_frequency(labels), 1 / len(labels))
    return np.sqrt((1 - share) / share).clip(min=1.0).astype(np.float32)


class _Linear(nn.Module):
    """A linear map of both modalities, (2n, inputs) with pictures before texts: one shared matrix, or one each."""

    def __init__(self, inputs: int, outputs: int, *, sharing: str, bias: bool) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(inputs, outputs, bias=bias) for _ in range(1 if sharing == "shared" else 2))

    def forward(self, both: Tensor) -> Tensor:
        parts = both.chunk(len(self.maps))
        return torch.cat([part_map(part) for part_map, part in zip(self.maps, parts, strict=True)])


class Objective(nn.Module):
    """Eq. (final_loss1) over a batch: hash networks, pseudo-codes networks, classifier.

    Relaxed codes of both modalities are one tensor z (2n, K), pictures before texts.
    """

    def __init__(self, data: TrainingSet, config: RMSHConfig, *, delta: float, positive_weight: FloatArray) -> None:
        super().__init__()
        self.config, self.delta = config, delta
        self.unit = 0.25 if config.distance == "hamming" else 1.0
        self.image, self.text = (
            HashNetwork(
                InputScaling(features, config.scaling),
                config.bits,
                hidden=config.hidden,
                activation=config.activation,
                batch_norm=config.batch_norm,
                dropout=config.dropout,
            )
            for features in (data.images, data.texts)
        )
        bits, classes = config.bits, data.labels.shape[1]
        self.head = _Linear(bits, classes, sharing=config.heads, bias=True)
        self.union = _Linear(2 * bits, bits, sharing=config.pseudo_networks, bias=False)
        self.intersection = _Linear(2 * bits, bits, sharing=config.pseudo_networks, bias=False)
        self.positive_weight: Tensor
        self.codes: Tensor
        self.register_buffer("positive_weight", torch.from_numpy(positive_weight))
        kept = len(data) if config.code_update == "epoch" else 0
        self.register_buffer("codes", torch.zeros(kept, bits, dtype=torch.int8))

    def forward(self, batch: Batch) -> Outcome:
        config, n, labels = self.config, len(batch.labels), batch.labels
        z = torch.cat([self.image(batch.images), self.text(batch.texts)])
        members = draw(n, config.triplets_per_item)
        terms = {"quantisation": _MEMBERS * config.lambda4 * self._quantisation(z, batch.rows)}
        watched: dict[str, float] = {}
        if config.classification:
            terms["classification"] = _MEMBERS * self._classification(z, labels)
        if config.triplet:
            intra, inter = self._triplets(z, labels, members)
            terms |= {"intra": config.lambda1 * intra, "inter": config.lambda2 * inter}
        if config.pseudo_codes:
            pseudo, watched["empty"] = self._pseudo(z, labels, members[1, :n])
            terms |= pseudo
        return Outcome(terms, watched)

    def _quantisation(self, z: Tensor, rows: Tensor) -> Tensor:
        """||z - b||^2 with b = sgn(z_image + z_text), Eq. (final_loss2)."""
        b = common_code(*z.detach().chunk(2))
        if len(self.codes):
            last = self.codes[rows].to(z.dtype)
            self.codes[rows] = b.to(torch.int8)
            b = torch.where(last == 0, b, last)  # zero: not seen yet
        return quantisation_loss(z, b.repeat(2, 1)).sum() / len(rows)

    def _classification(self, z: Tensor, labels: Tensor, weight: Tensor | None = None) -> Tensor:
        """Eq. (classification_loss) of both modalities; ``weight`` (n,) may leave items out."""
        losses = classification_loss(self.head(z), labels.repeat(2, 1), positive_weight=self.positive_weight)
        if self.config.class_reduction == "mean":
            losses = losses / labels.shape[1]
        if weight is not None:
            losses = losses * weight.repeat(2)
        return losses.sum() / len(labels)

    def _triplets(self, z: Tensor, labels: Tensor, members: Tensor) -> tuple[Tensor, Tensor]:
        """Eq. (triplet_loss) without pseudo-codes: the intra-modal and the inter-modal sum, a mean over triplets."""
        n, sizes = len(labels), labels.sum(dim=1)
        first, second = pairs_of(members)
        similarities = similarity((labels @ labels.T)[first, second], sizes[first], sizes[second])
        places = torch.tensor(_PLACES)[:, :, None] * n + members  # (8, 3, t)
        distances = squared_distances(z, *pairs_of(places)) * self.unit
        by_tags = order_by_tags(sizes[members], similarities)
        if self.config.inter_anchor == "max_tags":
            losses = self._margin(distances, by_tags)
            return losses[:_INTRA].sum(), losses[_INTRA:].sum()
        anchored = [
            self._margin(distances[[_INTRA + member, _INTRA + 3 + member]], order_by_anchor(member, similarities))
            for member in range(3)
        ]
        return self._margin(distances[:_INTRA], by_tags).sum(), torch.cat(anchored).sum()

    def _margin(self, distances: Tensor, order: Order) -> Tensor:
        losses = margin_triplet_loss(distances, order, delta=self.delta, mask_equal=self.config.mask_equal)
        return losses.mean(dim=-1)

    def _pseudo(self, z: Tensor, labels: Tensor, partner: Tensor) -> tuple[dict[str, Tensor], float]:
        """The terms of z4 = f_u(z1, z2) and z5 = f_t(z1, z2), and the share of empty intersections."""
        config, n = self.config, len(labels)
        z2 = torch.cat([part[partner] for part in z.chunk(2)])
        joined = torch.cat([z, z2], dim=1)
        z4, z5 = torch.tanh(self.union(joined)), torch.tanh(self.intersection(joined))
        l2 = labels[partner]
        l4, l5 = torch.maximum(labels, l2), labels * l2
        full = (l5.sum(dim=1) > 0).to(z.dtype)
        counted = full if config.mask_empty else torch.ones_like(full)
        terms: dict[str, Tensor] = {}
        if config.classification:
            pseudo = self._classification(z4, l4) + self._classification(z5, l5, counted)
            terms["pseudo classification"] = config.lambda3 * pseudo
        if config.triplet:
            # Both kinds of triplets at once: {4,1,2} and {1,2,5}. z4 stands first: where its label set is no larger
            # than a member's, it is still the reference.
            members = torch.stack([torch.cat(pair) for pair in ((z4, z), (z, z2), (z2, z5))])
            tags = torch.stack([torch.cat(pair) for pair in ((l4, l4, labels, labels), (labels, labels, l2, l2))])
            tags = torch.cat([tags, torch.cat([l2, l2, l5, l5])[None]])
            weight = torch.cat([torch.ones_like(counted).repeat(2), counted.repeat(2)])
            terms["pseudo intra"] = config.lambda1 * (self._pseudo_triplets(members, tags) * weight).sum() / n
        return terms, float(1 - full.mean())

    def _pseudo_triplets(self, z: Tensor, tags: Tensor) -> Tensor:
        """L_t of triplets of codes (3, t, K) with labels (3, t, C), (t,)."""
        first, second = [0, 0, 1], [1, 2, 2]
        sizes, shared = tags.sum(dim=2), (tags[first] * tags[second]).sum(dim=2)
        order = order_by_tags(sizes, similarity(shared, sizes[first], sizes[second]))
        distances = (z[first] - z[second]).square().sum(dim=2) * self.unit
        return margin_triplet_loss(distances, order, delta=self.delta, mask_equal=self.config.mask_equal)
