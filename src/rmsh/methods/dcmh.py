"""DCMH: deep cross-modal hashing (Jiang and Li, CVPR 2017).

With F and G the outputs for pictures and texts, (N, K), Theta = F G' / 2, S_ij = 1 where items share a label, and
B = sgn(F + G), it minimises

    -sum_ij (S_ij Theta_ij - log(1 + exp(Theta_ij))) + gamma (|B - F|^2 + |B - G|^2) + eta (|F'1|^2 + |G'1|^2),

a batch of one modality against the last outputs of all items of the other, the whole divided by N times the batch.

Departures from the original, besides those of deep.py:
- Adam in place of plain SGD with a rate of 10^-1.5, at which others were stuck at chance level; the rate falls
  linearly, as the original's; 15 epochs, not 500;
- the kept outputs begin as those of the untrained networks, not as noise, and are made anew after a pass, not batch by
  batch: with fewer and larger steps they would be of many ages;
- F'1 is estimated from how far the batch has moved: the original's sum of kept outputs lags, and larger steps would
  overshoot;
- a batch meets ``partners`` random items, others at every step, and their mean stands for that of all.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from rmsh.core.types import MODALITIES
from rmsh.methods.deep import DeepConfig, DeepMethod, SweepingObjective
from rmsh.training.loop import Batch, Outcome, TrainingSet
from rmsh.training.losses import common_code, half_products, pairwise_loss, quantisation_loss, share_a_label

__all__ = ["DCMH", "DCMHConfig", "Objective"]


class DCMHConfig(DeepConfig):
    """Options of DCMH."""

    gamma: float = Field(1.0, ge=0, description="weight of quantisation")
    eta: float = Field(1.0, ge=0, description="weight of bit balance")
    partners: int = Field(2048, ge=1, description="items of the other modality a batch is compared with")


class DCMH(DeepMethod):
    """Deep cross-modal hashing.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> method = DCMH(bits=16, epochs=1, hidden=8).fit(generate_pairs(60))
        >>> method.encode(generate_pairs(60).images, "image").packed.shape
        (60, 2)
    """

    name = "dcmh"
    summary = "likelihood of shared labels between every picture and every text, balanced bits"
    reference = "Jiang, Li: Deep Cross-Modal Hashing, CVPR 2017"
    Config = DCMHConfig
    default_epochs = 15
    original_epochs = "500"
    passes = 2
    config: DCMHConfig

    def _objective(self, data: TrainingSet) -> Objective:
        return Objective(data, self.config)


class Objective(SweepingObjective):
    """The loss of a batch of one modality against kept outputs of the other."""

    labels: Tensor

    def __init__(self, data: TrainingSet, config: DCMHConfig) -> None:
        super().__init__(data, config, output="none")
        self.config = config
        self.register_buffer("labels", torch.from_numpy(data.labels).float(), persistent=False)

    def forward(self, batch: Batch) -> Outcome:
        config, items = self.config, len(self.labels)
        f = self.network(self.inputs(batch))
        partners = torch.randperm(items)[: config.partners]
        theta = half_products(f, self.outputs[1 - self.side, partners])
        b = common_code(*self.outputs[:, batch.rows])
        terms = {
            "likelihood": pairwise_loss(theta, share_a_label(batch.labels, self.labels[partners])),
            "quantisation": config.gamma * quantisation_loss(f, b).mean() / items,
            "balance": config.eta * self.mean_output(batch.rows, f).square().sum(),
        }
        return Outcome({f"{MODALITIES[self.side]} {name}": term for name, term in terms.items()})
