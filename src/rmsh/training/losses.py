"""The losses of RMSH as pure functions of tensors: Eqs. (triplet_definition), (classification_loss), (final_loss1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812  # its customary name

if TYPE_CHECKING:
    from torch import Tensor

    from rmsh.training.triplets import Order

__all__ = ["classification_loss", "common_code", "margin_triplet_loss", "quantisation_loss", "squared_distances"]


def squared_distances(z: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """||z_i - z_j||^2 of given pairs of rows of z (n, K), in the shape of the indices ``first`` and ``second``.

    All inner products are one matrix product, and only what is asked for is picked from it: n^2 values are cheap to
    make and dear to touch again.

    Example:
        >>> z = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])
        >>> squared_distances(z, torch.tensor([0, 0]), torch.tensor([1, 2])).tolist()
        [4.0, 8.0]
    """
    norms = z.square().sum(dim=1)
    # Rounding may leave a tiny negative number where two rows are the same.
    return (norms[first] + norms[second] - 2 * (z @ z.T)[first, second]).clamp_min(0)


def margin_triplet_loss(distances: Tensor, order: Order, *, delta: float, mask_equal: bool = True) -> Tensor:
    """Eq. (triplet_definition), the margin-adaptive triplet loss, (..., t).

    Two similar partners must keep their order with the margin delta * (S_near - S_far); a partner that shares no label
    must be at least delta away.

    Args:
        distances: (..., 3, t), of the pairs of each triplet.
        order: which pairs are compared.
        delta: the robust parameter, in the unit of the distances.
        mask_equal: leave out the ranking term where both partners are equally similar. Literally the paper penalises
            their arbitrary order; its goal (1) is stated for a strict inequality.
    """
    near, far = _pick(distances, order.near), _pick(distances, order.far)
    higher, lower = order.near_similarity, order.far_similarity
    ranked = (lower > 0) & (higher > lower) if mask_equal else lower > 0
    # Factors of 0 and 1, made floats here once: a product with booleans would convert them again and again.
    both, no_near, no_far = (mask.to(near.dtype) for mask in (ranked, higher == 0, lower == 0))
    margin = delta * (higher - lower)
    return both * F.relu(near - far + margin) + no_near * F.relu(delta - near) + no_far * F.relu(delta - far)


def _pick(distances: Tensor, pair: Tensor) -> Tensor:
    index = pair.unsqueeze(-2).expand(*distances.shape[:-2], 1, -1)
    return distances.gather(-2, index).squeeze(-2)


def classification_loss(logits: Tensor, labels: Tensor, *, positive_weight: Tensor) -> Tensor:
    """Eq. (classification_loss): weighted cross-entropy, summed over the classes, (..., n).

    Args:
        logits: (..., n, C) before the sigmoid.
        labels: (n, C) 0 or 1.
        positive_weight: w_p, a scalar or one weight a class (C,); it multiplies the positive term only.
    """
    labels = labels.expand_as(logits)
    terms = F.binary_cross_entropy_with_logits(logits, labels, pos_weight=positive_weight, reduction="none")
    return terms.sum(dim=-1)


def quantisation_loss(z: Tensor, b: Tensor) -> Tensor:
    """||z - b||^2 of each item, (..., n)."""
    return (z - b).square().sum(dim=-1)


@torch.no_grad()
def common_code(z_image: Tensor, z_text: Tensor) -> Tensor:
    """Eq. (final_loss2) solved: b = sgn(z_image + z_text), with sgn(0) = +1; no gradient passes.

    Example:
        >>> common_code(torch.tensor([[0.9, -0.2]]), torch.tensor([[-0.1, 0.2]])).tolist()
        [[1.0, 1.0]]
    """
    return torch.where(z_image + z_text >= 0, 1.0, -1.0)
