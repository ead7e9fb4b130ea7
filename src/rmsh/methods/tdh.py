"""TDH: triplet-based deep hashing (Deng, Chen, Liu, Gao, Tao, TIP 2018).

In a triplet (q, p, n), p shares a label with q and n does not. With theta_ab = a.b / 2, F and G the outputs for images
and texts, (N, K), and S_ij = 1 where items share a label, it minimises

    sum over triplets of l(F_q; G_p, G_n) + l(G_q; F_p, F_n) + l(F_q; F_p, F_n) + l(G_q; G_p, G_n)
    + gamma (|B - F|^2 + |B - G|^2) + eta (|F'1|^2 + |G'1|^2) + beta tr(B' L B),
    l(q; p, n) = -log sigmoid(theta_qp - theta_qn - alpha),

one network at a time, and then B = sgn((2 I + beta / gamma L)^-1 (F + G)), with the Laplacian L of the graph S.

The printed formulas could not be confirmed; these are the abstract's structure in the form of its successors.
Departures, besides those of deep.py:
- Adam instead of plain SGD, with a rate that falls linearly, as in the original; 15 epochs, not 500;
- triplets are drawn inside a batch, and the terms over all items are taken over the batch as well, with F'1 estimated
  as in DCMH;
- the graph contains the ``label_sets`` most frequent label sets; an item with a rarer one has no neighbour;
- F + G is centred before it is smoothed: smoothing shrinks everything but the mean, and bits would be constant;
- L is normalised by degree, I - D^-1/2 S D^-1/2 instead of D - S with D = diag(S1): with a label on two thirds of the
  items degrees are about N / 2, and B consists of the most frequent labels instead of following the networks
  (``agreement`` in the history is the share of B that equals sgn(F + G)).

Items with the same label set have the same neighbours, so the N x N matrix S is represented by the U x U matrix of the
distinct label sets, which is computed one block of rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from rmsh.methods.deep import NetworkConfig, NetworkMethod, SweepingObjective
from rmsh.training.loop import Batch, Losses, TrainingSet
from rmsh.training.losses import half_products, quantisation_loss, share_a_label, signs, triplet_loss

if TYPE_CHECKING:
    from rmsh.core.types import LabelArray

_BLOCK = 1024  # rows of the matrix of label sets computed at a time


@dataclass(frozen=True, eq=False)
class LabelGraph:
    """The graph that joins items sharing a label, by its U distinct label sets."""

    sets: Tensor  # (U, C)
    counts: Tensor  # (U,) items with each set
    member: Tensor  # (N,) the set of an item; U if its set is left out and the item has no neighbour

    @classmethod
    def of(cls, labels: LabelArray, *, at_most: int) -> LabelGraph:
        """The graph of items with labels (N, C), limited to the ``at_most`` most frequent sets.

        Example:
            >>> graph = LabelGraph.of(np.array([[0, 1], [1, 1], [0, 1]], np.uint8), at_most=9)
            >>> graph.sets.tolist(), graph.counts.tolist(), graph.member.tolist()
            ([[0.0, 1.0], [1.0, 1.0]], [2.0, 1.0], [0, 1, 0])
        """
        sets, member, counts = np.unique(labels, axis=0, return_inverse=True, return_counts=True)
        frequent = np.argsort(-counts, kind="stable")[:at_most]
        position = np.full(len(sets), len(frequent))
        position[frequent] = np.arange(len(frequent))
        return cls(
            torch.from_numpy(sets[frequent]).float(),
            torch.from_numpy(counts[frequent]).float(),
            torch.from_numpy(position[member.reshape(-1)]),
        )

    def sum_over_neighbours(self, values: Tensor) -> Tensor:
        """S values, for values with one row per label set, (U, K)."""
        return torch.cat([share_a_label(rows, self.sets) @ values for rows in torch.split(self.sets, _BLOCK)])


def smooth(graph: LabelGraph, values: Tensor, *, strength: float) -> Tensor:
    """Solve (2 I + strength L) V = values for V (N, K), which draws the values of neighbours together.

    L = I - D^-1/2 S D^-1/2 with the degrees d = S1. Summed over the n_u items of a label set, the system has one row
    per set: (2 + strength) W_u - strength n_u sum over v of S_uv W_v / sqrt(d_u d_v) = sum of the set's values, where
    W_u is the sum of its V. Divided by sqrt(n_u), with Y_u = W_u / sqrt(n_u), it is symmetric and positive definite.
    """
    known = graph.member < len(graph.sets)
    member, counts, level = graph.member[known], graph.counts[:, None], 2 + strength
    degrees = graph.sum_over_neighbours(counts).clamp_min(1)  # 0 for items without labels
    roots = (counts / degrees).sqrt()
    sums = torch.zeros(len(counts), values.shape[1]).index_add_(0, member, values[known])
    y = conjugate_gradient(
        lambda y: level * y - strength * roots * graph.sum_over_neighbours(roots * y), sums / counts.sqrt()
    )
    solved = values / 2
    pulled = strength * graph.sum_over_neighbours(roots * y) / degrees.sqrt()
    solved[known] = (values[known] + pulled[member]) / level
    return solved


def conjugate_gradient(
    product: Callable[[Tensor], Tensor], right: Tensor, *, tolerance: float = 1e-3, at_most: int = 50
) -> Tensor:
    """Solve A x = right for each column of (n, K), given x -> A x of a symmetric positive definite A.

    Steps end when the residual is below ``tolerance`` times ``right``.

    Example:
        >>> matrix = torch.tensor([[4.0, 1.0], [1.0, 3.0]])
        >>> conjugate_gradient(matrix.mm, torch.tensor([[1.0], [2.0]])).tolist()
        [[0.0909...], [0.6363...]]
    """
    x, residual = torch.zeros_like(right), right.clone()
    direction, size = residual, residual.square().sum(dim=0)
    for _ in range(at_most):
        if (residual.norm(dim=0) <= tolerance * right.norm(dim=0)).all():
            break
        image = product(direction)
        step = size / (direction * image).sum(dim=0).clamp_min(1e-30)
        x, residual = x + step * direction, residual - step * image
        before, size = size, residual.square().sum(dim=0)
        direction = residual + size / before.clamp_min(1e-30) * direction
    return x


def update_codes(graph: LabelGraph, sums: Tensor, *, ratio: float) -> Tensor:
    """B, (N, K) of -1 and 1, from F + G and beta / gamma."""
    return signs(smooth(graph, sums - sums.mean(dim=0), strength=ratio))


class TDHConfig(NetworkConfig):
    """Options of TDH."""

    alpha: float = Field(1.0, ge=0, description="margin of a triplet")
    gamma: float = Field(1.0, gt=0, description="weight of the quantisation loss")
    eta: float = Field(0.5, ge=0, description="weight of the bit balance")
    beta: float = Field(1.0, ge=0, description="weight of the label graph")
    triplets: int = Field(128, ge=1, description="triplets drawn for each item of a batch")
    label_sets: int = Field(4000, ge=1, description="maximum number of distinct label sets in the graph")


class TDH(NetworkMethod):
    """Triplet-based deep hashing."""

    name = "tdh"
    version = 2
    summary = "likelihood of triplets within and across modalities, codes smoothed over a graph of shared labels"
    reference = "Deng, Chen, Liu, Gao, Tao: Triplet-Based Deep Hashing Network for Cross-Modal Retrieval, TIP 2018"
    Config = TDHConfig
    default_epochs = 15
    original_epochs = "500"
    passes = 2
    config: TDHConfig

    def _objective(self, data: TrainingSet) -> Objective:
        return Objective(data, self.config)


Triplets: TypeAlias = tuple[Tensor, Tensor, Tensor]  # query, positive and negative item of a batch, each (t,)


def draw_triplets(similar: Tensor, each: int) -> Triplets:
    """Draw ``each`` triplets for every item that has both kinds of partners, given S (n, n) of a batch.

    Example:
        >>> q, p, n = draw_triplets(torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]]), 1)
        >>> q.tolist(), p.tolist(), n.tolist()  # item 1 has no negative
        ([0, 2], [1, 1], [2, 0])
    """
    positive, negative = similar.clone().fill_diagonal_(0), (1 - similar).fill_diagonal_(0)
    query = ((positive.sum(dim=1) > 0) & (negative.sum(dim=1) > 0)).nonzero()[:, 0]
    if not len(query):
        return query, query, query
    near, far = (torch.multinomial(weights[query], each, replacement=True) for weights in (positive, negative))
    return query.repeat_interleave(each), near.reshape(-1), far.reshape(-1)


class Objective(SweepingObjective):
    """The loss of a batch of one modality; what it shares with the other is constant."""

    codes: Tensor  # (N, K), B

    def __init__(self, data: TrainingSet, config: TDHConfig) -> None:
        super().__init__(data, config)
        self.config = config
        self.graph = LabelGraph.of(data.labels, at_most=config.label_sets)
        self.register_buffer("codes", torch.zeros(len(data), config.bits))

    @torch.no_grad()
    def begin_epoch(self, epoch: int, data: TrainingSet) -> None:
        """Update B after both networks have been trained."""
        super().begin_epoch(epoch, data)
        if self.side == 0:
            self.codes = update_codes(self.graph, self.outputs.sum(dim=0), ratio=self.config.beta / self.config.gamma)

    def forward(self, batch: Batch) -> Losses:
        config, n = self.config, len(batch.rows)
        f, other = self.network(self.inputs(batch)), self.outputs[1 - self.side, batch.rows]
        triplets = draw_triplets(share_a_label(batch.labels, batch.labels), config.triplets)
        across, within = half_products(f, other), half_products(f, f)
        terms = {
            "inter": (self._likelihood(across, triplets) + self._likelihood(across.T, triplets)) / n,
            "intra": self._likelihood(within, triplets) / n,
            "quantisation": config.gamma * quantisation_loss(f, self.codes[batch.rows]).mean(),
            "balance": config.eta * n * self.mean_output(batch.rows, f).square().sum(),
        }
        together = self.codes[batch.rows] == signs(self.outputs[:, batch.rows].sum(dim=0))
        return Losses(self.prefixed(terms), {"agreement": float(together.float().mean())})

    def _likelihood(self, theta: Tensor, triplets: Triplets) -> Tensor:
        q, p, n = triplets
        return triplet_loss(theta[q, p], theta[q, n], margin=self.config.alpha).sum()
