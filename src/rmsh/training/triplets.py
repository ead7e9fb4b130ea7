"""Triplets inside a batch: who is compared with whom, who is the reference, who is nearer.

A triplet has three members and three pairs, always in the order (1,2), (1,3), (2,3). Anything about pairs (similarity,
distance) is a tensor of shape (..., 3, t) in that order, t triplets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["MEMBERS_OF_PAIR", "Order", "draw", "order_by", "pairs_of", "similarity"]

MEMBERS_OF_PAIR = ((0, 1), (0, 2), (1, 2))
# The two pairs that contain member 1, 2 or 3, as positions in them.
_PAIRS_OF_MEMBER = ((0, 1), (0, 2), (1, 2))


class Order(NamedTuple):
    """Which two pairs of each triplet are compared: those of the reference, the more similar one first."""

    near: Tensor  # (..., t) position of the pair that is more similar
    far: Tensor  # (..., t)
    near_similarity: Tensor  # (..., t)
    far_similarity: Tensor  # (..., t)


def draw(n: int, per_item: int = 1) -> Tensor:
    """Indices (3, t) of triplets in a batch of n items, ``per_item`` for each; its members differ.

    Each item stands once in each place of a set of n triplets: the second and third members are the first ones shifted
    cyclically by two random, different offsets. A batch is in random order already, so shifts are random partners.

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
    """S = |a and b| / max(|a|, |b|), and 0 where both are empty.

    Example:
        >>> similarity(torch.tensor(2.0), torch.tensor(2.0), torch.tensor(4.0)).item()
        0.5
    """
    return shared / torch.maximum(sizes_a, sizes_b).clamp_min(1.0)


def pairs_of(members: Tensor) -> tuple[Tensor, Tensor]:
    """The two members of each pair, each (..., 3, t), of triplets (..., 3, t).

    Example:
        >>> first, second = pairs_of(torch.tensor([[7], [8], [9]]))
        >>> first.T.tolist(), second.T.tolist()
        ([[7, 7, 8]], [[8, 9, 9]])
    """
    of_member = members.unbind(dim=-2)
    first, second = zip(*((of_member[a], of_member[b]) for a, b in MEMBERS_OF_PAIR), strict=True)
    return torch.stack(first, dim=-2), torch.stack(second, dim=-2)


def order_by(reference: Tensor, similarities: Tensor) -> Order:
    """The more similar partner of the reference is the near one, the first of equals.

    Args:
        reference: (..., t) position of a member. The paper takes the one with most tags, the first of equals:
            ``sizes.argmax(dim=0)``.
        similarities: (3, t) of each pair.

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
