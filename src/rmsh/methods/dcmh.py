"""DCMH: deep cross-modal hashing (Jiang and Li, CVPR 2017).

With F and G the outputs for images and texts, (N, K), Theta = F G' / 2, S_ij = 1 where items share a label, and
B = sgn(F + G), it minimises

    -sum_ij (S_ij Theta_ij - log(1 + exp(Theta_ij))) + gamma (|B - F|^2 + |B - G|^2) + eta (|F'1|^2 + |G'1|^2),

for a batch of one modality against the last outputs of all items of the other, as means over pairs and items.

Departures from the original, besides those of deep.py:
- Adam instead of plain SGD with a rate of 10^-1.5, at which others report chance level; the rate falls linearly, as in
  the original; 15 epochs, not 500;
- the stored outputs start as those of the untrained networks, not as noise, and are recomputed after a pass, not batch
  by batch: with fewer and larger steps they would differ too much in age;
- F'1 is estimated from the change of the batch: the original's sum of stored outputs lags, and larger steps would
  overshoot;
- a batch is compared with ``partners`` random items, redrawn at every step, whose mean stands for that of all;
- the original divides all terms by N times the batch size, which leaves an item's quantisation a weight of gamma / N:
  with 50,000 items the pairs are learned and the sign loses them. Here the weight is per item, 0.1 by default.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from rmsh.methods.deep import NetworkConfig, NetworkMethod, SweepingObjective
from rmsh.training.loop import Batch, Losses, TrainingSet
from rmsh.training.losses import half_products, pairwise_loss, quantisation_loss, share_a_label, signs


class DCMHConfig(NetworkConfig):
    """Options of DCMH."""

    gamma: float = Field(0.1, ge=0, description="weight of the quantisation loss of an item")
    eta: float = Field(1.0, ge=0, description="weight of the bit balance")
    partners: int = Field(2048, ge=1, description="items of the other modality that a batch is compared with")


class DCMH(NetworkMethod):
    """Deep cross-modal hashing."""

    name = "dcmh"
    version = 2
    summary = "likelihood of shared labels between all images and texts, balanced bits"
    reference = "Jiang, Li: Deep Cross-Modal Hashing, CVPR 2017"
    Config = DCMHConfig
    default_epochs = 15
    original_epochs = "500"
    passes = 2
    config: DCMHConfig

    def _objective(self, data: TrainingSet) -> Objective:
        return Objective(data, self.config)


class Objective(SweepingObjective):
    """The loss of a batch of one modality against stored outputs of the other."""

    labels: Tensor

    def __init__(self, data: TrainingSet, config: DCMHConfig) -> None:
        super().__init__(data, config)
        self.config = config
        self.register_buffer("labels", torch.from_numpy(data.labels).float(), persistent=False)

    def forward(self, batch: Batch) -> Losses:
        config = self.config
        f = self.network(self.inputs(batch))
        partners = torch.randperm(len(self.labels))[: config.partners]
        theta = half_products(f, self.outputs[1 - self.side, partners])
        b = signs(self.outputs[0, batch.rows] + self.outputs[1, batch.rows])
        terms = {
            "likelihood": pairwise_loss(theta, share_a_label(batch.labels, self.labels[partners])),
            "quantisation": config.gamma * quantisation_loss(f, b).mean(),
            "balance": config.eta * self.mean_output(batch.rows, f).square().sum(),
        }
        return Losses(self.prefixed(terms))
