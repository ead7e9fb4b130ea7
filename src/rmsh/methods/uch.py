"""UCH: coupled cycle-GANs for unsupervised cross-modal hashing (Li, Deng, Wang, Xie, Gao, Tao, AAAI 2019).

A re-implementation from the paper's description, without labels; no public code exists, and what the paper does not
describe is our reading. Two cycles are trained together. The outer one maps an image to a representation r (the hidden
layer) and r to a text; the inner one maps r to a code z, and z to the representation of the text; and likewise from
texts to images. With G_ab the map from modality a to b in either cycle, each direction minimises

    adversarial(G_ab(x_a) for x_b) + cycle |x_a - G_ba(G_ab(x_a))|_1 + paired |G_ab(x_a) - x_b|^2,

and the codes quantisation |z - sgn(z)|^2 + alignment |z_image - z_text|^2. Only the paired term uses that an image and
a text belong together.

Our choices, besides deep.py: errors are relative to the size of the target, because the scales of features,
representations and codes differ; representations are constant as targets, otherwise they would shrink; each decoder is
one layer; discriminators and the rest step together, with Adam's usual moments; the adversarial weight is 0.1, because
with 1 one direction stayed at chance level; codes are normalised over the batch before their tanh, because otherwise
bits become constant (13 of 16 did). Generated representations are normalised as well, by statistics of their own, so
the statistics that a model keeps are computed from all real items once training has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from pydantic import Field
from torch import Tensor, nn

from rmsh.core.types import MODALITIES, Modality
from rmsh.data.pairs import dense_rows
from rmsh.methods.deep import HashObjective, NetworkConfig, NetworkMethod
from rmsh.training.loop import Batch, Losses, TrainingSet
from rmsh.training.losses import quantisation_loss, signs
from rmsh.training.networks import discriminator, discriminator_loss, generator_loss

if TYPE_CHECKING:
    from rmsh.methods.base import HashFunctions

_OTHER: dict[Modality, Modality] = {"image": "text", "text": "image"}
_BLOCK = 4096  # rows that are normalised at a time


class UCHConfig(NetworkConfig):
    """Options of UCH."""

    learning_rate: float = Field(1e-4, gt=0, description="initial learning rate of Adam")
    batch_norm: bool = Field(True, description="batch normalisation before the last activation")
    adversarial: float = Field(0.1, ge=0, description="weight of the adversarial loss")
    cycle: float = Field(10.0, ge=0, description="weight of the cycle consistency")
    paired: float = Field(1.0, ge=0, description="weight of the distance to the item's other modality")
    quantisation: float = Field(0.1, ge=0, description="weight of the quantisation loss")
    alignment: float = Field(1.0, ge=0, description="weight of the distance between an item's two codes")


class UCH(NetworkMethod):
    """Coupled cycle-GANs."""

    name = "uch"
    version = 2
    summary = "two coupled cycle-GANs, one for representations and one for codes, without labels"
    reference = (
        "Li, Deng, Wang, Xie: Coupled CycleGAN: Unsupervised Hashing Network for Cross-Modal Retrieval, AAAI 2019"
    )
    supervised = False
    Config = UCHConfig
    default_epochs = 6
    original_epochs = "not known"
    config: UCHConfig

    def _objective(self, data: TrainingSet) -> Objective:
        return Objective(data, self.config)


class Objective(HashObjective):
    """Both cycles in both directions, and the discriminators of their outputs."""

    def __init__(self, data: TrainingSet, config: UCHConfig) -> None:
        super().__init__(data, config.bits, **config.network())
        self.data = data
        for network in (self.image, self.text):
            if network.norm is not None:
                network.norm.requires_grad_(False)  # a trainable offset would allow constant bits again
        self.config = config
        widths = {"image": data.images.shape[1], "text": data.texts.shape[1]}
        self.outer = nn.ModuleDict({m: nn.Linear(config.hidden, widths[m]) for m in MODALITIES})
        self.inner = nn.ModuleDict({m: nn.Linear(config.bits, config.hidden) for m in MODALITIES})
        self.discriminators = nn.ModuleDict()
        for m in MODALITIES:
            self.discriminators[f"{m} features"] = discriminator(widths[m], widths=(512, 256), slope=0.2)
            self.discriminators[f"{m} representation"] = discriminator(config.hidden, widths=(512, 256), slope=0.2)

    def forward(self, batch: Batch) -> Losses:
        networks = {"image": self.image, "text": self.text}
        x = {"image": self.image.scaling(batch.images), "text": self.text.scaling(batch.texts)}
        r = {m: networks[m].represent(x[m]) for m in MODALITIES}
        z = {m: networks[m].code(r[m]) for m in MODALITIES}
        terms: dict[str, Tensor] = {}
        for start in MODALITIES:
            end = _OTHER[start]
            generated = self.outer[end](r[start])
            back = self.outer[start](networks[end].represent(generated))
            terms |= self._cycle_terms(f"{end} features", generated, x[end], back, x[start])
            generated = F.relu(self.inner[end](z[start]))
            back = F.relu(self.inner[start](networks[end].code(generated)))
            terms |= self._cycle_terms(f"{end} representation", generated, r[end], back, r[start])
        bits = self.config.bits
        for m in MODALITIES:
            quantised = quantisation_loss(z[m], signs(z[m])).mean()
            terms[f"{m} quantisation"] = self.config.quantisation * quantised / bits
        terms["alignment"] = self.config.alignment * quantisation_loss(z["image"], z["text"]).mean() / bits
        return Losses(terms)

    @torch.no_grad()
    def export(self) -> HashFunctions:
        """The hash functions, normalised by the mean and the variance of the values of all real items."""
        for network, features in zip((self.image, self.text), self.data.present_features(), strict=True):
            if network.norm is not None:
                blocks = np.array_split(np.arange(features.shape[0]), -(-features.shape[0] // _BLOCK))
                inputs = (torch.from_numpy(dense_rows(features, rows)) for rows in blocks)
                values = torch.cat([network.output(network.represent(network.scaling(x))) for x in inputs])
                network.norm.running_mean, network.norm.running_var = values.mean(dim=0), values.var(dim=0)
        return super().export()

    def _cycle_terms(self, name: str, generated: Tensor, end: Tensor, back: Tensor, start: Tensor) -> dict[str, Tensor]:
        """The losses of one direction of one cycle: start -> generated (like end) -> back (like start)."""
        config, network = self.config, self.discriminators[name]
        return {
            f"{name} discriminator": discriminator_loss(network, end, generated),
            f"{name} adversarial": config.adversarial * generator_loss(network, generated),
            f"{name} cycle": config.cycle * absolute_error(back, start),
            f"{name} paired": config.paired * squared_error(generated, end),
        }


def absolute_error(values: Tensor, target: Tensor) -> Tensor:
    """The mean |values - target| divided by the root mean square of the target, which is constant.

    Example:
        >>> import torch
        >>> absolute_error(torch.tensor([[1.0, 2.0]]), torch.tensor([[2.0, 2.0]])).item()
        0.25
    """
    target = target.detach()
    return (values - target).abs().mean() / target.square().mean().sqrt().clamp_min(1e-6)


def squared_error(values: Tensor, target: Tensor) -> Tensor:
    """The mean (values - target)^2 divided by the mean square of the target, which is constant.

    Example:
        >>> import torch
        >>> squared_error(torch.tensor([[1.0, 2.0]]), torch.tensor([[2.0, 2.0]])).item()
        0.125
    """
    target = target.detach()
    return (values - target).square().mean() / target.square().mean().clamp_min(1e-12)
