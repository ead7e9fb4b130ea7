"""Listwise losses: distances against real codes, shares and the loss against loops and hand-worked numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rmsh.codes import Codes, hamming
from rmsh.training.losses import bit_distances, graded_shares, listwise_loss


def _random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def test_distances_of_signs_are_hamming_distances() -> None:
    values = torch.where(_random(9, 20) >= 0, 1.0, -1.0)
    packed = Codes.from_values(values.numpy()).packed
    np.testing.assert_array_equal(bit_distances(values[:4], values[4:]).numpy(), hamming(packed[:4], packed[4:]))


def test_shares_follow_the_gains_of_ndcg() -> None:
    shares = graded_shares(torch.tensor([[3.0, 2.0, 1.0, 0.0]]), base=2.0)
    np.testing.assert_allclose(shares.numpy(), [[7 / 11, 3 / 11, 1 / 11, 0]], rtol=1e-6)


def test_a_thousand_shared_labels_do_not_overflow() -> None:
    shares = graded_shares(torch.tensor([[1000.0, 999.0]]), base=4.0)
    np.testing.assert_allclose(shares.numpy(), [[0.8, 0.2]], rtol=1e-6)


def test_an_item_deserves_as_much_of_its_gain_as_its_labels_are_believed() -> None:
    shares = graded_shares(torch.tensor([[1.0, 1.0, 0.0]]), base=2.0, trust=torch.tensor([1.0, 0.25, 1.0]))
    assert shares.tolist() == [[pytest.approx(0.8), pytest.approx(0.2), 0.0]]


def test_an_item_that_shares_nothing_asks_for_nothing() -> None:
    shares = graded_shares(torch.tensor([[0.0, 0.0], [1.0, 0.0]]), base=4.0)
    assert shares.tolist() == [[0.0, 0.0], [1.0, 0.0]]
    z = _random(2, 2).requires_grad_()
    listwise_loss(z, shares, temperature=1.0).backward()
    assert z.grad is not None
    assert z.grad[0].tolist() == [0.0, 0.0]
    assert z.grad[1].abs().min() > 0


def test_the_loss_is_the_cross_entropy_written_with_loops() -> None:
    distances, shares = 10 * _random(3, 5).abs(), torch.softmax(_random(3, 5), dim=1)
    total = 0.0
    for row, wanted in zip(distances.tolist(), shares.tolist(), strict=True):
        weights = [math.exp(-d / 2.5) for d in row]
        total -= sum(share * math.log(w / sum(weights)) for share, w in zip(wanted, weights, strict=True))
    assert listwise_loss(distances, shares, temperature=2.5).item() == pytest.approx(total / 3, rel=1e-5)


def test_the_loss_is_least_where_distances_are_logarithms_of_the_gains() -> None:
    shares = graded_shares(torch.tensor([[3.0, 2.0, 1.0]]), base=4.0)
    best = listwise_loss(-4 * shares.log(), shares, temperature=4.0)
    assert best.item() == pytest.approx(-(shares * shares.log()).sum().item(), rel=1e-5)
    for shift in 3 * _random(20, 1, 3):
        assert listwise_loss(-4 * shares.log() + shift, shares, temperature=4.0) >= best
