"""SVHN: separated variational hashing networks (Hu, Wang, Zhen, Lin, Peng, ACM Multimedia 2019).

First a label network learns codes of labels: u = g(l), h = sgn(u). With S_ij = u_i.u_j / 2 and D_ij = 1 where items
share a label, over the n items of a batch,

    1/n sum_ij (log(1 + exp(S_ij)) - D_ij S_ij) + lambda/n sum_i | |u_i| - 1 |^2.

Then each modality learns separately to reproduce these codes: its network returns the mean mu and the variance sigma^2
of a normal distribution, from which z = mu + sigma * noise is drawn, and minimises

    1/2n sum (mu^2 + sigma^2 - log sigma^2 - 1) + beta/n sum_i | h_i - z_i |^2;

the code is sgn(mu).

The original codes the *database* by its ground-truth labels, through the label network. That is not retrieval of unseen
items, so the default codes them by their own modality; ``database_codes="labels"`` follows the original.

Departures, besides those of deep.py:
- one sample of z per item, and log sigma^2 as the output of the network (the paper states neither);
- the label network is C -> 1024 -> 512 -> K, the original's C -> 2048 -> 512 -> K;
- Adam at 1e-3 and 15 epochs per stage, not 1e-4 and 200 epochs for the labels, 100 for a modality.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from rmsh.methods.database import DatabaseMethod
from rmsh.methods.deep import HashObjective, NetworkConfig, NetworkMethod
from rmsh.training.loop import Batch, Losses, Shape, TrainingSet
from rmsh.training.losses import half_products, pairwise_loss, quantisation_loss, share_a_label, signs
from rmsh.training.networks import HashNetwork, LabelNetwork

if TYPE_CHECKING:
    from rmsh.hash_function import HashFunction


class SVHNConfig(NetworkConfig):
    """Options of SVHN."""

    quantisation: float = Field(0.1, ge=0, description="lambda, weight of quantising the codes of labels")
    beta: float = Field(10.0, ge=0, description="weight of the distance to the code of the labels")
    batch: int | None = Field(100, ge=3, description="items per step")
    schedule: Shape = Field("constant", description="course of the learning rate")
    database_codes: Literal["modality", "labels"] = Field("modality", description="source of a database item's code")


class SVHN(DatabaseMethod, NetworkMethod):
    """Separated variational hashing networks."""

    name = "svhn"
    summary = "codes of the labels first, then one variational network per modality that reproduces them"
    reference = "Hu, Wang, Zhen, Lin, Peng: Separated Variational Hashing Networks for Cross-Modal Retrieval, MM 2019"
    Config = SVHNConfig
    default_epochs = 15
    original_epochs = "200 of the label network, 100 of the others"
    passes = stages = 2
    config: SVHNConfig

    def _objective(self, data: TrainingSet) -> Objective:
        objective = Objective(data, self.config, label_epochs=self._epochs(len(data)))
        self.label_network_ = objective.labels
        return objective

    def _database(self) -> Mapping[str, HashFunction]:
        return {"labels": self.label_network_.export()} if self.config.database_codes == "labels" else {}


class Objective(HashObjective):
    """The loss of the label network for its epochs, then those of both modalities, which share nothing."""

    def __init__(self, data: TrainingSet, config: SVHNConfig, *, label_epochs: int) -> None:
        super().__init__(data, config.bits, output="none", **config.network())
        self.config, self.label_epochs = config, label_epochs
        widths = (config.hidden, -(-config.hidden // 2))
        self.labels = LabelNetwork(data.labels.shape[1], config.bits, widths=widths, output="none")
        self.image_spread, self.text_spread = (nn.Linear(config.hidden, config.bits) for _ in range(2))

    def forward(self, batch: Batch) -> Losses:
        if self.epoch < self.label_epochs:
            return Losses(self._label_terms(batch.labels))
        with torch.no_grad():
            h = signs(self.labels(batch.labels))
        return Losses(
            {
                **self._modality_terms("image", self.image, self.image_spread, batch.images, h),
                **self._modality_terms("text", self.text, self.text_spread, batch.texts, h),
            }
        )

    def _label_terms(self, labels: Tensor) -> dict[str, Tensor]:
        u, n = self.labels(labels), len(labels)
        return {
            "label likelihood": n * pairwise_loss(half_products(u, u), share_a_label(labels, labels)),
            "label quantisation": self.config.quantisation * (u.abs() - 1).square().sum() / n,
        }

    def _modality_terms(
        self, name: str, network: HashNetwork, spread: nn.Linear, features: Tensor, h: Tensor
    ) -> dict[str, Tensor]:
        representation = network.represent(network.scaling(features))
        mean, log_variance = network.code(representation), spread(representation)
        z = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
        return {
            f"{name} divergence": divergence(mean, log_variance).mean(),
            f"{name} code": self.config.beta * quantisation_loss(z, h).mean(),
        }


def divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """The Kullback-Leibler divergence of N(mean, variance) from N(0, 1), summed over the bits, (n,).

    Example:
        >>> divergence(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 0.0]])).tolist()
        [2.0]
    """
    return 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum(dim=1)
