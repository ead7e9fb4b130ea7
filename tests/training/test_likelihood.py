"""The likelihood losses against their definitions."""

from __future__ import annotations

import math

import pytest
import torch

from rmsh.training.losses import half_products, pairwise_loss, share_a_label, triplet_loss


def test_the_pairwise_loss_is_the_mean_negative_logarithm_of_the_likelihood() -> None:
    theta, similar = torch.tensor([[0.3, -1.2], [2.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    losses = [
        -math.log(p if s else 1 - p)
        for t, s in zip(theta.flatten().tolist(), similar.flatten().tolist(), strict=True)
        for p in [1 / (1 + math.exp(-t))]
    ]
    assert pairwise_loss(theta, similar).item() == pytest.approx(sum(losses) / 4, rel=1e-5)


def test_long_codes_do_not_overflow() -> None:
    codes = torch.full((2, 512), 100.0)
    loss = pairwise_loss(half_products(codes, codes), torch.zeros(2, 2))
    assert loss.item() == pytest.approx(0.5 * 512 * 100.0**2)


def test_the_triplet_loss_is_the_negative_logarithm_of_keeping_the_order() -> None:
    loss = triplet_loss(torch.tensor([0.5]), torch.tensor([-0.7]), margin=0.4)
    assert loss.item() == pytest.approx(-math.log(1 / (1 + math.exp(-(0.5 + 0.7 - 0.4)))))


def test_items_share_a_label_or_not_however_many_they_share() -> None:
    labels = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    assert share_a_label(labels, labels).tolist() == [[1, 0, 1], [0, 1, 1], [1, 1, 1]]
