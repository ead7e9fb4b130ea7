"""MITH: multi-granularity interactive transformer hashing (Liu, Wu, Zhang, Zhang, Lu, MM 2023), the global branch.

The last outputs of all training items are stored. With theta half the inner product of an output and a stored one of
the other modality, limited to -32 ... 32, the loss is the likelihood of shared labels, as in DCMH, the quantisation
loss for B = sgn(F + G), and the contrast of the hidden layers of an item's image and text within the batch.

Departures, besides those of deep.py: one network per modality, because features of different width exclude the
original's shared head; a batch is compared with a sample of the stored outputs; outputs are normalised over the batch,
without which 5 of 64 bits are constant. Lost on frozen features: the encoders' part (heads.py) and, without tokens, the
second branch: concepts of patches and words with codes of their own, which the published codes add to those of this
branch, and the distillation between both.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from lab.methods.heads import HeadMethod, HeadObjective, contrastive_loss
from rmsh.methods.deep import NetworkConfig
from rmsh.training.loop import Batch, Losses, TrainingSet
from rmsh.training.losses import cosines, half_products, pairwise_loss, share_a_label, signs


class MITHConfig(NetworkConfig):
    batch_norm: bool = Field(True, description="batch normalisation before the last activation")
    likelihood: float = Field(10.0, ge=0, description="weight of the likelihood of shared labels")
    quantisation: float = Field(8.0, ge=0, description="weight of the quantisation loss")
    contrast: float = Field(50.0, ge=0, description="weight of the contrast of hidden layers")
    partners: int = Field(4096, ge=1, description="stored outputs that a batch is compared with")


class Objective(HeadObjective):
    stored: Tensor  # (2, N, K), U and V
    labels: Tensor  # (N, C)

    def __init__(self, data: TrainingSet, config: MITHConfig, **options: int) -> None:
        super().__init__(data, config, **options)
        self.register_buffer("stored", torch.randn(2, len(data), config.bits))
        self.register_buffer("labels", torch.from_numpy(data.labels).float(), persistent=False)

    def forward(self, batch: Batch) -> Losses:
        r = [net.represent(net.scaling(x)) for net, x in ((self.image, batch.images), (self.text, batch.texts))]
        losses, c = self.loss(self.image.code(r[0]), self.text.code(r[1]), batch), cosines(*r) / 0.07
        return Losses({**losses.terms, "contrast": self.config.contrast * contrastive_loss(c, c.T) / 2})

    def loss(self, f: Tensor, g: Tensor, batch: Batch) -> Losses:
        self.stored[:, batch.rows] = torch.stack([f, g]).detach()
        partners = torch.randperm(len(self.labels))[: self.config.partners]
        similar, (u, v) = share_a_label(self.labels[partners], batch.labels), self.stored[:, partners]
        theta = torch.stack([half_products(u, g), half_products(v, f)]).clamp(-32, 32)
        errors = (torch.stack([f, g]) - signs(f + g)).square().mean()
        likelihood = 2 * self.config.likelihood * pairwise_loss(theta, similar)
        return Losses({"likelihood": likelihood, "quantisation": 2 * self.config.quantisation * errors})


class MITH(HeadMethod):
    name = "mith"
    summary = "likelihood of shared labels with stored outputs of all items, contrast of the hidden layers"
    reference = "Liu, Wu, Zhang, Zhang, Lu: Multi-Granularity Interactive Transformer Hashing, MM 2023"
    Config = MITHConfig
    objective = Objective
    original_epochs = "30, with 10,000 pairs"
