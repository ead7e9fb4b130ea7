"""DCHMT: differentiable cross-modal hashing via multimodal transformers (Tu, Liu, Lin, Hong, Wang, MM 2022).

With p and q the probabilities of the bits of two items, their distance is d = sqrt(2 |p - q|^2), whose square is twice
the Hamming distance if bits are certain. With M = sqrt(2 K theta), items that share a label cost d^2, others
(M - min(d, M))^2, between images and texts, among images and among texts, each the mean over all pairs of the batch.

Departures, besides those of deep.py: one logit per bit instead of two, so that 2p - 1 is the tanh of an output; outputs
are normalised over the batch, without which 4 of 64 bits are constant. Theta is 0.5, as in the authors' program; their
examples have 0.75, more than many groups can reach. Lost on frozen features: the encoders' part (heads.py).
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from lab.methods.heads import HeadMethod, HeadObjective
from rmsh.methods.deep import NetworkConfig
from rmsh.training.loop import Batch, Losses
from rmsh.training.losses import share_a_label


class DCHMTConfig(NetworkConfig):
    batch_norm: bool = Field(True, description="batch normalisation before the last activation")
    theta: float = Field(0.5, gt=0, le=1, description="share of the bits in which dissimilar items should differ")
    quantisation: float = Field(1e-3, ge=0, description="weight of the distance of probabilities from 0 and 1")


class Objective(HeadObjective):
    def loss(self, f: Tensor, g: Tensor, batch: Batch) -> Losses:
        similar = share_a_label(batch.labels, batch.labels)
        pairs = {"images and texts": (f, g), "images": (f, f), "texts": (g, g)}
        terms = {name: self._selection(*codes, similar) for name, codes in pairs.items()}
        terms["quantisation"] = self.config.quantisation * (1 - (f.square() + g.square()).mean() / 2)
        return Losses(terms)

    def _selection(self, f: Tensor, g: Tensor, similar: Tensor) -> Tensor:
        limit = (2 * self.config.bits * self.config.theta) ** 0.5
        squares = (f.square().sum(dim=1, keepdim=True) + g.square().sum(dim=1)) / 2 - f @ g.T
        distances = squares.clamp_min(1e-8).sqrt()  # the root has no gradient at zero
        return (similar * squares).mean() + ((1 - similar) * torch.relu(limit - distances).square()).mean()


class DCHMT(HeadMethod):
    name = "dchmt"
    summary = "bits as soft choices; similar items close, dissimilar ones apart in half of the bits"
    reference = "Tu, Liu, Lin, Hong, Wang: Differentiable Cross-Modal Hashing via Multimodal Transformers, MM 2022"
    Config = DCHMTConfig
    objective = Objective
    original_epochs = "100, with 10,240 pairs"
