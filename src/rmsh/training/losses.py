"""The losses of RMSH as pure functions of tensors: Eqs. (triplet_definition), (classification_loss), (final_loss1).

Losses of the likelihood family: how probable are the labels, given codes, that two share one or one is nearer.

With theta = u.v / 2, items that share a label have p(S = 1) = sigmoid(theta), and a triplet keeps its order with
probability sigmoid(theta of the similar pair - theta of the other - margin). Each loss is a negative logarithm, written
with softplus because log(1 + exp(theta)) overflows for long codes.

Listwise losses in Hamming space: an item sees a whole batch at once, and weighs it as its shared labels would.

The labels say how much of the attention of an item each other one deserves: in proportion to a gain that rises steeply
with the number of shared labels. The codes say how much it gets: a softmax over distances in bits. The loss is the
cross-entropy of the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812  # its customary name

if TYPE_CHECKING:
    from torch import Tensor

    from rmsh.training.triplets import Order


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
