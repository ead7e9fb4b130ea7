"""The graph that joins items sharing a label, and values smoothed over it, without its N x N matrix.

Items with the same label set have the same neighbours. So the matrix S, S_ij = 1 where items share a label, is made of
the U x U matrix of the distinct label sets, of which only a block of rows exists at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from rmsh.training.likelihood import share_a_label

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from rmsh.types import LabelArray

__all__ = ["LabelGraph", "conjugate_gradient", "smooth"]

# Rows of the matrix of label sets that exist at a time.
_BLOCK = 1024


@dataclass(frozen=True, eq=False)
class LabelGraph:
    """The graph by its distinct label sets.

    Args:
        sets: (U, C) the label sets.
        counts: (U,) how many items have each.
        member: (N,) which set an item has; U where its set is left out, and the item has no neighbour.
    """

    sets: Tensor
    counts: Tensor
    member: Tensor

    @classmethod
    def of(cls, labels: LabelArray, *, at_most: int) -> LabelGraph:
        """The graph of items with labels (N, C), of its most frequent sets only where there are more than ``at_most``.

        Example:
            >>> graph = LabelGraph.of(np.array([[0, 1], [1, 1], [0, 1]], np.uint8), at_most=9)
            >>> graph.sets.tolist(), graph.counts.tolist(), graph.member.tolist()
            ([[0.0, 1.0], [1.0, 1.0]], [2.0, 1.0], [0, 1, 0])
        """
        sets, member, counts = np.unique(labels, axis=0, return_inverse=True, return_counts=True)
        frequent = np.argsort(-counts, kind="stable")[:at_most]
        place = np.full(len(sets), len(frequent))
        place[frequent] = np.arange(len(frequent))
        return cls(
            torch.from_numpy(sets[frequent]).float(),
            torch.from_numpy(counts[frequent]).float(),
            torch.from_numpy(place[member.reshape(-1)]),
        )

    def sum_over_neighbours(self, values: Tensor) -> Tensor:
        """S values of one row a label set, (U, K)."""
        return torch.cat([share_a_label(rows, self.sets) @ values for rows in torch.split(self.sets, _BLOCK)])


def smooth(graph: LabelGraph, values: Tensor, *, strength: float) -> Tensor:
    """Solve (2 I + strength (diag(S1) - S)) V = values for V (N, K): neighbours' values are drawn together.

    Summed over the n_u items of a label set, the system has one row a set: with d = S1,
    (2 + strength d_u) W_u - strength n_u (S W)_u = sum of the set's values, where W_u is the sum of its V. Divided by
    sqrt(n_u), with Y_u = W_u / sqrt(n_u), it is symmetric and positive definite. V follows from W.
    """
    known = graph.member < len(graph.sets)
    member, roots = graph.member[known], graph.counts.sqrt()[:, None]
    diagonal = 2 + strength * graph.sum_over_neighbours(graph.counts[:, None])
    sums = torch.zeros(len(graph.sets), values.shape[1]).index_add_(0, member, values[known])
    y = conjugate_gradient(
        lambda y: diagonal * y - strength * roots * graph.sum_over_neighbours(roots * y),
        sums / roots,
        diagonal=diagonal,
    )
    solved = values / 2
    pulled = strength * graph.sum_over_neighbours(roots * y)
    solved[known] = (values[known] + pulled[member]) / diagonal[member]
    return solved


def conjugate_gradient(
    product: Callable[[Tensor], Tensor],
    right: Tensor,
    *,
    diagonal: Tensor,
    tolerance: float = 1e-3,
    at_most: int = 50,
) -> Tensor:
    """Solve A x = right, each column by itself, for a symmetric positive definite A that is known by its products.

    Args:
        product: x -> A x, (n, K) to (n, K).
        right: (n, K).
        diagonal: (n, 1) of A, by which the steps are scaled.
        tolerance: of the residual, as a share of ``right``.
        at_most: steps.

    Example:
        >>> matrix = torch.tensor([[4.0, 1.0], [1.0, 3.0]])
        >>> conjugate_gradient(matrix.mm, torch.tensor([[1.0], [2.0]]), diagonal=matrix.diagonal()[:, None]).tolist()
        [[0.0909...], [0.6363...]]
    """
    x, residual = torch.zeros_like(right), right.clone()
    scaled = residual / diagonal
    direction, size = scaled, (residual * scaled).sum(dim=0)
    for _ in range(at_most):
        if (residual.norm(dim=0) <= tolerance * right.norm(dim=0)).all():
            break
        image = product(direction)
        step = size / (direction * image).sum(dim=0).clamp_min(1e-30)
        x, residual = x + step * direction, residual - step * image
        scaled = residual / diagonal
        before, size = size, (residual * scaled).sum(dim=0)
        direction = scaled + size / before.clamp_min(1e-30) * direction
    return x
