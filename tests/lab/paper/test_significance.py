from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lab.paper.results import RunResult
from lab.paper.significance import compare, paired_t


def test_the_p_value_of_three_differences_is_that_computed_by_hand() -> None:
    # Differences 0.01, 0.02, 0.03: mean 0.02, deviation 0.01, t = 0.02 / (0.01 / sqrt 3) = 3.4641 with 2 degrees.
    # For 2 degrees of freedom the two-sided p is 1 - t / sqrt(2 + t^2) = 1 - 3.4641 / 3.7417.
    assert paired_t(np.array([0.01, 0.02, 0.03])) == pytest.approx(1 - 3.4641 / 3.7417, abs=1e-4)


def test_the_p_value_is_that_of_scipy() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=30), rng.normal(0.3, size=30)
    assert paired_t(one - other) == pytest.approx(stats.ttest_rel(one, other).pvalue)


def test_runs_are_paired_by_seed_whatever_their_order(make_result: Callable[..., RunResult]) -> None:
    ours = [make_result(seed=seed, ndcg=0.6 + 0.01 * seed) for seed in (2, 0, 1)]
    theirs = [make_result(method="svhn", seed=seed, ndcg=0.5 + 0.011 * seed) for seed in (0, 1, 2, 3)]
    found = compare(ours, theirs, "i2t")
    assert (found.over, found.pairs, found.significant) == ("seeds", 3, True)
    assert found.difference == pytest.approx(0.099)  # 0.1, 0.099, 0.098


def test_seeds_that_disagree_are_not_significant(make_result: Callable[..., RunResult]) -> None:
    ours = [make_result(seed=seed, ndcg=score) for seed, score in enumerate((0.5, 0.7))]
    theirs = [make_result(method="svhn", seed=seed, ndcg=0.55) for seed in range(2)]
    assert not compare(ours, theirs, "i2t").significant


def test_one_common_seed_compares_query_by_query_without_the_dropped(make_result: Callable[..., RunResult]) -> None:
    ours = make_result(ndcg=0.6, per_query=[0.5, 0.6, 0.7, np.nan])
    theirs = make_result(ndcg=0.5, method="svhn", per_query=[0.4, 0.5, 0.6, 0.3])
    found = compare([ours], [theirs], "t2i")
    assert (found.over, found.pairs, found.significant) == ("queries", 3, True)
    assert found.difference == pytest.approx(0.1)  # that of the means, not of the packed values


@pytest.mark.parametrize("queries", [None, [0.1, 0.2]])
def test_nothing_in_common_is_not_tested(make_result: Callable[..., RunResult], queries: list[float] | None) -> None:
    ours, theirs = make_result(per_query=[0.5] * 3), make_result(method="svhn", per_query=queries)
    if queries is None:
        theirs = replace(theirs, result={k: v for k, v in theirs.result.items() if k != "per_query"})
    assert compare([ours], [theirs], "i2t") is None
    assert compare([ours], [make_result(seed=1)], "i2t") is None


def test_a_comparison_says_its_test(make_result: Callable[..., RunResult]) -> None:
    ours, theirs = (
        [make_result(method=m, seed=s, ndcg=v + 0.001 * s) for s in range(3)] for m, v in (("rmsh", 0.6), ("tdh", 0.5))
    )
    assert str(compare(ours, theirs, "i2t")) == "+0.1000, p < 0.001, paired t-test over 3 seeds"
