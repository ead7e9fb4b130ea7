"""RMSH: robust multilevel semantic hashing (Song, Zhao, Tan, 2020), the method this project is named after.

Two networks map images and texts to relaxed codes z in (-1, 1)^K. A triplet of items must keep the order of its label
similarities, with a margin of delta times their difference, and items that share no label must stay delta apart; delta
follows from coding-theory bounds (``rmsh.coding``). Two small networks generate pseudo-codes, whose labels are the
union and the intersection of two items' labels; a classifier predicts the labels of every code; and quantisation draws
z to the common binary code b of an item's image and text. Equation names are those of the paper.

Where the paper is silent, an option decides; DISCREPANCIES.md lists these options and their effects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from rmsh.coding.bounds import check_delta, choose_delta
from rmsh.core.types import FloatArray, LabelArray
from rmsh.data.labels import class_frequency
from rmsh.methods.deep import HashObjective, NetworkConfig, NetworkMethod
from rmsh.training.loop import Batch, Losses, Shape, TrainingSet
from rmsh.training.losses import (
    MEMBERS_OF_PAIR,
    Order,
    classification_loss,
    draw,
    margin_triplet_loss,
    order_by,
    pairs_of,
    quantisation_loss,
    signs,
    similarity,
    squared_distances,
)
from rmsh.training.networks import Scaling  # noqa: TC001  # pydantic reads it


class RMSHConfig(NetworkConfig):
    """Options of RMSH; the defaults differ from the paper where validation was better (DISCREPANCIES.md)."""

    delta: float | None = Field(None, gt=0, description="minimum distance of dissimilar items; none: from the bounds")
    confidence: float = Field(0.9, gt=0.5, lt=1, description="p of the lower bound of delta")
    distance: Literal["hamming", "raw"] = Field("hamming", description="|z1-z2|^2/4, in bits; or |z1-z2|^2 as printed")

    lambda1: float = Field(0.3, ge=0, description="weight of intra-modal triplets")
    lambda2: float = Field(3.0, ge=0, description="weight of inter-modal triplets")
    lambda3: float = Field(0.3, ge=0, description="weight of the classification of pseudo-codes")
    lambda4: float = Field(0.1, ge=0, description="weight of the quantisation loss")
    positive_weight: float | None = Field(None, gt=0, description="w_p; none: from the label frequencies")

    classification: bool = Field(True, description="classification loss; false is the ablation RMSH-C")
    triplet: bool = Field(True, description="triplet loss; false is the ablation RMSH-T")
    pseudo_codes: bool = Field(True, description="pseudo-codes; false is the ablation RMSH-P")

    triplets_per_item: int = Field(4, ge=1, description="triplets drawn for each item of a batch")
    inter_anchor: Literal["max_tags", "query"] = Field("query", description="reference of inter-modal triplets")
    mask_equal: bool = Field(True, description="omit the ranking of two equally similar partners")
    mask_empty: bool = Field(True, description="omit pseudo-codes with an empty label set")
    class_reduction: Literal["sum", "mean"] = Field("sum", description="of the cross-entropy over the classes")
    heads: Literal["shared", "each"] = Field("shared", description="one classifier, or one per modality")
    pseudo_networks: Literal["shared", "each"] = Field("shared", description="one f_u and f_t, or one per modality")
    code_update: Literal["batch", "epoch"] = Field("batch", description="b from this batch, or from the last epoch")

    activation: Literal["tanh", "relu"] = Field("relu", description="activation of the hidden layer")
    batch_norm: bool = Field(True, description="batch normalisation before the last tanh")
    dropout: float = Field(0.2, ge=0, lt=1, description="dropout rate in the hidden layer")
    scaling: Scaling = Field("norm", description="of the features: one factor for all, or each standardised")

    epochs: int | None = Field(None, ge=1, description="passes over the pairs; none: 10, more for few pairs")
    batch: int | None = Field(None, ge=3, description="items per step; none: 256, fewer for few pairs")
    learning_rate: float = Field(5e-3, gt=0, description="learning rate of Adam; the peak if it varies")
    schedule: Shape = Field("one-cycle", description="course of the learning rate")

    @model_validator(mode="after")
    def _delta_fits_the_code(self) -> Self:
        if self.delta is not None:
            check_delta(self.delta, self.bits)
        return self


# What the paper states; where it is silent, the defaults given in DISCREPANCIES.md.
PAPER: dict[str, Any] = {
    "lambda1": 0.01,
    "lambda2": 0.1,
    "lambda3": 0.1,
    "lambda4": 0.1,
    "positive_weight": 30.0,
    "triplets_per_item": 1,
    "inter_anchor": "max_tags",
    "activation": "tanh",
    "batch_norm": False,
    "dropout": 0.0,
    "scaling": "standardise",
    "epochs": 50,
    "batch": 128,
    "learning_rate": 1e-3,
    "schedule": "constant",
}

# The same, with the parts of the printed formulas that are probably errors.
PAPER_LITERAL: dict[str, Any] = {**PAPER, "distance": "raw", "mask_equal": False, "mask_empty": False}


# Which members of a triplet are texts: {x1,x2,x3} and {y1,x2,x3}, {x1,y2,x3}, {x1,x2,y3} of the image loss, then the
# same with x and y exchanged, of the text loss.
_IS_TEXT = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1), (0, 1, 1), (1, 0, 1), (1, 1, 0))
# Indices of their distances, pair by pair, in a tensor of (modality of the first, modality of the second, pair).
_DISTANCES = torch.tensor(
    [6 * is_text[a] + 3 * is_text[b] + i for is_text in _IS_TEXT for i, (a, b) in enumerate(MEMBERS_OF_PAIR)]
)

# Eq. (final_loss1) sums classification and quantisation over the three members of a triplet. Each item occurs in three
# triplets, so passing every item once and multiplying by three gives the same expectation.
_MEMBERS = 3


class RMSH(NetworkMethod):
    """Robust multilevel semantic hashing.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> method = RMSH(bits=16, epochs=1, hidden=8).fit(generate_pairs(60))
        >>> method.encode(generate_pairs(60).images, "image").packed.shape
        (60, 2)
    """

    name = "rmsh"
    summary = "margin-adaptive triplets with a minimum distance from coding theory, pseudo-codes, classification"
    reference = "Song, Zhao, Tan: Deep Robust Multilevel Semantic Cross-Modal Hashing, 2020"
    Config = RMSHConfig
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": PAPER, "paper-literal": PAPER_LITERAL}
    default_epochs = 10
    config: RMSHConfig

    def _objective(self, data: TrainingSet) -> Objective:
        return Objective(data, self.config)


def positive_weights(labels: LabelArray, given: float | None) -> FloatArray:
    """The weight of a positive label in the classification loss, for each class (C,), from labels (n, C).

    Without a given weight it is the square root of negatives per positive: a rare class counts more, but not so much
    that its few items dominate the loss.
    """
    if given is not None:
        return np.full(labels.shape[1], given, dtype=np.float32)
    share = np.maximum(class_frequency(labels), 1 / len(labels))
    return np.sqrt((1 - share) / share).clip(min=1.0).astype(np.float32)


class _Linear(nn.Module):
    """A linear map of both modalities, (2, n, inputs) to (2, n, outputs): one shared matrix, or one per modality."""

    def __init__(self, inputs: int, outputs: int, *, sharing: str, bias: bool) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(inputs, outputs, bias=bias) for _ in range(1 if sharing == "shared" else 2))

    def forward(self, both: Tensor) -> Tensor:
        parts = both.chunk(len(self.maps))
        return torch.cat([part_map(part) for part_map, part in zip(self.maps, parts, strict=True)])


class PseudoCodes(NamedTuple):
    """z4 = f_u(z1, z2) with the union of two items' labels, and z5 = f_t(z1, z2) with their intersection."""

    partner: Tensor  # (n,) item 2 of every item 1
    union: Tensor  # (2, n, K)
    union_labels: Tensor  # (n, C)
    intersection: Tensor  # (2, n, K)
    intersection_labels: Tensor  # (n, C)
    counted: Tensor  # (n,) 1, or 0 where the intersection is empty and masked


class Objective(HashObjective):
    """Eq. (final_loss1) over a batch: hash networks, pseudo-code networks, classifier.

    Relaxed codes of both modalities are one tensor z (2, n, K), images before texts.
    """

    positive_weight: Tensor
    codes: Tensor

    def __init__(self, data: TrainingSet, config: RMSHConfig) -> None:
        super().__init__(data, config.bits, activation=config.activation, **config.network())
        bits, classes = config.bits, data.labels.shape[1]
        self.config = config
        self.explained: dict[str, Any] = {"delta": config.delta, "reason": "given by the user"}
        if config.delta is None:
            self.explained = choose_delta(data.labels, bits, confidence=config.confidence).to_json()
        self.delta = float(self.explained["delta"])
        self.unit = 0.25 if config.distance == "hamming" else 1.0
        self.head = _Linear(bits, classes, sharing=config.heads, bias=True)
        self.union = _Linear(2 * bits, bits, sharing=config.pseudo_networks, bias=False)
        self.intersection = _Linear(2 * bits, bits, sharing=config.pseudo_networks, bias=False)
        self.register_buffer("positive_weight", torch.from_numpy(positive_weights(data.labels, config.positive_weight)))
        stored = len(data) if config.code_update == "epoch" else 0
        self.register_buffer("codes", torch.zeros(stored, bits, dtype=torch.int8))

    def facts(self) -> dict[str, Any]:
        """Delta with its reason, and the range of w_p."""
        weights = [round(float(w), 3) for w in (self.positive_weight.min(), self.positive_weight.max())]
        return {"delta": self.explained, "positive_weight": weights}

    def forward(self, batch: Batch) -> Losses:
        config, n, labels = self.config, len(batch.labels), batch.labels
        z = torch.stack([self.image(batch.images), self.text(batch.texts)])
        members = draw(n, config.triplets_per_item)
        pseudo = self._pseudo_codes(z, labels, members[1, :n]) if config.pseudo_codes else None
        terms = {"quantisation": _MEMBERS * config.lambda4 * self._quantisation(z, batch.rows)}
        if config.classification:
            terms |= self._classification(z, labels, pseudo)
        if config.triplet:
            intra, inter = self._triplets(z, labels, members)
            terms |= {"intra": config.lambda1 * intra, "inter": config.lambda2 * inter}
            if pseudo is not None:
                terms["pseudo intra"] = config.lambda1 * self._pseudo_triplets(z, labels, pseudo)
        if pseudo is None:
            return Losses(terms)
        return Losses(terms, {"empty": float((pseudo.intersection_labels.sum(dim=1) == 0).float().mean())})

    def _pseudo_codes(self, z: Tensor, labels: Tensor, partner: Tensor) -> PseudoCodes:
        joined = torch.cat([z, z[:, partner]], dim=2)
        union_labels, shared = torch.maximum(labels, labels[partner]), labels * labels[partner]
        counted = (shared.sum(dim=1) > 0).to(z.dtype) if self.config.mask_empty else torch.ones(len(labels))
        z4, z5 = torch.tanh(self.union(joined)), torch.tanh(self.intersection(joined))
        return PseudoCodes(partner, z4, union_labels, z5, shared, counted)

    def _quantisation(self, z: Tensor, rows: Tensor) -> Tensor:
        """||z - b||^2 with b = sgn(z_image + z_text), Eq. (final_loss2)."""
        b = signs(z[0] + z[1])
        if len(self.codes):
            last = self.codes[rows].to(z.dtype)
            self.codes[rows] = b.to(torch.int8)
            b = torch.where(last == 0, b, last)  # zero: no code stored yet
        return quantisation_loss(z, b).sum() / len(rows)

    def _classification(self, z: Tensor, labels: Tensor, pseudo: PseudoCodes | None) -> dict[str, Tensor]:
        """Eq. (classification_loss) of codes and pseudo-codes, in one pass through the classifier."""
        n, codes, tags = len(labels), [z], [labels]
        if pseudo is not None:
            codes += [pseudo.union, pseudo.intersection]
            tags += [pseudo.union_labels, pseudo.intersection_labels]
        logits = self.head(torch.cat(codes, dim=1))
        losses = classification_loss(logits, torch.cat(tags), positive_weight=self.positive_weight).sum(dim=0) / n
        if self.config.class_reduction == "mean":
            losses = losses / labels.shape[1]
        terms = {"classification": _MEMBERS * losses[:n].sum()}
        if pseudo is not None:
            unions, intersections = losses[n:].chunk(2)
            weighted = unions.sum() + (intersections * pseudo.counted).sum()
            terms["pseudo classification"] = self.config.lambda3 * weighted
        return terms

    def _triplets(self, z: Tensor, labels: Tensor, members: Tensor) -> tuple[Tensor, Tensor]:
        """Eq. (triplet_loss) without pseudo-codes: the intra-modal and the inter-modal sum, averaged over triplets."""
        n, sizes = len(labels), labels.sum(dim=1)
        first, second = pairs_of(members)
        similarities = similarity((labels @ labels.T)[first, second], sizes[first], sizes[second])
        # (2, 2, 3, t): modality of the first member, modality of the second, pair, triplet.
        modality = torch.tensor([0, n])[:, None, None, None]
        every = squared_distances(z.flatten(0, 1), first + modality, second + modality.transpose(0, 1)) * self.unit
        distances = every.flatten(0, 2).index_select(0, _DISTANCES).view(2, 4, 3, -1)
        reference = sizes[members].argmax(dim=0).expand(4, -1)
        if self.config.inter_anchor == "query":  # the member of the other modality
            reference = torch.cat([reference[:1], torch.arange(3)[:, None].expand_as(members)])
        losses = self._margin(distances, order_by(reference, similarities)).mean(dim=-1).sum(dim=0)
        return losses[0], losses[1:].sum()

    def _margin(self, distances: Tensor, order: Order) -> Tensor:
        return margin_triplet_loss(distances, order, delta=self.delta, mask_equal=self.config.mask_equal)

    def _pseudo_triplets(self, z: Tensor, labels: Tensor, pseudo: PseudoCodes) -> Tensor:
        """L_t of {4,1,2} and {1,2,5}. z4 comes first, so it is the reference even if its label set is no larger."""
        z2, l2 = z[:, pseudo.partner], labels[pseudo.partner]
        losses = self._triplets_of((pseudo.union, z, z2), (pseudo.union_labels, labels, l2)).sum()
        # The reference, the larger of two label sets, is equally similar to the other and to their intersection, so the
        # two masks leave nothing.
        if not (self.config.mask_equal and self.config.mask_empty):
            tags = (labels, l2, pseudo.intersection_labels)
            losses = losses + (self._triplets_of((z, z2, pseudo.intersection), tags) * pseudo.counted).sum()
        return losses / len(labels)

    def _triplets_of(self, codes: Sequence[Tensor], tags: Sequence[Tensor]) -> Tensor:
        """L_t of three codes, each (2, n, K), with their labels, each (n, C); (2, n)."""
        sizes = torch.stack([tag.sum(dim=1) for tag in tags])
        similarities = torch.stack(
            [similarity((tags[a] * tags[b]).sum(dim=1), sizes[a], sizes[b]) for a, b in MEMBERS_OF_PAIR]
        )
        distances = (
            torch.stack([(codes[a] - codes[b]).square().sum(dim=2) for a, b in MEMBERS_OF_PAIR], dim=1) * self.unit
        )
        return self._margin(distances, order_by(sizes.argmax(dim=0), similarities))
