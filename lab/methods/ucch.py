"""UCCH: unsupervised contrastive cross-modal hashing (Hu, Zhu, Lin, Peng, Zhao, Peng, TPAMI 2023).

A memory has a unit vector per training pair. Outputs f and g of unit length should recognise the signs of their pair's
vector among 4,096 others (weight alpha), and each other within the batch (the rest); there, negatives that are more
than ``margin`` below the own pair are reduced by ``shift``, so that hard ones prevail. After each step, f + g enters
the memory with momentum. In the first epoch, the signs of f + g of the batch replace those of the memory.

Departures, besides those of deep.py: one draw of negatives serves the whole batch, whose own codes are added to it. The
original uses frozen features, too: nothing is lost but the size of its networks (8,192 wide, up to three layers).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from pydantic import Field
from torch import Tensor

from lab.methods.heads import HeadMethod, HeadObjective, contrastive_loss, lower_negatives
from rmsh.methods.deep import NetworkConfig
from rmsh.training.loop import Batch, Losses, TrainingSet
from rmsh.training.losses import signs


class UCCHConfig(NetworkConfig):
    alpha: float = Field(0.7, ge=0, le=1, description="weight of the contrast with the memory, not the batch")
    margin: float = Field(0.2, ge=0, description="similarity below that of the own pair from which negatives are easy")
    shift: float = Field(0.1, ge=0, description="what the similarity of easy negatives is reduced by")
    negatives: int = Field(4096, ge=0, description="codes of the memory drawn in each step")


class Objective(HeadObjective):
    memory: Tensor  # (N, K), filled in the first epoch

    def __init__(self, data: TrainingSet, config: UCCHConfig, **options: int) -> None:
        super().__init__(data, config, **options)
        self.register_buffer("memory", torch.zeros(len(data), config.bits))

    def loss(self, f: Tensor, g: Tensor, batch: Batch) -> Losses:
        config, f, g = self.config, F.normalize(f, dim=1), F.normalize(g, dim=1)
        new = F.normalize((f + g).detach(), dim=1)
        codes = signs(new)
        if self.epoch:
            drawn = torch.randint(len(self.memory), (config.negatives,))
            codes = signs(self.memory[torch.cat([batch.rows, drawn])])
            new = F.normalize(0.4 * self.memory[batch.rows] + 0.6 * new, dim=1)
        self.memory[batch.rows] = new
        codes = codes.T / (0.9 * config.bits**0.5)
        rows, columns = (lower_negatives(s, margin=config.margin, shift=config.shift) for s in (f @ g.T, g @ f.T))
        pairs = contrastive_loss(rows, columns) + 2 * config.margin
        memory = contrastive_loss(f @ codes, g @ codes)
        return Losses({"memory": config.alpha * memory, "pairs": (1 - config.alpha) * pairs})


class UCCH(HeadMethod):
    name = "ucch"
    summary = "contrast of outputs with a memory of all pairs' codes, and of the pairs of a batch, without labels"
    reference = "Hu, Zhu, Lin, Peng, Zhao, Peng: Unsupervised Contrastive Cross-Modal Hashing, TPAMI 2023"
    supervised = False
    Config = UCCHConfig
    objective = Objective
    original_epochs = "20"
