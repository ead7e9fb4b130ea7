"""The triplets of RMSH inside a batch: which items are compared, which is the reference, and the margin-adaptive loss.

A triplet has three members and three pairs, always in the order (1,2), (1,3), (2,3). Values per pair (similarities,
distances) are tensors of shape (..., 3, t) in that order, for t triplets.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from torch import Tensor

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
