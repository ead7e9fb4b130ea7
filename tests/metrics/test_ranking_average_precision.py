"""Average precision: the mean over every order of ties, in each definition; bounds, scikit-learn, Monte Carlo."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from rmsh.core.errors import ConfigError
from rmsh.metrics.ranking import NORMALISERS, Normaliser, average_precision

Items = list[tuple[int, int]]  # distance, and 1 where the item is relevant

cuts = st.one_of(st.none(), st.integers(1, 7))
tiny = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=6)
by_normaliser = pytest.mark.parametrize("normaliser", NORMALISERS)


def counted(items: Items) -> np.ndarray:
    """The histograms of one query."""
    cells = np.zeros((1, 1 + max(d for d, _ in items), 2), dtype=np.int64)
    for distance, relevant in items:
        cells[0, distance, relevant] += 1
    return cells


def plain_ap(relevant: list[int], k: int | None, normaliser: str) -> float:
    """The definition, for one order without ties."""
    top = relevant[:k]
    total = sum(sum(top[: rank + 1]) / (rank + 1) for rank, hit in enumerate(top) if hit)
    most = sum(relevant)
    divisor = {"relevant": most, "min(relevant,k)": min(most, len(top)), "hits": sum(top)}[normaliser]
    return total / divisor if divisor else 0.0


@by_normaliser
@given(items=tiny, k=cuts)
@settings(deadline=None)
def test_the_value_and_its_bounds_are_the_mean_and_the_extremes_over_every_order(
    normaliser: Normaliser, items: Items, k: int | None
) -> None:
    assume(any(r for _, r in items))
    ranked = [[r for _, r in o] for o in permutations(items) if [d for d, _ in o] == sorted(d for d, _ in items)]
    values = [plain_ap(order, k, normaliser) for order in ranked]
    worst, best = (
        average_precision(counted(items), k, normaliser=normaliser, order=order) for order in ("worst", "best")
    )
    assert average_precision(counted(items), k, normaliser=normaliser)[0] == pytest.approx(np.mean(values), abs=1e-12)
    assert (worst[0], best[0]) == pytest.approx((min(values), max(values)), abs=1e-12)


@by_normaliser
@pytest.mark.parametrize("k", [None, 7, 40])
def test_the_value_is_the_mean_over_random_orders_of_a_larger_set(normaliser: Normaliser, k: int | None) -> None:
    rng = np.random.default_rng(0)
    distance, relevant = rng.integers(0, 4, 120), rng.integers(0, 2, 120)
    draws = []
    for _ in range(400):
        order = np.lexsort((rng.random(120), distance))
        draws.append(plain_ap(relevant[order].tolist(), k, normaliser))
    value = average_precision(counted(list(zip(distance, relevant, strict=True))), k, normaliser=normaliser)[0]
    assert abs(value - np.mean(draws)) < 4 * np.std(draws) / np.sqrt(len(draws))


@given(st.lists(st.integers(0, 1), min_size=1, max_size=40))
def test_without_ties_it_is_the_value_of_scikit_learn(relevant: list[int]) -> None:
    assume(any(relevant))
    items = list(enumerate(relevant))
    wanted = average_precision_score(relevant, -np.arange(len(relevant)))
    assert average_precision(counted(items))[0] == pytest.approx(wanted, abs=1e-12)
    assert average_precision(counted(items), order="worst")[0] == pytest.approx(wanted, abs=1e-12)


@given(tiny)
def test_with_the_whole_database_ranked_the_definitions_agree(items: Items) -> None:
    assume(any(r for _, r in items))
    values = [average_precision(counted(items), normaliser=normaliser)[0] for normaliser in NORMALISERS]
    assert values == pytest.approx([values[0]] * 3, abs=1e-12)


def test_a_table_worked_by_hand() -> None:
    # relevant at rank 1, then one of ranks 2 and 3; the last item is irrelevant
    items = [(0, 1), (1, 1), (1, 0), (2, 0)]
    assert average_precision(counted(items))[0] == pytest.approx((1 + (1 + 2 / 3) / 2) / 2)
    assert average_precision(counted(items), 2)[0] == pytest.approx((1 + 1 / 2) / 2)
    # half of the orders have two hits and AP 1, the others one hit and AP 1
    assert average_precision(counted(items), 2, normaliser="hits")[0] == pytest.approx(1)


def test_dividing_by_hits_rewards_finding_less() -> None:
    found_one, found_two = [(0, 1), (1, 0), (2, 0), (3, 1)], [(0, 1), (1, 0), (2, 1), (3, 0)]
    values = [average_precision(counted(items), 3, normaliser="hits")[0] for items in (found_one, found_two)]
    assert values[0] > values[1]


def test_a_query_without_a_hit_before_the_cut_counts_zero() -> None:
    late = counted([(0, 0), (1, 1)])
    assert [average_precision(late, 1, normaliser=normaliser)[0] for normaliser in NORMALISERS] == [0, 0, 0]


@by_normaliser
def test_a_query_without_a_relevant_item_has_no_value(normaliser: Normaliser) -> None:
    nothing = counted([(0, 0), (1, 0)])
    assert np.isnan(average_precision(nothing, 1, normaliser=normaliser)).all()
    assert np.isnan(average_precision(nothing, 1, normaliser=normaliser, order="best")).all()


@by_normaliser
def test_a_perfect_ranking_scores_one_and_a_farthest_irrelevant_item_changes_nothing(normaliser: Normaliser) -> None:
    items = [(0, 1), (0, 1), (1, 1), (2, 0)]
    for more in ([], [(5, 0)]):
        assert average_precision(counted([*items, *more]), normaliser=normaliser)[0] == pytest.approx(1)


def test_the_value_stays_accurate_in_a_large_database() -> None:
    # one bucket of a million items: the mean over random rankings is close to the share of relevant items
    cells = np.array([[[750_000, 250_000]]])
    assert average_precision(cells)[0] == pytest.approx(0.25, abs=1e-4)
    # with x hits among the first k, the j-th item, where it is one, has (j - 1)(x - 1) / (k - 1) hits before it; x is
    # 250 on average, and the value is linear in it
    ranks = np.arange(1, 1001)
    wanted = ((1 + (ranks - 1) * 249 / 999) / ranks).mean()
    assert average_precision(cells, 1000, normaliser="hits")[0] == pytest.approx(wanted, abs=1e-9)


def test_an_unknown_definition_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'top'.*relevant, min\(relevant,k\), hits"):
        average_precision(counted([(0, 1)]), normaliser="top")


@by_normaliser
def test_a_cut_before_the_first_rank_is_refused(normaliser: Normaliser) -> None:
    with pytest.raises(ConfigError, match="k = 0"):
        average_precision(counted([(0, 1)]), 0, normaliser=normaliser)
