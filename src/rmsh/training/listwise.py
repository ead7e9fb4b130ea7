"""Listwise losses in Hamming space: an item sees a whole batch at once, and weighs it as its shared labels would.

The labels say how much of the attention of an item each other one deserves: in proportion to a gain that rises steeply
with the number of shared labels. The codes say how much it gets: a softmax over distances in bits. The loss is the
cross-entropy of the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.nn.functional as F  # noqa: N812  # its customary name

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["bit_distances", "graded_shares", "listwise_loss"]


def bit_distances(z: Tensor, others: Tensor) -> Tensor:
    """(K - z.z') / 2, (n, m), of relaxed codes (n, K) and (m, K): the Hamming distance where all values are -1 or 1.

    Between values of -1 and 1 it is the expected distance of codes drawn with the mean z.

    Example:
        >>> import torch
        >>> bit_distances(torch.tensor([[1.0, -1.0]]), torch.tensor([[1.0, 1.0], [0.0, 0.0]])).tolist()
        [[1.0, 1.0]]
    """
    return 0.5 * (z.shape[1] - z @ others.T)


def graded_shares(shared: Tensor, *, base: float, trust: Tensor | None = None) -> Tensor:
    """The share of a row's attention that each other item deserves, (n, m): in proportion to base^r - 1.

    Rows sum to 1, but a row that shares nothing with anybody is all zeros.

    Args:
        shared: r, (n, m), how many labels two items share.
        base: above 1; how many times more an item deserves for one more shared label, nearly.
        trust: (m,) how far the labels of each other item are believed: it deserves that much of its gain.

    Example:
        >>> import torch
        >>> graded_shares(torch.tensor([[2.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]), base=2.0).tolist()
        [[0.6..., 0.2..., 0.2..., 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    most = shared.amax(dim=1, keepdim=True)
    gains = base ** (shared - most) - base**-most  # over base^most: many shared labels do not overflow
    if trust is not None:
        gains = gains * trust
    return gains / gains.sum(dim=1, keepdim=True).clamp_min(1e-12)


def listwise_loss(distances: Tensor, shares: Tensor, *, temperature: float) -> Tensor:
    """Cross-entropy of softmax(-distance / temperature) with the shares, row by row; the mean over rows.

    Args:
        distances: (n, m), in bits.
        shares: (n, m) what the softmax should be; a row of zeros asks for nothing.
        temperature: in bits; an item so many bits farther gets a share smaller by the factor e.

    Example:
        >>> import torch
        >>> far = torch.tensor([[0.0, 100.0]])
        >>> listwise_loss(far, torch.tensor([[0.75, 0.25]]), temperature=4.0).item()
        6.25
    """
    return -(shares * F.log_softmax(distances / -temperature, dim=1)).sum() / len(shares)
