"""DHaPH: hierarchy-aware proxy hashing with self-paced learning (Huo, Qin, Zhang, Huang, Nie, TKDE 2024).

A contrastive loss among images, among texts and between both: with s the cosine of two items, the share of the items
that share a label with item i in the sum of exp(s / tau) over the batch should be 1. A pair is weighted by
exp(-(1 + s) d / 4) if it shares a label, otherwise by exp((s - 1) d), without gradient; the pace d rises from 0 to 1 in
the first third of the epochs, so that hard pairs count more and more.

The paper adds a tree of hyperbolic proxies. In both public implementations it receives detached codes and never moves
them, so that published DHaPH is the loss above; it is left out. Lost on frozen features: the encoders' part (heads.py).
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from lab.methods.heads import HeadMethod, HeadObjective
from rmsh.methods.deep import NetworkConfig
from rmsh.training.loop import Batch, Losses
from rmsh.training.losses import cosines, share_a_label


class DHaPHConfig(NetworkConfig):
    temperature: float = Field(0.3, gt=0, description="tau, by which cosines are divided")


class Objective(HeadObjective):
    def loss(self, f: Tensor, g: Tensor, batch: Batch) -> Losses:
        similar, pace = share_a_label(batch.labels, batch.labels), (self.epoch + 1) / max(self.epochs // 3, 1)
        pairs = {"images": (f, f), "texts": (g, g), "images and texts": (f, g)}
        return Losses({name: self._contrast(cosines(*codes), similar, min(pace, 1.0)) for name, codes in pairs.items()})

    def _contrast(self, s: Tensor, similar: Tensor, pace: float) -> Tensor:
        fixed = s.detach()
        weights = pace * torch.where(similar > 0, -(1 + fixed) / 4, fixed - 1)  # their logarithms
        logits = s / self.config.temperature + weights
        positive = logits.masked_fill(similar == 0, -torch.inf)
        loss: Tensor = (logits.logsumexp(dim=1) - positive.logsumexp(dim=1)).mean()
        return loss


class DHaPH(HeadMethod):
    name = "dhaph"
    summary = "contrast of items that share a label with others; hard pairs count more as training proceeds"
    reference = "Huo, Qin, Zhang, Huang, Nie: Deep Hierarchy-Aware Proxy Hashing With Self-Paced Learning, TKDE 2024"
    Config = DHaPHConfig
    objective = Objective
