"""DSPH: deep semantic-aware proxy hashing (Huo, Qin, Dai, Wang, Zhang, Huang, Wang, TCSVT 2024).

Each class has a learned proxy. An item is drawn to the proxies of its classes, by 1 - cos, and kept from the others, by
[cos - t]+. The latter, weighted by alpha, also applies to pairs of items that both have several labels and share none.
The threshold is t = 1 - 2 d / K, with d the minimum distance of the best known binary linear code of K bits with a
codeword per class, or the Griesmer bound where the authors list none.

Departures, besides those of deep.py: Adam trains the proxies. Lost on frozen features: the encoders' part (heads.py).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from pydantic import Field
from torch import Tensor, nn

from lab.methods.heads import HeadMethod, HeadObjective
from rmsh.methods.deep import NetworkConfig
from rmsh.training.loop import Batch, Losses, TrainingSet
from rmsh.training.losses import cosines, share_a_label

# Best known codes (bits, dimension) whose minimum distance is below the Griesmer bound.
_BEST_KNOWN = {(16, 6): 6, (16, 8): 5, (32, 7): 14, (32, 8): 13, (64, 8): 29}


class DSPHConfig(NetworkConfig):
    alpha: float = Field(0.8, ge=0, description="weight of pairs of items that share no label")
    threshold: float | None = Field(None, ge=-1, lt=1, description="cosine t; none: from the best linear codes")


class Objective(HeadObjective):
    def __init__(self, data: TrainingSet, config: DSPHConfig, **options: int) -> None:
        super().__init__(data, config, **options)
        classes = data.labels.shape[1]
        best = 1 - 2 * code_distance(config.bits, classes) / config.bits
        self.threshold = best if config.threshold is None else config.threshold
        self.proxies = nn.Parameter(torch.randn(classes, config.bits) * (2 / classes) ** 0.5)

    def loss(self, f: Tensor, g: Tensor, batch: Batch) -> Losses:
        terms, labels, several = {}, batch.labels, (batch.labels.sum(dim=1) > 1).float()
        strangers = (1 - share_a_label(labels, labels)) * several * several[:, None]
        for name, c in (("image", cosines(f, self.proxies)), ("text", cosines(g, self.proxies))):
            terms[f"own {name} proxies"] = masked_mean(1 - c, labels)
            terms[f"other {name} proxies"] = masked_mean(F.relu(c - self.threshold), 1 - labels)
        for name, codes in (("images", (f, f)), ("texts", (g, g)), ("images and texts", (f, g))):
            terms[name] = self.config.alpha * masked_mean(F.relu(cosines(*codes) - self.threshold), strangers)
        return Losses(terms)


class DSPH(HeadMethod):
    name = "dsph"
    summary = "learned proxies of the classes; dissimilar items as far apart as the best linear codes"
    reference = "Huo et al.: Deep Semantic-Aware Proxy Hashing for Multi-Label Cross-Modal Retrieval, TCSVT 2024"
    Config = DSPHConfig
    objective = Objective


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """The mean of the values where the mask, of the same shape, is 1; zero if that is nowhere."""
    return (values * mask).sum() / mask.sum().clamp_min(1.0)


def code_distance(bits: int, classes: int) -> int:
    """The minimum distance of the best known binary linear code with at least as many codewords as classes."""
    dimension = max((classes - 1).bit_length(), 1)  # k; with distance d, a code has sum_i<k ceil(d / 2^i) bits or more
    fits = (d for d in range(bits, 0, -1) if sum(-(-d // 2**i) for i in range(dimension)) <= bits)
    return _BEST_KNOWN.get((bits, dimension), next(fits, 1))
