"""Triplets: who is drawn, who is the reference, who is nearer."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rmsh.training.losses import draw, order_by, pairs_of, similarity


@given(n=st.integers(3, 40), per_item=st.integers(1, 6))
def test_every_item_stands_once_in_each_place_and_members_differ(n: int, per_item: int) -> None:
    members = draw(n, per_item)
    sets = min(per_item, (n - 1) // 2)
    assert members.shape == (3, n * sets)
    for place in members:
        assert torch.bincount(place, minlength=n).tolist() == [sets] * n
    one, two, three = members
    assert not ((one == two) | (one == three) | (two == three)).any()


def test_similarity_divides_by_the_larger_set_and_is_zero_for_two_empty_sets() -> None:
    shared, a, b = torch.tensor([2.0, 1.0, 0.0]), torch.tensor([2.0, 3.0, 0.0]), torch.tensor([4.0, 1.0, 0.0])
    assert similarity(shared, a, b).tolist() == pytest.approx([0.5, 1 / 3, 0.0])


def test_the_member_with_most_tags_is_the_reference() -> None:
    # sizes 1, 3, 2: member 2 is the reference, so the pairs (1,2) and (2,3) are compared; (2,3) is more similar.
    order = order_by(torch.tensor([[1.0], [3.0], [2.0]]).argmax(dim=0), torch.tensor([[1 / 3], [0.5], [2 / 3]]))
    assert (order.near.item(), order.far.item()) == (2, 0)
    assert (order.near_similarity.item(), order.far_similarity.item()) == pytest.approx((2 / 3, 1 / 3))


def test_the_first_of_members_with_equally_many_tags_is_the_reference() -> None:
    order = order_by(torch.tensor([[2.0], [2.0], [2.0]]).argmax(dim=0), torch.tensor([[0.5], [0.0], [1.0]]))
    assert (order.near.item(), order.far.item()) == (0, 1)


def test_each_member_in_turn_is_the_reference_of_its_two_pairs() -> None:
    order = order_by(torch.tensor([[0], [1], [2]]), torch.tensor([[1.0], [0.2], [0.3]]))
    assert (order.near[:, 0].tolist(), order.far[:, 0].tolist()) == ([0, 0, 2], [1, 2, 1])
    assert order.far_similarity[:, 0].tolist() == pytest.approx([0.2, 0.3, 0.2])


def test_pairs_keep_leading_dimensions() -> None:
    first, second = pairs_of(torch.tensor([[[0], [1], [2]], [[3], [1], [0]]]))
    assert first[:, :, 0].tolist() == [[0, 0, 1], [3, 3, 1]]
    assert second[:, :, 0].tolist() == [[1, 2, 2], [1, 0, 0]]
