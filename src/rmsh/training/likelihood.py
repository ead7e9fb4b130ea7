"""Losses of the likelihood family: how probable are the labels, given codes, that two share one or one is nearer.

With theta = u.v / 2, items that share a label have p(S = 1) = sigmoid(theta), and a triplet keeps its order with
probability sigmoid(theta of the similar pair - theta of the other - margin). Each loss is a negative logarithm, written
with softplus because log(1 + exp(theta)) overflows for long codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.nn.functional as F  # noqa: N812  # its customary name

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["half_products", "pairwise_loss", "share_a_label", "triplet_loss"]


def share_a_label(labels: Tensor, others: Tensor) -> Tensor:
    """S (n, m): 1 where two items share a label, else 0; float, as the labels (n, C) and (m, C) are.

    Example:
        >>> import torch
        >>> share_a_label(torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 1.0]])).tolist()
        [[1.0, 0.0]]
    """
    return (labels @ others.T).clamp_max_(1.0)


def half_products(codes: Tensor, others: Tensor) -> Tensor:
    """Theta (n, m), half the inner products of codes (n, K) and (m, K).

    Example:
        >>> import torch
        >>> half_products(torch.tensor([[1.0, -1.0]]), torch.tensor([[1.0, -1.0], [3.0, 1.0]])).tolist()
        [[1.0, 1.0]]
    """
    return 0.5 * codes @ others.T


def pairwise_loss(theta: Tensor, similar: Tensor) -> Tensor:
    """-log p(S | theta) = log(1 + exp(theta)) - S theta, the mean over all pairs.

    Example:
        >>> import torch
        >>> round(pairwise_loss(torch.tensor([[0.0, 1000.0]]), torch.tensor([[0.0, 1.0]])).item(), 4)  # log(2) / 2
        0.3466
    """
    return F.softplus(theta).mean() - (similar * theta).mean()


def triplet_loss(near: Tensor, far: Tensor, *, margin: float) -> Tensor:
    """-log sigmoid(near - far - margin) of each triplet, in the shape of its thetas.

    Example:
        >>> import torch
        >>> triplet_loss(torch.tensor([3.0]), torch.tensor([2.0]), margin=1.0).exp().tolist()
        [2.0]
    """
    return F.softplus(far + margin - near)
