"""Losses, as pure functions of tensors: those shared by several methods, and that of the triplets of RMSH.

Likelihood losses: with theta = u.v / 2, items that share a label have p(S = 1) = sigmoid(theta), and a triplet keeps
its order with probability sigmoid(theta of the similar pair - theta of the other - margin). Each loss is a negative
logarithm, written with softplus because log(1 + exp(theta)) overflows for long codes.

Listwise targets: for each query in a batch, the labels define a distribution over the other modality, proportional to a
gain that rises steeply with the number of shared labels.

Triplets of RMSH inside a batch: a triplet has three members and three pairs, always in the order (1,2), (1,3), (2,3).
Values per pair (similarities, distances) are tensors of shape (..., 3, t) in that order, for t triplets.
"""

from __future__ import annotations

from typing import NamedTuple

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


MEMBERS_OF_PAIR = ((0, 1), (0, 2), (1, 2))
# Indices of the two pairs that contain member 1, 2 or 3.
_PAIRS_OF_MEMBER = ((0, 1), (0, 2), (1, 2))


class Order(NamedTuple):
    """The two compared pairs of each triplet: both contain the reference, and the more similar pair is ``near``."""

    near: Tensor  # (..., t) index of the more similar pair
    far: Tensor  # (..., t)
    near_similarity: Tensor  # (..., t)
    far_similarity: Tensor  # (..., t)


def draw(n: int, per_item: int = 1) -> Tensor:
    """Indices (3, t) of triplets in a batch of n items, ``per_item`` for each, with three different members.

    In a set of n triplets each item is once the first, once the second and once the third member: the second and
    third members are the first ones shifted cyclically by two different random offsets. A batch is already in random
    order, so the partners are random.

    Example:
        >>> members = draw(4)
        >>> members.shape, sorted(members[1].tolist())
        (torch.Size([3, 4]), [0, 1, 2, 3])
    """
    per_item = min(per_item, (n - 1) // 2)
    offsets = 1 + torch.randperm(n - 1)[: 2 * per_item].reshape(2, per_item, 1)
    first = torch.arange(n).expand(per_item, n)
    return torch.stack([first, *((first + offset) % n for offset in offsets)]).reshape(3, -1)


def similarity(shared: Tensor, sizes_a: Tensor, sizes_b: Tensor) -> Tensor:
    """S = |a and b| / max(|a|, |b|), and 0 where both are empty."""
    return shared / torch.maximum(sizes_a, sizes_b).clamp_min(1.0)


def pairs_of(members: Tensor) -> tuple[Tensor, Tensor]:
    """The first and second member of each pair, both (..., 3, t), of triplets (..., 3, t)."""
    of_member = members.unbind(dim=-2)
    first, second = zip(*((of_member[a], of_member[b]) for a, b in MEMBERS_OF_PAIR), strict=True)
    return torch.stack(first, dim=-2), torch.stack(second, dim=-2)


def order_by(reference: Tensor, similarities: Tensor) -> Order:
    """Order the two pairs of the reference by their similarities (3, t); of equals, the first is the near one.

    ``reference`` (..., t) is the index of a member. The paper takes the one with most tags, the first of equals.

    Example:
        >>> order_by(torch.tensor([1]), torch.tensor([[0.3], [0.0], [0.6]])).near.tolist()
        [2]
    """
    first, second = torch.tensor(_PAIRS_OF_MEMBER)[reference].unbind(dim=-1)
    triplet = torch.arange(similarities.shape[-1])
    s_first, s_second = similarities[first, triplet], similarities[second, triplet]
    swap = s_second > s_first
    return Order(
        near=torch.where(swap, second, first),
        far=torch.where(swap, first, second),
        near_similarity=torch.where(swap, s_second, s_first),
        far_similarity=torch.where(swap, s_first, s_second),
    )


def squared_distances(z: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """||z_i - z_j||^2 of pairs of rows of z (n, K), in the shape of the indices ``first`` and ``second``.

    One matrix product gives all inner products; only the required ones are gathered, because the n^2 values are cheap
    to compute but expensive to process further.

    Example:
        >>> z = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])
        >>> squared_distances(z, torch.tensor([0, 0]), torch.tensor([1, 2])).tolist()
        [4.0, 8.0]
    """
    norms = z.square().sum(dim=1)
    # Rounding may leave a tiny negative number for two equal rows.
    return (norms[first] + norms[second] - 2 * (z @ z.T)[first, second]).clamp_min(0)


def margin_triplet_loss(distances: Tensor, order: Order, *, delta: float, mask_equal: bool = True) -> Tensor:
    """Eq. (triplet_definition), the margin-adaptive triplet loss, (..., t).

    Two similar partners must keep their order with the margin delta * (S_near - S_far); a partner that shares no label
    must be at least delta away.

    ``distances`` (..., 3, t) are those of the pairs of each triplet, ``delta`` has their unit. ``mask_equal`` omits the
    ranking term of two equally similar partners. The formula in the paper penalises their arbitrary order; its goal (1)
    is stated for a strict inequality.
    """
    near, far = _gather(distances, order.near), _gather(distances, order.far)
    higher, lower = order.near_similarity, order.far_similarity
    ranked = (lower > 0) & (higher > lower) if mask_equal else lower > 0
    # Converted to float once: a product with booleans would convert them each time.
    both, no_near, no_far = (mask.to(near.dtype) for mask in (ranked, higher == 0, lower == 0))
    margin = delta * (higher - lower)
    return both * F.relu(near - far + margin) + no_near * F.relu(delta - near) + no_far * F.relu(delta - far)


def _gather(distances: Tensor, pair: Tensor) -> Tensor:
    index = pair.unsqueeze(-2).expand(*distances.shape[:-2], 1, -1)
    return distances.gather(-2, index).squeeze(-2)
