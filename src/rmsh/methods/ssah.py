"""SSAH: self-supervised adversarial hashing (Li, Deng, Li, Liu, Gao, Tao, CVPR 2018).

A label network gives each label set a representation f_l, a code H_l and predicted labels L_l. It is trained first and
then supervises the image and the text network, which have the same three outputs. With theta = u.v / 2 and S_ij = 1
where items share a label, the network * of l, i, t minimises

    alpha sum_ij nll(f_l, f_*) + gamma sum_ij nll(H_l, H_*) + beta |sgn(H_*) - H_*|^2 + eta |L_* - L|^2,
    nll = log(1 + exp(theta_ij)) - S_ij theta_ij,

and i and t also delta times an adversarial loss: a discriminator per modality separates f_* from f_l.

In the public code the adversarial loss cannot reach the networks: it trains the discriminators instead to classify
everything as real. ``adversarial="paper"`` follows the paper, ``"official-code"`` follows the code.

Departures, besides those of deep.py:
- plain layers instead of the multi-scale fusion of texts and local response normalisation, which assume an order of the
  features; the representation is the hidden layer, 1024 wide (512), the label network C -> 1024 -> 1024 -> K;
- the label network is trained in the first half of the passes, then the others together with the discriminators; the
  original alternates sweeps and divides the rates by sqrt(10) each time; here one rate falls linearly;
- sums over all pairs are means over the batch and ``partners`` random items, redrawn at every step, and sums over items
  are means over the batch. The original's weights, all 1, correspond to 1e-4 here for sums over items: it had N =
  10,000 training items, and N times as many pairs. With weights of 1, quantisation dominates and all bits are constant;
- theta of codes is that of 64 bits, u.v 32 / K, and the quantisation loss is the mean over the bits: otherwise longer
  codes are learned with steeper likelihoods;
- a discriminator that learns in every step soon separates everything, and its gradient says nothing. It learns in a
  fifth of the steps (``discriminator_rate``), and the adversarial weight is 0.01, so that the networks notice it.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from pydantic import Field
from torch import Tensor, nn

from rmsh.methods.deep import HashObjective, NetworkConfig, NetworkMethod
from rmsh.training.loop import Batch, Losses, TrainingSet
from rmsh.training.losses import half_products, pairwise_loss, quantisation_loss, share_a_label, signs
from rmsh.training.networks import HashNetwork, LabelNetwork, discriminator, discriminator_loss, generator_loss

_LENGTH = 64  # bits for which theta of codes is as printed


class SSAHConfig(NetworkConfig):
    """Options of SSAH."""

    alpha: float = Field(1.0, ge=0, description="weight of the similarity of representations")
    gamma: float = Field(1.0, ge=0, description="weight of the similarity of codes")
    beta: float = Field(0.01, ge=0, description="weight of the quantisation loss of a bit")
    eta: float = Field(1e-4, ge=0, description="weight of the label prediction")
    delta: float = Field(0.01, ge=0, description="weight of the adversarial loss")
    discriminator_rate: float = Field(0.2, ge=0, le=1, description="share of the steps that train the discriminators")
    adversarial: Literal["paper", "official-code"] = Field("paper", description="form of the adversarial loss")
    partners: int = Field(512, ge=1, description="label sets that a batch is compared with")


class SSAH(NetworkMethod):
    """Self-supervised adversarial hashing."""

    name = "ssah"
    version = 2
    summary = "a label network supervises representations and codes of both modalities, with discriminators"
    reference = "Li, Deng, Li, Liu, Gao, Tao: Self-Supervised Adversarial Hashing Networks, CVPR 2018"
    Config = SSAHConfig
    default_epochs = 20
    original_epochs = "not stated; 5 to 15 sweeps per network, repeated with falling rates"
    passes = 2
    config: SSAHConfig

    def _objective(self, data: TrainingSet) -> Objective:
        return Objective(data, self.config, label_epochs=self._epochs(len(data)))


class Objective(HashObjective):
    """The loss of the label network for its epochs, then those of both modalities and their discriminators."""

    all_labels: Tensor  # (N, C)

    def __init__(self, data: TrainingSet, config: SSAHConfig, *, label_epochs: int) -> None:
        super().__init__(data, config.bits, **config.network())
        self.config, self.label_epochs = config, label_epochs
        classes, width = data.labels.shape[1], config.hidden
        self.labels = LabelNetwork(classes, config.bits, widths=(width, width), output="tanh")
        self.heads = nn.ModuleDict({name: nn.Linear(width, classes) for name in ("label", "image", "text")})
        self.discriminators = nn.ModuleDict(
            {name: discriminator(width, widths=(512, 256), slope=0.0) for name in ("image", "text")}
        )
        self.register_buffer("all_labels", torch.from_numpy(data.labels).float(), persistent=False)

    def forward(self, batch: Batch) -> Losses:
        partners = self.all_labels[torch.randperm(len(self.all_labels))[: self.config.partners]]
        with torch.no_grad():
            teacher = _represent_and_code(self.labels, partners)
        similar = share_a_label(batch.labels, partners)
        if self.epoch < self.label_epochs:
            own = _represent_and_code(self.labels, batch.labels)
            return Losses(self._terms("label", own, teacher, similar, batch.labels))
        terms: dict[str, Tensor] = {}
        with torch.no_grad():
            real = self.labels.represent(batch.labels)
        for name, network, features in (("image", self.image, batch.images), ("text", self.text, batch.texts)):
            own = _represent_and_code(network, network.scaling(features))
            terms |= self._terms(name, own, teacher, similar, batch.labels)
            terms |= self._adversarial(name, real, own[0])
        return Losses(terms)

    def _terms(
        self, name: str, own: tuple[Tensor, Tensor], teacher: tuple[Tensor, Tensor], similar: Tensor, labels: Tensor
    ) -> dict[str, Tensor]:
        config, (representation, code) = self.config, own
        predicted = torch.sigmoid(self.heads[name](representation))
        theta = _LENGTH / config.bits * half_products(code, teacher[1])
        return {
            f"{name} representation": config.alpha * pairwise_loss(half_products(representation, teacher[0]), similar),
            f"{name} code": config.gamma * pairwise_loss(theta, similar),
            f"{name} quantisation": config.beta * quantisation_loss(code, signs(code)).mean() / config.bits,
            f"{name} labels": config.eta * (predicted - labels).square().sum(dim=1).mean(),
        }

    def _adversarial(self, name: str, real: Tensor, generated: Tensor) -> dict[str, Tensor]:
        network = self.discriminators[name]
        if self.config.adversarial == "paper":
            adversarial = generator_loss(network, generated)
        else:
            adversarial = F.softplus(-network(generated.detach())).mean()
        judged = discriminator_loss(network, real, generated)
        learns = torch.rand(()) < self.config.discriminator_rate
        return {
            f"{name} discriminator": judged if learns else judged.detach(),
            f"{name} adversarial": self.config.delta * adversarial,
        }


def _represent_and_code(network: HashNetwork | LabelNetwork, inputs: Tensor) -> tuple[Tensor, Tensor]:
    representation = network.represent(inputs)
    return representation, network.code(representation)
