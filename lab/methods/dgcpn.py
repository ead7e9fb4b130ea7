"""DGCPN: deep graph-neighbour coherence preserving network (Yu, Zhou, Zhan, Tao, AAAI 2021).

The similarity S of two items mixes the cosines of their features with the common neighbours of both, see ``coherence``.
The cosines of outputs, between and within modalities, should equal S and one another, and 1.5 for an item's own pair.

Departures, besides those of deep.py: the losses of (F, G), (F, sgn G) and (sgn F, G) are added in one step, where the
original takes three; negative cosines make no neighbours. The original uses frozen features of 5,000 pairs, too:
nothing is lost but the width of its networks (4,096).
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from lab.methods.heads import HeadObjective, SampleConfig, SampleMethod, mixed_cosines
from rmsh.training.loop import Batch, Losses, TrainingSet
from rmsh.training.losses import cosines, signs


class DGCPNConfig(SampleConfig):
    image_share: float = Field(0.99, ge=0, le=1, description="weight of images in the similarity of two items")
    neighbours: float = Field(0.3, ge=0, le=1, description="weight of common neighbours in the similarity")
    dropped: float = Field(0.6, ge=0, lt=1, description="share of the items that are not neighbours of another")


class Objective(HeadObjective):
    similarity: Tensor  # S, (N, N)

    def __init__(self, data: TrainingSet, config: DGCPNConfig, **options: int) -> None:
        super().__init__(data, config, **options)
        mixed, drop = mixed_cosines(data, config.image_share), int(config.dropped * len(data))
        s = coherence(mixed, config.neighbours, drop=drop, scale=2 * (len(data) - drop))
        self.register_buffer("similarity", s, persistent=False)

    def loss(self, f: Tensor, g: Tensor, batch: Batch) -> Losses:
        s = self.similarity[batch.rows][:, batch.rows]
        versions = {"relaxed": (f, g), "image": (f, signs(g)), "text": (signs(f), g)}
        return Losses({name: coherence_loss(*codes, s) for name, codes in versions.items()})


class DGCPN(SampleMethod):
    name = "dgcpn"
    summary = "cosines of codes follow those of features and their common neighbours, without labels"
    reference = "Yu, Zhou, Zhan, Tao: Deep Graph-neighbor Coherence Preserving Network, AAAI 2021"
    Config = DGCPNConfig
    objective = Objective
    default_epochs = 40
    original_epochs = "up to 100, with 5,000 pairs"


def coherence(mixed: Tensor, share: float, *, drop: int, scale: int) -> Tensor:
    """2 ((1 - share) Q + share scale P P') - 1 of cosines Q; P is Q less each row's smallest and largest, its sum 1."""
    order = mixed.argsort(dim=1, stable=True)
    p = mixed.clamp_min(0).scatter(1, torch.cat([order[:, :drop], order[:, -1:]], dim=1), 0.0)
    p = p / p.sum(dim=1, keepdim=True).clamp_min(1e-12)
    return 2 * ((1 - share) * mixed + share * scale * p @ p.T) - 1


def coherence_loss(f: Tensor, g: Tensor, s: Tensor) -> Tensor:
    """The loss of outputs (n, K) and similarities (n, n); the diagonal of the latter does not count."""
    ff, fg, gg = cosines(f, f), cosines(f, g), cosines(g, g)
    targets = (torch.stack([ff, fg, gg]) - s) * (1 - torch.eye(len(s)))
    consistency = torch.stack([fg - ff, fg - gg, ff - gg, fg - fg.T])
    return (fg.diagonal() - 1.5).square().mean() + 3 * targets.square().mean() + 4 * consistency.square().mean()
