"""CIRH: correlation-identity reconstruction hashing (Zhu, Wu, Li, Zhang, Guan, Shen, TKDE 2022).

The similarity S of two items mixes the cosines of their features, see ``similarity``. From the pairs of a batch, a
joint network makes relaxed codes of images, texts and both (H) by graph convolutions over S. Their cosines should equal
S, H its signs B, and decoders should reconstruct the features, smoothed over two neighbours. Two hash networks, of one
modality each, learn to reproduce B; with a small weight, the cosines of their outputs should equal S as well.

Departures, besides those of deep.py: the joint network and the hash networks, which share no parameter, learn in the
same steps, not in turn; S is that of the items of the batch (in the authors' code, of others). The original uses frozen
features, too: nothing is lost but the width of its networks (4,096 for images).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from pydantic import Field
from torch import Tensor, nn

from lab.methods.heads import HeadObjective, SampleConfig, SampleMethod, mixed_cosines
from rmsh.training.loop import Batch, Losses, TrainingSet
from rmsh.training.losses import cosines, signs


class CIRHConfig(SampleConfig):
    batch: int | None = Field(512, ge=3, description="items per step")
    image_share: float = Field(0.1, ge=0, le=1, description="weight of images in the similarity of two items")
    direct: float = Field(0.3, ge=0, le=1, description="weight of S1 in the similarity")
    dropped: float = Field(0.6, ge=0, lt=1, description="share of the items whose similarity to another counts as 0")
    beta: float = Field(0.01, ge=0, description="weight of the similarities in the loss of the hash networks")


class Objective(HeadObjective):
    similarity: Tensor  # S, (N, N)

    def __init__(self, data: TrainingSet, config: CIRHConfig, **options: int) -> None:
        super().__init__(data, config, **options)
        mixed, drop = mixed_cosines(data, config.image_share), int(config.dropped * len(data))
        self.register_buffer("similarity", similarity(mixed, config.direct, drop=drop), persistent=False)
        bits, width, inputs = config.bits, -(-config.hidden // 2), (data.images.shape[1], data.texts.shape[1])
        self.features = nn.ModuleList(_layer(d, width) for d in inputs)
        self.graph = nn.ModuleList(_layer(width, width) for _ in range(3))  # of images, of texts, of both
        self.codes = nn.ModuleList(_layer(d, bits) for d in (2 * width, 2 * width, width, 3 * bits))
        self.decoders = nn.ModuleList(nn.Sequential(_layer(bits, width), nn.ReLU(), _layer(width, d)) for d in inputs)

    def loss(self, f: Tensor, g: Tensor, batch: Batch) -> Losses:
        s = self.similarity[batch.rows][:, batch.rows]
        x = [self.image.scaling(batch.images), self.text.scaling(batch.texts)]
        v, w = (F.normalize(F.relu(layer(each)), dim=1) for layer, each in zip(self.features, x, strict=True))
        image, text = F.relu(self.graph[0](s @ v)), F.relu(self.graph[1](s @ w))
        both = F.relu(self.graph[2](torch.cat([s @ v + w, v + s @ w])).view(2, len(s), -1).sum(dim=0))
        h = [self.codes[0](torch.cat([image, both], dim=1)), self.codes[1](torch.cat([both, text], dim=1))]
        h += [torch.tanh(self.codes[3](torch.cat([h[0], self.codes[2](both), h[1]], dim=1)))]
        near = s.topk(3, dim=1).indices  # the item itself first
        smooth = [0.7 * each[near[:, 0]] + 0.2 * each[near[:, 1]] + 0.1 * each[near[:, 2]] for each in x]
        decoded = [decoder(h[2] + torch.tanh(each)) for decoder, each in zip(self.decoders, h[:2], strict=True)]
        terms = {
            "images": 10 * F.mse_loss(decoded[0], smooth[0]),
            "texts": 10 * F.mse_loss(decoded[1], smooth[1]),
            "cosines": torch.stack([F.mse_loss(cosines(each, each), s) for each in h]).sum(),
            "quantisation": F.mse_loss(h[2], signs(h[2])),
            "hash networks": hash_loss(f, g, signs(h[2]), s, beta=self.config.beta),
        }
        return Losses(terms)


class CIRH(SampleMethod):
    name = "cirh"
    summary = "codes of pairs by graph convolutions and reconstruction, then one network per modality, without labels"
    reference = "Zhu et al.: Work Together: Correlation-Identity Reconstruction Hashing, TKDE 2022"
    Config = CIRHConfig
    objective = Objective
    default_epochs = 100
    original_epochs = "60 to 120, with 5,000 pairs"


def _layer(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs))


def similarity(mixed: Tensor, direct: float, *, drop: int) -> Tensor:
    """S = direct S1 + (1 - direct) sym(2 sigmoid(S1) - 1 + I), S1 being the cosines without the smallest."""
    s1 = mixed.scatter(1, mixed.argsort(dim=1, stable=True)[:, :drop], 0.0)
    s2 = 2 * torch.sigmoid(s1) - 1 + torch.eye(len(s1))
    return direct * s1 + (1 - direct) * (s2 + s2.T) / 2


def hash_loss(f: Tensor, g: Tensor, b: Tensor, s: Tensor, *, beta: float) -> Tensor:
    """The loss of the hash networks with outputs f and g (n, K), for codes b (n, K) and similarities s (n, n)."""
    similar = torch.stack([F.mse_loss(cosines(*each), s) for each in ((f, g), (f, f), (g, g))]).sum()
    return F.mse_loss(f, b) + F.mse_loss(g, b) + F.mse_loss(f, g) + beta * similar
