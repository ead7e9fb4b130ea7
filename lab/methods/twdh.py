"""TwDH: two-step discrete hashing (Tu, Liu, Hao, Hong, Wang, TMM 2024).

First a long code: each class has a centre, and the target of an item is the sign of the mean of its classes' centres;
where that is zero, a random vector per batch decides. With p the probability that a bit is 1, the networks minimise
BCE(p, target) + quantisation (1 - mean (2p - 1)^2). A matrix T, learned from labels alone by the same loss and its
absolute values, maps long targets to short ones. Codes are the signs of T applied to 2p - 1; T moves no network.

Departures, besides those of deep.py: one logit per bit instead of two, without the ReLU that makes ties, so that T is a
matrix with a bias; T learns in the same steps as the networks, with which it shares nothing; long centres are random
like the short ones, not Hadamard rows; the absolute values are summed per bit. The original sums those of all bits,
while BCE is a mean over bits, so that they weigh more in longer codes: of 128 bits, 16 % were constant. Lost on
frozen features: the encoders' part (heads.py).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from pydantic import Field
from torch import Tensor, nn

from lab.methods.heads import HeadMethod, HeadObjective
from rmsh.hash_function import HashFunction, Layer
from rmsh.methods.deep import NetworkConfig
from rmsh.training.loop import Batch, Losses, TrainingSet
from rmsh.training.losses import signs


class TwDHConfig(NetworkConfig):
    long: int = Field(512, ge=1, description="bits of the long code")
    quantisation: float = Field(0.5, ge=0, description="weight of the distance of long bits from 0 and 1")
    # That of the original at 64 bits.
    sparsity: float = Field(0.064, ge=0, description="weight of the absolute values of T, the sum of each bit")


class Objective(HeadObjective):
    long: Tensor  # (C, long), the centres of the classes
    short: Tensor  # (C, K)

    def __init__(self, data: TrainingSet, config: TwDHConfig, **options: int) -> None:
        super().__init__(data, config, outputs=config.long, output="none", **options)
        self.register_buffer("long", signs(torch.randn(data.labels.shape[1], config.long)))
        self.register_buffer("short", signs(torch.randn(data.labels.shape[1], config.bits)))
        self.transform = nn.Linear(config.long, config.bits)

    def loss(self, f: Tensor, g: Tensor, batch: Batch) -> Losses:
        long, short = (targets(batch.labels, centres) for centres in (self.long, self.short))
        terms = {"transform": bit_loss(self.transform(long), short, quantisation=1.0)}
        terms["sparsity"] = self.config.sparsity * self.transform.weight.abs().sum(dim=1).mean()
        for name, z in (("image", f), ("text", g)):
            terms[name] = 0.5 * bit_loss(z, long, quantisation=self.config.quantisation)
        return Losses(terms)

    def export(self) -> dict[Any, HashFunction]:
        weight, bias = (part.detach().numpy().copy() for part in (self.transform.weight.T, self.transform.bias))
        networks, last = {"image": self.image, "text": self.text}, Layer(weight, bias, "none")
        return {m: HashFunction((*each.export(output="tanh").layers, last)) for m, each in networks.items()}


class TwDH(HeadMethod):
    name = "twdh"
    version = 2
    summary = "a long code with one centre per class, then a matrix from long to short codes"
    reference = "Tu, Liu, Hao, Hong, Wang: Two-Step Discrete Hashing for Cross-Modal Retrieval, TMM 2024"
    Config = TwDHConfig
    objective = Objective


def bit_loss(z: Tensor, target: Tensor, *, quantisation: float) -> Tensor:
    """BCE(p, target) + quantisation (1 - mean (2p - 1)^2), where p has the logits 2z, for targets -1 and 1."""
    entropy = F.binary_cross_entropy_with_logits(2 * z, (target + 1) / 2)
    return entropy + quantisation * (1 - torch.tanh(z).square().mean())


def targets(labels: Tensor, centres: Tensor) -> Tensor:
    """The sign of the mean of the centres (C, K) of each item's classes; where it is zero, that of a random vector."""
    sums = labels @ centres
    return torch.where(sums == 0, signs(torch.randn(centres.shape[1])), sums.sign())
