"""Differences of groups of runs and the margin of their seeds, by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

import pytest
from scipy import stats

from lab.paper.results import NDCG, RunResult
from lab.paper.significance import Difference, Noise, compare, noise_of, seed_noise

Make = Callable[..., RunResult]
QUIET = Noise(0.0001, 2)


def _group(make_result: Make, scores: Sequence[float], **parameters: object) -> list[RunResult]:
    return [make_result(seed=seed, ndcg=score, **parameters) for seed, score in enumerate(scores)]


def test_the_noise_is_pooled_over_groups_and_single_runs_say_nothing(make_result: Make) -> None:
    groups = [_group(make_result, scores) for scores in ((0.4, 0.6), (0.1, 0.2, 0.3), (0.9,))]
    # Squares around the means: 0.01 + 0.01, and 0.01 + 0 + 0.01; degrees of freedom 1 + 2.
    assert seed_noise(groups, "i2t", NDCG).variance == pytest.approx(0.04 / 3)
    assert seed_noise(groups, "i2t", NDCG).degrees == 3
    assert seed_noise(groups[2:], "i2t", NDCG) == Noise(0.0, 0)


def test_three_runs_have_a_noise_of_their_own_and_fewer_that_of_their_method(make_result: Make) -> None:
    three, two = _group(make_result, (0.4, 0.5, 0.6)), _group(make_result, (0.1, 0.2))
    assert noise_of(three, [three, two], "i2t", NDCG).variance == pytest.approx(0.02 / 2)
    assert noise_of(two, [three, two], "i2t", NDCG).variance == pytest.approx((0.02 + 0.005) / 3)
    assert noise_of(two[:1], [three, two], "i2t", NDCG).degrees == 3


def test_the_margin_is_that_of_students_t_distribution(make_result: Make) -> None:
    ours, theirs = _group(make_result, (0.60, 0.61, 0.62)), _group(make_result, (0.5,))
    found = compare(ours, theirs, "i2t", metric=NDCG, noise=(QUIET, QUIET))
    # One estimate with two degrees of freedom: t = 4.3027; variance 0.0001 / 3 + 0.0001 / 1.
    assert found.value == pytest.approx(0.11)
    assert found.margin == pytest.approx(4.3027 * sqrt(0.0001 * 4 / 3), abs=1e-5)
    assert found.agrees


def test_with_different_noise_the_margin_is_that_of_welchs_test(make_result: Make) -> None:
    one, other = (0.50, 0.51, 0.52, 0.50), (0.40, 0.46, 0.55)
    first, second = (_group(make_result, scores) for scores in (one, other))
    noise = noise_of(first, [], "i2t", NDCG), noise_of(second, [], "i2t", NDCG)
    found = compare(first, second, "i2t", metric=NDCG, noise=noise)
    interval = stats.ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    assert found.margin == pytest.approx((interval.high - interval.low) / 2)


def test_groups_chosen_by_their_scores_have_a_wider_margin(make_result: Make) -> None:
    first, second = (_group(make_result, scores) for scores in ((0.50, 0.53, 0.56), (0.44, 0.46, 0.51)))
    noise = seed_noise([first, second], "i2t", NDCG)
    found = compare(first, second, "i2t", metric=NDCG, noise=(noise, noise), choices=10)
    interval = stats.ttest_ind((0.50, 0.53, 0.56), (0.44, 0.46, 0.51)).confidence_interval(1 - 0.05 / 10)
    assert found.margin == pytest.approx((interval.high - interval.low) / 2)


def test_with_the_same_noise_the_margin_is_that_of_scipys_t_test(make_result: Make) -> None:
    one, other = (0.50, 0.53, 0.56), (0.44, 0.46, 0.51)
    first, second = (_group(make_result, scores) for scores in (one, other))
    noise = seed_noise([first, second], "t2i", NDCG)
    found = compare(first, second, "t2i", metric=NDCG, noise=(noise, noise))
    assert found.margin is not None
    interval = stats.ttest_ind(one, other).confidence_interval(0.95)
    assert found.value - found.margin == pytest.approx(interval.low)
    assert found.decided == (interval.low > 0)


def test_a_difference_without_any_repetition_is_not_decided(make_result: Make) -> None:
    one, other = (_group(make_result, [score]) for score in (0.9, 0.1))
    found = compare(one, other, "i2t", metric=NDCG, noise=(Noise(0.0, 0), QUIET))
    assert (found.margin, found.decided, found.agrees) == (None, False, False)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Difference(0.1, 0.02), "+0.1000 ± 0.0200"),
        (Difference(-0.01, 0.02), "-0.0100 ± 0.0200, not decided"),
        (Difference(0.1, None), "+0.1000, one seed, not decided"),
    ],
)
def test_a_difference_is_shown_with_its_margin(found: Difference, text: str) -> None:
    assert str(found) == text


def test_a_decided_loss_does_not_agree() -> None:
    assert Difference(-0.1, 0.02).decided
    assert not Difference(-0.1, 0.02).agrees
