"""Losses shared by several methods, as pure functions of tensors.

Likelihood losses: with theta = u.v / 2, items that share a label have p(S = 1) = sigmoid(theta), and a triplet keeps
its order with probability sigmoid(theta of the similar pair - theta of the other - margin). Each loss is a negative
logarithm, written with softplus because log(1 + exp(theta)) overflows for long codes.

Listwise targets: for each query in a batch, the labels define a distribution over the other modality, proportional to a
gain that rises steeply with the number of shared labels.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from torch import Tensor


def classification_loss(logits: Tensor, labels: Tensor, *, positive_weight: Tensor | None = None) -> Tensor:
    """Eq. (classification_loss) of RMSH: weighted cross-entropy, summed over the classes, (..., n).

    ``logits`` are (..., n, C), ``labels`` (n, C); ``positive_weight``, w_p (C,), multiplies the positive term only.
    """
    weight = torch.ones(()) if positive_weight is None else positive_weight
    terms = F.binary_cross_entropy_with_logits(logits, labels.expand_as(logits), pos_weight=weight, reduction="none")
    return terms.sum(dim=-1)


def quantisation_loss(z: Tensor, b: Tensor) -> Tensor:
    """||z - b||^2 of each item, (..., n)."""
    return (z - b).square().sum(dim=-1)


@torch.no_grad()
def signs(z: Tensor) -> Tensor:
    """The binary code of relaxed values, -1 or +1, with sgn(0) = +1; constant in the gradient."""
    return torch.where(z >= 0, 1.0, -1.0)


def share_a_label(labels: Tensor, others: Tensor) -> Tensor:
    """S (n, m): 1 where items with labels (n, C) and (m, C) share one, else 0."""
    return (labels @ others.T).clamp_max_(1.0)


def half_products(codes: Tensor, others: Tensor) -> Tensor:
    """Theta (n, m), half the inner products of codes (n, K) and (m, K)."""
    return 0.5 * codes @ others.T


def pairwise_loss(theta: Tensor, similar: Tensor) -> Tensor:
    """-log p(S | theta) = log(1 + exp(theta)) - S theta, the mean over all pairs.

    Example:
        >>> round(pairwise_loss(torch.tensor([[0.0, 1000.0]]), torch.tensor([[0.0, 1.0]])).item(), 4)  # log(2) / 2
        0.3466
    """
    return F.softplus(theta).mean() - (similar * theta).mean()


def triplet_loss(near: Tensor, far: Tensor, *, margin: float) -> Tensor:
    """-log sigmoid(near - far - margin) of each triplet, in the shape of its thetas.

    Example:
        >>> triplet_loss(torch.tensor([3.0]), torch.tensor([2.0]), margin=1.0).exp().tolist()
        [2.0]
    """
    return F.softplus(far + margin - near)


def target_shares(shared: Tensor, *, base: float, weights: Tensor | None = None) -> Tensor:
    """The target distribution of each query over the other items, (n, m), proportional to base^r - 1.

    Rows sum to 1, except that a query that shares no label with any item has a row of zeros.

    ``shared`` is r, (n, m), the number of labels two items share; ``base`` is above 1, roughly the factor by which one
    more shared label raises the target; ``weights`` (m,) are factors of the gain of each other item.

    Example:
        >>> target_shares(torch.tensor([[2.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]), base=2.0).tolist()
        [[0.6..., 0.2..., 0.2..., 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    most = shared.amax(dim=1, keepdim=True)
    gains = base ** (shared - most) - base**-most  # divided by base^most, which would overflow for many labels
    if weights is not None:
        gains = gains * weights
    return gains / gains.sum(dim=1, keepdim=True).clamp_min(1e-12)


def cosines(codes: Tensor, others: Tensor) -> Tensor:
    """The cosines (n, m) of codes (n, K) and codes or proxies (m, K)."""
    return F.normalize(codes, dim=1) @ F.normalize(others, dim=1).T


def contrastive_loss(images: Tensor, texts: Tensor) -> Tensor:
    """The cross-entropy of recognising item i as the counterpart of query i, the sum over both logits (n, m)."""
    own = torch.arange(len(images))
    return F.cross_entropy(images, own) + F.cross_entropy(texts, own)


def lower_negatives(similarities: Tensor, *, margin: float, shift: float) -> Tensor:
    """Similarities (n, n), less ``shift`` where they are more than ``margin`` below that of the row's own pair."""
    return similarities - shift * (similarities < similarities.diagonal()[:, None] - margin)
