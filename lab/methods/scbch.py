"""SCBCH: semantic-consistent bidirectional contrastive hashing for noisy labels (Peng et al., arXiv 2511.07780, 2025).

Outputs u and v of unit length are contrasted by the Jaccard similarity of their labels, should have large absolute
values, and predict the labels through a linear classifier per modality. After a tenth of the epochs, an item counts by
(1 + cos(y, y')) / 2 there, where y are its labels and y' the weighted mean of those of its 20 nearest neighbours.

Departures, besides those of deep.py: neighbours are sought among 8,192 items, drawn in each epoch, by the outputs of
the last one. The original uses frozen features, too: nothing is lost.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from pydantic import Field
from torch import Tensor, nn

from lab.methods.heads import HeadMethod, HeadObjective, lower_negatives
from rmsh.methods.deep import NetworkConfig
from rmsh.training.loop import Batch, Losses, TrainingSet
from rmsh.training.losses import classification_loss


class SCBCHConfig(NetworkConfig):
    alpha: float = Field(0.7, ge=0, description="weight of the contrast")
    beta: float = Field(0.3, ge=0, description="weight of the quantisation")
    margin: float = Field(0.3, ge=0, description="similarity below that of the own pair from which negatives are easy")
    shift: float = Field(1.1, ge=0, description="what the similarity of easy negatives is reduced by")


class Objective(HeadObjective):
    outputs: Tensor  # (N, 2K), the last u and v of all items

    def __init__(self, data: TrainingSet, config: SCBCHConfig, **options: int) -> None:
        super().__init__(data, config, **options)
        self.heads = nn.ModuleList(nn.Linear(config.bits, data.labels.shape[1], bias=False) for _ in range(2))
        for head in self.heads:
            nn.init.orthogonal_(head.weight)  # type: ignore[arg-type]  # of a linear layer
        self.weights = torch.ones(len(data))
        self.register_buffer("outputs", torch.zeros(len(data), 2 * config.bits))

    def begin_epoch(self, epoch: int, data: TrainingSet) -> None:
        super().begin_epoch(epoch, data)
        if epoch >= -(-self.epochs // 10):
            self.weights = agreement(self.outputs, torch.from_numpy(data.labels).float())

    def loss(self, f: Tensor, g: Tensor, batch: Batch) -> Losses:
        config, labels, u, v = self.config, batch.labels, F.normalize(f, dim=1), F.normalize(g, dim=1)
        self.outputs[batch.rows] = torch.cat([u, v], dim=1).detach()
        losses = classification_loss(torch.stack([self.heads[0](u), self.heads[1](v)]), labels).mean(dim=0)
        contrast = soft_contrast(u @ v.T, labels, margin=config.margin, shift=config.shift)
        quantisation, weights = 2 - u.abs().mean() - v.abs().mean(), self.weights[batch.rows] / labels.shape[1]
        terms = {"contrast": config.alpha * contrast, "quantisation": config.beta * quantisation}
        return Losses({**terms, "labels": (weights * losses).mean()})


class SCBCH(HeadMethod):
    name = "scbch"
    summary = "contrast by the overlap of labels, and classification weighted by agreement with neighbours"
    reference = "Peng et al.: Semantic-Consistent Bidirectional Contrastive Hashing, arXiv 2511.07780, 2025"
    Config = SCBCHConfig
    objective = Objective
    original_epochs = "50"


def agreement(outputs: Tensor, labels: Tensor) -> Tensor:
    """The weights (n,) of items with outputs (n, 2K), images and texts side by side, and labels (n, C)."""
    searched, weights = torch.randperm(len(outputs))[:8192], []
    for rows in torch.split(torch.arange(len(outputs)), 4096):
        similarities = (outputs[rows] @ outputs[searched].T).masked_fill(rows[:, None] == searched, 0.0)
        near = similarities.clamp_min(0).topk(min(20, len(searched)), dim=1)
        found = (near.values[:, :, None] * labels[searched[near.indices]]).sum(dim=1)
        weights.append(0.5 + 0.5 * F.cosine_similarity(labels[rows], found))
    return torch.cat(weights)


def soft_contrast(s: Tensor, labels: Tensor, *, margin: float, shift: float) -> Tensor:
    """The contrast of the similarities s (n, n) of images and texts; T is the Jaccard similarity of labels (n, C).

    The means of exp(c (1 - T)), for c = s with lowered negatives by rows and by columns, and at least 0 on the
    diagonal, plus that of exp(shift - s) where T > 0 and i != j, less that of s_ii.
    """
    shared, sizes, own = labels @ labels.T, labels.sum(dim=1), torch.eye(len(s), dtype=torch.bool)
    t = shared / (sizes[:, None] + sizes - shared).clamp_min(1.0)
    c = torch.stack([lower_negatives(each, margin=margin, shift=shift) for each in (s, s.T)])
    spread = (torch.where(own, c.clamp_min(0), c) * (1 - t)).exp().mean()
    return 2 * spread + ((t > 0) & ~own).mul((shift - s).exp()).mean() - s.diagonal().mean()
