"""DNPH: neighbourhood-aware proxy hashing with uniform codes (Huo, Qin, Dai, Zhang, Huang, Wang, TOMM 2024).

Each class has a proxy. The classes of an item should have the largest share in a softmax over minus the squared
distances of unit vectors from the proxies, to which own classes add a margin. To spread the codes, outputs are drawn to
random codes, one per item of the batch, assigned for each modality so that the sum of the distances is smallest.

Departures, besides those of deep.py: the inner product with a random code is divided by its length, relative to 16
bits, because the authors' sum outweighs the proxies in longer codes; Adam trains the proxies, which stay random in the
authors' code (their optimiser never steps). Lost on frozen features: the encoders' part (heads.py) and the
classification of their outputs by an item's first label, which would not reach the hash networks.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from pydantic import Field
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

from lab.methods.heads import HeadMethod, HeadObjective
from rmsh.methods.deep import NetworkConfig
from rmsh.training.loop import Batch, Losses, TrainingSet
from rmsh.training.losses import cosines, signs


class DNPHConfig(NetworkConfig):
    margin: float = Field(1.0, ge=0, description="added to the squared distance from the proxies of the own classes")
    uniformity: float = Field(0.1, ge=0, description="weight of the random codes for 16 bits, falling with the length")
    learn_proxies: bool = Field(True, description="train the proxies; false: they stay random")


class Objective(HeadObjective):
    def __init__(self, data: TrainingSet, config: DNPHConfig, **options: int) -> None:
        super().__init__(data, config, **options)
        self.proxies = nn.Parameter(torch.randn(data.labels.shape[1], config.bits) / 8, config.learn_proxies)

    def loss(self, f: Tensor, g: Tensor, batch: Batch) -> Losses:
        labels, pool = batch.labels.repeat(2, 1), signs(torch.randn(f.shape))
        distances = 2 - 2 * cosines(torch.cat([f, g]), self.proxies) + self.config.margin * labels
        terms = {"proxies": -(labels * F.log_softmax(-distances, dim=1)).sum(dim=1).mean()}
        for name, h in (("image", f), ("text", g)):
            terms[f"{name} uniformity"] = -16 * self.config.uniformity * (h * assign(h, pool)).mean()
        return Losses(terms)


class DNPH(HeadMethod):
    name = "dnph"
    summary = "softmax over proxies of the classes with a margin; outputs drawn to uniformly distributed codes"
    reference = "Huo et al.: Deep Neighborhood-Aware Proxy Hashing with Uniform Distribution Constraint, TOMM 2024"
    Config = DNPHConfig
    objective = Objective


def assign(outputs: Tensor, pool: Tensor) -> Tensor:
    """The codes of the pool (n, K) in the order that brings them closest to the outputs (n, K)."""
    _, order = linear_sum_assignment(torch.cdist(outputs.detach(), pool).numpy())
    return pool[torch.from_numpy(order)]
