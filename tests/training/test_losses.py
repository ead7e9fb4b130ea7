"""The losses of RMSH against hand-worked cases, and their gradients against finite differences."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rmsh.training.losses import (
    classification_loss,
    common_code,
    margin_triplet_loss,
    quantisation_loss,
    squared_distances,
)
from rmsh.training.triplets import Order, order_by


def _order(near: float, far: float) -> Order:
    return Order(torch.tensor([0]), torch.tensor([1]), torch.tensor([near]), torch.tensor([far]))


def _loss(d_near: float, d_far: float, s_near: float, s_far: float, **options: object) -> float:
    distances = torch.tensor([[d_near], [d_far], [99.0]])
    return float(margin_triplet_loss(distances, _order(s_near, s_far), delta=8.0, **options))  # type: ignore[arg-type]


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
    assert _loss(*distances, *similarities) == pytest.approx(expected)


def test_equally_similar_partners_are_ranked_only_when_the_mask_is_off() -> None:
    assert _loss(9.0, 2.0, 0.5, 0.5) == 0.0
    assert _loss(9.0, 2.0, 0.5, 0.5, mask_equal=False) == pytest.approx(7.0)


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
    b = common_code(z_image, z_text)
    assert b.tolist() == [[1.0, -1.0]]
    assert quantisation_loss(z_text, b).item() == pytest.approx(0.9**2 + 1.2**2)


def test_the_common_code_of_a_zero_sum_is_plus_one_and_passes_no_gradient() -> None:
    z = torch.zeros(1, 2, requires_grad=True)
    b = common_code(z, -z)
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
