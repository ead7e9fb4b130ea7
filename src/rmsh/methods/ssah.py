"""SSAH: self-supervised adversarial hashing (Li, Deng, Li, Liu, Gao, Tao, CVPR 2018).

A label network gives each label set a representation f_l, a code H_l and its labels back; it learns first, and is then
the teacher of the picture and the text network, which give the same three. With theta = u.v / 2 and S_ij = 1 where
items share a label, the network * of l, i, t minimises

    alpha sum_ij nll(f_l, f_*) + gamma sum_ij nll(H_l, H_*) + beta |sgn(H_*) - H_*|^2 + eta |L_* - L|^2,
    nll = log(1 + exp(theta_ij)) - S_ij theta_ij,

and i and t also delta times an adversarial loss: one discriminator each tells f_* from f_l, which they try to prevent.

In the public code the adversarial loss cannot reach the networks: it changes the discriminators instead, which then say
"real" of everything. ``adversarial="paper"`` does what the paper says, ``"official-code"`` what the code does.

Departures, besides those of deep.py:
- plain layers in the place of the multi-scale fusion of texts and of local response normalisation, which suppose an
  order of the features; the representation is the hidden layer, 1024 wide (512), the label network
  C -> 1024 -> 1024 -> K;
- the label network learns for the first half of the passes, then the others, and the discriminators with them in the
  same steps; the original alternates sweeps and cuts the rates by sqrt(10) each time; here one rate falls linearly;
- sums over all pairs are means over the batch and ``partners`` random items, others at every step, and sums over items
  means over the batch. In this form the original's weights, all 1, are 1e-4 for beta, eta and delta: it had N = 10,000
  training items, and N times as many pairs. With weights of 1, quantisation rules and every bit becomes constant.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from pydantic import Field
from torch import Tensor, nn

from rmsh.methods.deep import DeepConfig, DeepMethod, HashObjective
from rmsh.training.adversarial import discriminator, fooling_loss, telling_loss
from rmsh.training.loop import Batch, Outcome, TrainingSet
from rmsh.training.losses import half_products, pairwise_loss, quantisation_loss, share_a_label
from rmsh.training.networks import HashNetwork, LabelNetwork

__all__ = ["SSAH", "Objective", "SSAHConfig"]


class SSAHConfig(DeepConfig):
    """Options of SSAH."""

    alpha: float = Field(1.0, ge=0, description="weight of the representations' similarity")
    gamma: float = Field(1.0, ge=0, description="weight of the codes' similarity")
    beta: float = Field(1e-4, ge=0, description="weight of quantisation")
    eta: float = Field(1e-4, ge=0, description="weight of the labels' prediction")
    delta: float = Field(1e-4, ge=0, description="weight of the adversarial loss")
    adversarial: Literal["paper", "official-code"] = Field("paper", description="what the adversarial loss changes")
    partners: int = Field(512, ge=1, description="label sets a batch is compared with")


class SSAH(DeepMethod):
    """Self-supervised adversarial hashing.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> method = SSAH(bits=16, epochs=1, hidden=8).fit(generate_pairs(60))
        >>> method.encode(generate_pairs(60).images, "image").packed.shape
        (60, 2)
    """

    name = "ssah"
    summary = "a network of the labels teaches both modalities representations and codes, with discriminators"
    reference = "Li, Deng, Li, Liu, Gao, Tao: Self-Supervised Adversarial Hashing Networks, CVPR 2018"
    Config = SSAHConfig
    default_epochs = 6
    original_epochs = "not stated; 5 to 15 sweeps a network, repeated with falling rates"
    passes = 2
    config: SSAHConfig

    def _objective(self, data: TrainingSet) -> Objective:
        return Objective(data, self.config, label_epochs=self._epochs(len(data)))


class Objective(HashObjective):
    """The loss of the label network for its epochs, then those of both modalities and of their discriminators."""

    all_labels: Tensor  # (N, C)

    def __init__(self, data: TrainingSet, config: SSAHConfig, *, label_epochs: int) -> None:
        super().__init__(data, config, output="tanh")
        self.config, self.label_epochs, self.epoch = config, label_epochs, 0
        classes, width = data.labels.shape[1], config.hidden
        self.labels = LabelNetwork(classes, config.bits, widths=(width, width), output="tanh")
        self.heads = nn.ModuleDict({name: nn.Linear(width, classes) for name in ("label", "image", "text")})
        self.judges = nn.ModuleDict(
            {name: discriminator(width, widths=(512, 256), slope=0.0) for name in ("image", "text")}
        )
        self.register_buffer("all_labels", torch.from_numpy(data.labels).float(), persistent=False)

    def begin_epoch(self, epoch: int, data: TrainingSet) -> None:  # noqa: ARG002  # the loop's protocol
        """Know which stage it is."""
        self.epoch = epoch

    def forward(self, batch: Batch) -> Outcome:
        partners = self.all_labels[torch.randperm(len(self.all_labels))[: self.config.partners]]
        with torch.no_grad():
            teacher = self._represent_and_code(self.labels, partners)
        similar = share_a_label(batch.labels, partners)
        if self.epoch < self.label_epochs:
            own = self._represent_and_code(self.labels, batch.labels)
            return Outcome(self._terms("label", own, teacher, similar, batch.labels))
        terms: dict[str, Tensor] = {}
        with torch.no_grad():
            real = self.labels.represent(batch.labels)
        for name, network, features in (("image", self.image, batch.images), ("text", self.text, batch.texts)):
            own = self._represent_and_code(network, network.scaling(features))
            terms |= self._terms(name, own, teacher, similar, batch.labels)
            terms |= self._adversarial(name, real, own[0])
        return Outcome(terms)

    def _represent_and_code(self, network: HashNetwork | LabelNetwork, inputs: Tensor) -> tuple[Tensor, Tensor]:
        representation = network.represent(inputs)
        return representation, network.code(representation)

    def _terms(
        self, name: str, own: tuple[Tensor, Tensor], teacher: tuple[Tensor, Tensor], similar: Tensor, labels: Tensor
    ) -> dict[str, Tensor]:
        config, (representation, code) = self.config, own
        signs = torch.where(code.detach() >= 0, 1.0, -1.0)
        predicted = torch.sigmoid(self.heads[name](representation))
        return {
            f"{name} representation": config.alpha * pairwise_loss(half_products(representation, teacher[0]), similar),
            f"{name} code": config.gamma * pairwise_loss(half_products(code, teacher[1]), similar),
            f"{name} quantisation": config.beta * quantisation_loss(code, signs).mean(),
            f"{name} labels": config.eta * (predicted - labels).square().sum(dim=1).mean(),
        }

    def _adversarial(self, name: str, real: Tensor, made: Tensor) -> dict[str, Tensor]:
        """The discriminator's loss, and the network's that it judges."""
        judge = self.judges[name]
        if self.config.adversarial == "paper":
            fooling = fooling_loss(judge, made)
        else:
            fooling = F.softplus(-judge(made.detach())).mean()
        return {f"{name} telling": telling_loss(judge, real, made), f"{name} fooling": self.config.delta * fooling}
