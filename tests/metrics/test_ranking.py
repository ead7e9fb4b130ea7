"""NDCG and precision: equal to scikit-learn, to hand-worked tables and to a mean over every order of ties."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from rmsh.core.errors import ConfigError
from rmsh.metrics.ranking import (
    ORDERS,
    found_within,
    ndcg,
    precision_at,
    precision_within,
)

Items = list[tuple[int, int]]  # distance and number of shared labels of each database item

small = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=6)
larger = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 4)), min_size=2, max_size=60)


def counted(items: Items) -> np.ndarray:
    """The histograms of one query."""
    cells = np.zeros((1, 9, 5), dtype=np.int64)
    for distance, shared in items:
        cells[0, distance, shared] += 1
    return cells


def every_order(items: Items) -> list[list[int]]:
    """The shared labels in each ranking by distance."""
    orders = permutations(items)
    return [[r for _, r in order] for order in orders if [d for d, _ in order] == sorted(d for d, _ in order)]


def plain_ndcg(shared: list[int], k: int) -> float:
    def dcg(ranked: list[int]) -> float:
        return sum((2**r - 1) / np.log2(rank + 2) for rank, r in enumerate(ranked[:k]))

    return dcg(shared) / dcg(sorted(shared, reverse=True))


@given(items=larger, k=st.integers(1, 70))
def test_expected_ndcg_is_that_of_scikit_learn(items: Items, k: int) -> None:
    assume(any(r for _, r in items))
    gains = [[2**r - 1 for _, r in items]]
    wanted = ndcg_score(gains, [[-d for d, _ in items]], k=k)
    assert ndcg(counted(items), k)[0] == pytest.approx(wanted, abs=1e-12)


@given(items=small, k=st.integers(1, 7))
def test_ndcg_and_its_bounds_are_the_mean_and_the_extremes_over_every_order(items: Items, k: int) -> None:
    assume(any(r for _, r in items))
    values = [plain_ndcg(order, k) for order in every_order(items)]
    worst, best = (ndcg(counted(items), k, order=order) for order in ("worst", "best"))
    assert ndcg(counted(items), k)[0] == pytest.approx(np.mean(values), abs=1e-12)
    assert (worst[0], best[0]) == pytest.approx((min(values), max(values)), abs=1e-12)


@given(items=small, k=st.integers(1, 7))
def test_precision_and_its_bounds_are_the_mean_and_the_extremes_over_every_order(items: Items, k: int) -> None:
    assume(any(r for _, r in items))
    values = [np.mean([r > 0 for r in order[:k]]) for order in every_order(items)]
    worst, best = (precision_at(counted(items), k, order=order) for order in ("worst", "best"))
    assert precision_at(counted(items), k)[0] == pytest.approx(np.mean(values), abs=1e-12)
    assert (worst[0], best[0]) == pytest.approx((min(values), max(values)), abs=1e-12)


def test_a_table_worked_by_hand() -> None:
    # Distance 0: r = 2. Distance 1: r = 0 and r = 1, in either order. Distance 2: r = 0.
    items = [(0, 2), (1, 0), (1, 1), (2, 0)]
    ideal = 3 + 1 / np.log2(3)
    tied = (1 / np.log2(3) + 1 / np.log2(4)) / 2
    assert ndcg(counted(items), 3)[0] == pytest.approx((3 + tied) / ideal)
    assert ndcg(counted(items), 3, order="worst")[0] == pytest.approx((3 + 1 / 2) / ideal)
    assert ndcg(counted(items), 3, order="best")[0] == pytest.approx(1)
    assert precision_at(counted(items), 2)[0] == pytest.approx(3 / 4)


@given(items=larger, k=st.integers(1, 70))
def test_bounds_bracket_the_expected_value(items: Items, k: int) -> None:
    assume(any(r for _, r in items))
    for measure in (ndcg, precision_at):
        expected, worst, best = (measure(counted(items), k, order=order)[0] for order in ORDERS)
        assert worst - 1e-12 <= expected <= best + 1e-12


def test_a_perfect_ranking_scores_one() -> None:
    perfect = counted([(0, 4), (1, 2), (1, 2), (2, 1), (3, 0)])
    for k in (1, 3, 5, 500):
        assert ndcg(perfect, k)[0] == pytest.approx(1)


def test_an_irrelevant_farthest_item_changes_no_ndcg() -> None:
    items = [(0, 2), (1, 0), (1, 1), (2, 3)]
    for k in (1, 3, 4):
        assert ndcg(counted([*items, (8, 0)]), k)[0] == pytest.approx(ndcg(counted(items), k)[0])


def test_a_cut_beyond_the_database_is_a_cut_at_its_end() -> None:
    items = counted([(0, 0), (1, 1), (2, 1)])
    assert ndcg(items, 500)[0] == ndcg(items, 3)[0]
    assert precision_at(items, 500)[0] == pytest.approx(2 / 3)


def test_a_query_without_a_relevant_item_has_no_value() -> None:
    nothing = counted([(0, 0), (1, 0)])
    assert np.isnan([ndcg(nothing, 2)[0], precision_at(nothing, 2)[0], precision_within(nothing, 2)[0]]).all()
    assert np.isnan([measure(nothing, 2, order="best")[0] for measure in (ndcg, precision_at)]).all()


def test_precision_within_a_radius_is_zero_if_nothing_is_found() -> None:
    items = counted([(1, 0), (2, 3), (5, 1)])
    assert precision_within(items, 0).tolist() == [0]
    assert precision_within(items).tolist() == [1 / 2]
    assert precision_within(items, 99)[0] == pytest.approx(2 / 3)
    assert found_within(items, 2).tolist() == [2]


@pytest.mark.parametrize("measure", [ndcg, precision_at])
def test_a_cut_before_the_first_rank_is_refused(measure: object) -> None:
    with pytest.raises(ConfigError, match=r"k = 0.*from 1"):
        measure(counted([(0, 1)]), 0)  # type: ignore[operator]


def test_a_negative_radius_is_refused() -> None:
    with pytest.raises(ConfigError, match="radius is -1"):
        precision_within(counted([(0, 1)]), -1)


def test_no_queries_give_no_values() -> None:
    assert ndcg(np.zeros((0, 3, 2), dtype=np.int32), 5).shape == (0,)
