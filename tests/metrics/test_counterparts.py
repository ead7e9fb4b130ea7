"""Recall of counterparts: worked by hand, against brute force over all orders of ties, and its laws."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmsh.codes import Codes, hamming
from rmsh.core.errors import CodesError, ConfigError
from rmsh.metrics import counterparts
from rmsh.metrics.counterparts import Places, rank_codes, rank_vectors, recall_at, recall_score


def places(*pairs: tuple[int, int]) -> Places:
    closer, tied = np.array(pairs).T
    return Places(closer, tied)


def random_codes(seed: int, n: int, bits: int) -> tuple[Codes, Codes]:
    rng = np.random.default_rng(seed)
    return Codes.from_values(rng.standard_normal((n, bits))), Codes.from_values(rng.standard_normal((n, bits)))


@pytest.mark.parametrize(
    ("closer", "tied", "k", "expected"),
    [
        (0, 1, 1, 1.0),  # alone at the smallest distance
        (1, 1, 1, 0.0),  # second
        (1, 1, 2, 1.0),
        (0, 4, 1, 0.25),  # one of four at the smallest distance
        (0, 4, 3, 0.75),
        (2, 4, 5, 0.75),  # ranks 3 to 6, of which 3, 4 and 5 count
        (2, 4, 6, 1.0),
        (2, 4, 2, 0.0),
    ],
)
def test_a_counterpart_has_each_rank_of_its_ties_with_equal_probability(
    closer: int, tied: int, k: int, expected: float
) -> None:
    assert recall_at(places((closer, tied)), k).tolist() == [expected]


def test_a_table_worked_by_hand() -> None:
    # distances of three images (rows) to three texts: 0 1 1 / 0 1 1 / 1 0 0; counterparts are on the diagonal
    images = Codes.from_values([[1, 1], [1, 1], [1, -1]])
    texts = Codes.from_values([[1, 1], [1, -1], [1, -1]])
    found = rank_codes(images, texts)
    assert (found.closer.tolist(), found.tied.tolist()) == ([0, 1, 0], [1, 2, 2])
    score = recall_score(found, 1)
    assert score.value == pytest.approx((1 + 0 + 1 / 2) / 3)
    assert (score.pessimistic, score.optimistic, score.chance) == pytest.approx((1 / 3, 2 / 3, 1 / 3))
    assert recall_score(found, 2).value == pytest.approx((1 + 1 / 2 + 1) / 3)


def brute_recall(distances: np.ndarray, own: int, k: int) -> float:
    """The share of the orders of all items, ties in every possible way, in which the counterpart is among the first."""
    orders = [o for o in permutations(range(len(distances))) if (np.diff(distances[list(o)]) >= 0).all()]
    return float(np.mean([own in order[:k] for order in orders]))


@pytest.mark.parametrize("seed", range(4))
def test_recall_is_the_mean_over_all_orders_of_ties(seed: int) -> None:
    query, items = random_codes(seed, 5, 3)
    distances, found = hamming(query.packed, items.packed), rank_codes(query, items)
    for k in (1, 2, 4):
        expected = [brute_recall(distances[row], row, k) for row in range(5)]
        assert recall_at(found, k).tolist() == pytest.approx(expected)


SETS = st.builds(random_codes, st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([1, 4, 64, 70]))


@settings(deadline=None)
@given(SETS, st.integers(1, 50))
def test_recall_lies_within_its_bounds_and_rises_with_k(codes: tuple[Codes, Codes], k: int) -> None:
    found = rank_codes(*codes)
    score, wider = recall_score(found, k), recall_score(found, k + 1)
    assert 0 <= score.pessimistic <= score.value + 1e-12
    assert score.value <= score.optimistic + 1e-12 <= 1 + 1e-12
    assert score.value <= wider.value + 1e-12
    if k >= len(codes[0]):
        assert score == type(score)(1, 1, 1, 1)


@settings(deadline=None)
@given(SETS, st.integers(0, 100))
def test_the_order_of_the_pairs_makes_no_difference(codes: tuple[Codes, Codes], seed: int) -> None:
    rows = np.random.default_rng(seed).permutation(len(codes[0]))
    first, second = rank_codes(*codes), rank_codes(*(side.take(rows) for side in codes))
    assert first.closer[rows].tolist() == second.closer.tolist()
    assert first.tied[rows].tolist() == second.tied.tolist()


@settings(deadline=None)
@given(SETS)
def test_blocks_equal_the_whole_matrix_and_vectors_equal_codes(codes: tuple[Codes, Codes]) -> None:
    distances = hamming(codes[0].packed, codes[1].packed)
    own = np.diag(distances)[:, None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counterparts, "_BLOCK", 3)
        by_codes = rank_codes(*codes)
        signs = [np.where(np.unpackbits(c.packed, axis=1, count=c.bits, bitorder="little"), 1.0, -1.0) for c in codes]
        by_vectors = rank_vectors(*signs)
    for found in (by_codes, by_vectors):
        assert found.closer.tolist() == (distances < own).sum(axis=1).tolist()
        assert found.tied.tolist() == (distances == own).sum(axis=1).tolist()


def test_equal_codes_are_at_chance() -> None:
    same = Codes.from_values(np.ones((20, 8)))
    score = recall_score(rank_codes(same, same), 5)
    assert (score.value, score.pessimistic, score.optimistic, score.chance) == (0.25, 0.0, 1.0, 0.25)


def test_random_codes_are_at_chance() -> None:
    values = [recall_score(rank_codes(*random_codes(seed, 50, 16)), 5).value for seed in range(60)]
    assert abs(np.mean(values) - 0.1) < 4 * np.std(values, ddof=1) / np.sqrt(60)


def test_mismatched_input_is_refused() -> None:
    one, two = Codes.from_values([[1, 1]]), Codes.from_values([[1, 1], [1, 1]])
    with pytest.raises(CodesError, match=r"1 queries .*2 items"):
        rank_codes(one, two)
    with pytest.raises(CodesError, match=r"2 and 3 bits"):
        rank_codes(one, Codes.from_values([[1, 1, 1]]))
    with pytest.raises(ConfigError, match="k = 0"):
        recall_at(places((0, 1)), 0)
