"""Losses against hand-worked cases, definitions and loops, and their gradients against finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rmsh.training.losses import (
    Order,
    classification_loss,
    half_products,
    margin_triplet_loss,
    order_by,
    pairwise_loss,
    quantisation_loss,
    share_a_label,
    signs,
    squared_distances,
    target_shares,
    triplet_loss,
)


def _order(near: float, far: float) -> Order:
    return Order(torch.tensor([0]), torch.tensor([1]), torch.tensor([near]), torch.tensor([far]))


def _margin_loss(d_near: float, d_far: float, s_near: float, s_far: float, **options: object) -> float:
    distances = torch.tensor([[d_near], [d_far], [99.0]])
    return float(margin_triplet_loss(distances, _order(s_near, s_far), delta=8.0, **options))


@pytest.mark.parametrize(
    ("distances", "similarities", "expected"),
    [
        ((5.0, 7.0), (0.75, 0.25), 2.0),  # both similar: 5 - 7 + 8 * 0.5
        ((3.0, 7.0), (0.75, 0.25), 0.0),  # the margin is kept exactly
        ((5.0, 6.0), (0.5, 0.0), 2.0),  # only the dissimilar one counts: 8 - 6
        ((0.0, 8.0), (0.5, 0.0), 0.0),  # far enough; nothing pulls the similar one
        ((5.0, 6.0), (0.0, 0.0), 5.0),  # both dissimilar: (8 - 5) + (8 - 6)
    ],
)
def test_the_triplet_loss_of_hand_worked_cases(
    distances: tuple[float, float], similarities: tuple[float, float], expected: float
) -> None:
    assert _margin_loss(*distances, *similarities) == pytest.approx(expected)


def test_equally_similar_partners_are_ranked_only_when_the_mask_is_off() -> None:
    assert _margin_loss(9.0, 2.0, 0.5, 0.5) == 0.0
    assert _margin_loss(9.0, 2.0, 0.5, 0.5, mask_equal=False) == pytest.approx(7.0)


def test_the_margin_equals_delta_times_the_difference_of_shared_tags_over_the_reference() -> None:
    # The reference has 4 tags, shares 3 and 1 with the others: alpha = 8 * (3 - 1) / 4.
    order = order_by(torch.tensor([0]), torch.tensor([[3 / 4], [1 / 4], [0.0]]))
    loss = margin_triplet_loss(torch.tensor([[6.0], [6.0], [0.0]]), order, delta=8.0)
    assert loss.item() == pytest.approx(4.0)


def test_the_classification_loss_weighs_positives_and_sums_over_classes() -> None:
    logits, labels = torch.tensor([[0.0, math.log(3.0)]]), torch.tensor([[1.0, 0.0]])
    loss = classification_loss(logits, labels, positive_weight=torch.tensor([5.0, 5.0]))
    # -5 log(1/2) - log(1 - 3/4)
    assert loss.tolist() == pytest.approx([5 * math.log(2) + math.log(4)])


def test_quantisation_is_the_squared_distance_to_the_common_code() -> None:
    z_image, z_text = torch.tensor([[0.5, -0.5]]), torch.tensor([[0.1, 0.2]])
    b = signs(z_image + z_text)
    assert b.tolist() == [[1.0, -1.0]]
    assert quantisation_loss(z_text, b).item() == pytest.approx(0.9**2 + 1.2**2)


def test_the_common_code_of_a_zero_sum_is_plus_one_and_passes_no_gradient() -> None:
    z = torch.zeros(1, 2, requires_grad=True)
    b = signs(z + -z)
    assert b.tolist() == [[1.0, 1.0]]
    assert not b.requires_grad


@given(st.integers(1, 70), st.integers(0, 2**32 - 1))
def test_binary_codes_are_four_times_their_hamming_distance_apart(bits: int, seed: int) -> None:
    torch.manual_seed(seed)
    codes = torch.randint(0, 2, (5, bits)).float() * 2 - 1
    first, second = torch.cartesian_prod(torch.arange(5), torch.arange(5)).T
    differing = (codes[first] != codes[second]).sum(dim=1)
    assert torch.allclose(squared_distances(codes, first, second), 4.0 * differing)


@given(st.integers(2, 40), st.integers(0, 2**32 - 1))
def test_the_relaxed_distance_bounds_the_hamming_distance_of_the_signs(bits: int, seed: int) -> None:
    torch.manual_seed(seed)
    z = torch.tanh(torch.randn(2, bits) * 2)
    hamming = ((z[0] >= 0) != (z[1] >= 0)).sum().item()
    assert hamming >= (squared_distances(z, torch.tensor(0), torch.tensor(1)).item() - bits) / 3 - 1e-4


def test_gradients_agree_with_finite_differences() -> None:
    torch.manual_seed(0)
    z = torch.tanh(torch.randn(6, 5, dtype=torch.float64)).requires_grad_()
    order = order_by(
        torch.rand(3, 2).argmax(dim=0), torch.tensor([[0.8, 0.0], [0.4, 0.5], [0.2, 0.1]], dtype=torch.float64)
    )

    def loss(codes: torch.Tensor) -> torch.Tensor:
        first, second = torch.tensor([[0, 0], [0, 0], [1, 1]]), torch.tensor([[1, 2], [3, 4], [4, 5]])
        triplets = squared_distances(codes, first, second)
        margin = margin_triplet_loss(triplets, order, delta=3.0).sum()
        positive = torch.full((5,), 3.0, dtype=torch.float64)
        labels = torch.eye(6, 5, dtype=torch.float64)
        b = torch.ones(6, 5, dtype=torch.float64)
        return (
            margin
            + classification_loss(codes, labels, positive_weight=positive).sum()
            + quantisation_loss(codes, b).sum()
        )

    assert torch.autograd.gradcheck(loss, (z,))


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


def test_shares_follow_the_gains_of_ndcg() -> None:
    shares = target_shares(torch.tensor([[3.0, 2.0, 1.0, 0.0]]), base=2.0)
    np.testing.assert_allclose(shares.numpy(), [[7 / 11, 3 / 11, 1 / 11, 0]], rtol=1e-6)


def test_a_thousand_shared_labels_do_not_overflow() -> None:
    shares = target_shares(torch.tensor([[1000.0, 999.0]]), base=4.0)
    np.testing.assert_allclose(shares.numpy(), [[0.8, 0.2]], rtol=1e-6)


def test_an_item_deserves_as_much_of_its_gain_as_its_labels_are_believed() -> None:
    shares = target_shares(torch.tensor([[1.0, 1.0, 0.0]]), base=2.0, weights=torch.tensor([1.0, 0.25, 1.0]))
    assert shares.tolist() == [[pytest.approx(0.8), pytest.approx(0.2), 0.0]]


def test_an_item_that_shares_nothing_asks_for_nothing() -> None:
    shares = target_shares(torch.tensor([[0.0, 0.0], [1.0, 0.0]]), base=4.0)
    assert shares.tolist() == [[0.0, 0.0], [1.0, 0.0]]
