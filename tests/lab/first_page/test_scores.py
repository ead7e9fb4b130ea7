"""Scores of the first page: hand-worked values, kinds of query, intervals, and refusals."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from lab.first_page.judged import Query
from lab.first_page.scores import bootstrap_interval, query_scores, score_rankings, score_table
from rmsh.core.errors import DataError

QUERIES = [Query("cat", "object", "dev"), Query("red cat", "attribute", "test")]
GRADES = {"cat": {"1": 2, "2": 0, "3": 1}, "red cat": {"1": 2, "2": 2}}


def test_scores_of_one_query_are_those_worked_by_hand() -> None:
    # Found: wrong, partly right, right. Gains 0, 1, 3 at positions 1 to 3; the best order is 3, 1, 0.
    expected = (1 / log2(3) + 3 / log2(4)) / (3 / log2(2) + 1 / log2(3))
    assert query_scores(["2", "3", "1"], GRADES["cat"]) == pytest.approx([0.1, 1.0, expected, 0.0])


def test_the_best_order_has_ndcg_1_and_a_right_first_hit() -> None:
    assert query_scores(["2", "1"], GRADES["red cat"]) == pytest.approx([0.2, 1.0, 1.0, 1.0])


def test_precision_divides_by_ten_and_ignores_what_follows_the_tenth() -> None:
    grades = {str(i): 2 for i in range(15)}
    assert query_scores([str(i) for i in range(15)], grades) == pytest.approx([1.0, 1.0, 1.0, 1.0])
    assert query_scores([str(i) for i in range(4)], grades)[:2] == pytest.approx([0.4, 0.4])


def test_the_share_of_the_possible_divides_by_the_right_items_if_they_are_fewer_than_ten() -> None:
    assert query_scores(["1", "9"], GRADES["red cat"])[:2] == pytest.approx([0.1, 0.5])


def test_a_query_without_results_scores_zero() -> None:
    assert query_scores([], GRADES["cat"]) == pytest.approx([0.0, 0.0, 0.0, 0.0])


def test_a_query_without_a_right_item_has_no_score() -> None:
    table = score_table({"cat": ["1"], "red cat": ["1"]}, QUERIES, {"cat": {"1": 1}, "red cat": {"1": 2}})
    assert np.isnan(table[0]).all()
    assert table[1] == pytest.approx([0.1, 1.0, 1.0, 1.0])


def test_the_interval_of_equal_differences_is_a_point() -> None:
    assert bootstrap_interval(np.full(8, 0.25)) == pytest.approx((0.25, 0.25))


def test_the_interval_of_many_differences_is_that_of_the_normal_distribution() -> None:
    differences = np.random.default_rng(1).normal(0.1, 1.0, 400)
    error = 1.96 * differences.std() / 20
    expected = (differences.mean() - error, differences.mean() + error)
    assert bootstrap_interval(differences) == pytest.approx(expected, abs=0.01)


def test_rows_are_per_kind_and_ranking_with_differences_to_the_references() -> None:
    rankings = {"a": {"cat": ["1"], "red cat": ["1", "2"]}, "b": {"cat": ["2"], "red cat": ["1"]}}
    rows = score_rankings(rankings, QUERIES, GRADES, references=["a"])
    assert [(row["kind"], row["ranking"]) for row in rows] == [
        (kind, name) for kind in ("object", "attribute", "all") for name in ("a", "b")
    ]
    assert rows[-1]["queries"] == 2
    assert rows[-1]["precision@10"]["value"] == 0.05
    assert rows[-1]["precision@10"]["over"]["a"]["difference"] == -0.1
    assert rows[-2]["first right"] == {"value": 1.0, "over": {}}
    assert rows[3]["ndcg@10"]["over"]["a"]["interval"] == [rows[3]["ndcg@10"]["over"]["a"]["difference"]] * 2


def test_a_query_without_a_right_item_is_counted_apart() -> None:
    ranking = {"cat": ["1"], "red cat": ["1"]}
    rows = score_rankings({"a": ranking}, QUERIES, {"cat": {"1": 0}, "red cat": {"1": 2}}, references=["a"])
    assert [(row["queries"], row["without right item"]) for row in rows] == [(0, 1), (1, 0), (1, 1)]
    assert "ndcg@10" not in rows[0]


def test_unjudged_items_are_refused_unless_they_count_as_wrong() -> None:
    rankings = {"a": {"cat": ["9", "1"], "red cat": ["1"]}}
    with pytest.raises(DataError, match=r"'a' has 1 unjudged"):
        score_rankings(rankings, QUERIES, GRADES, references=["a"])
    rows = score_rankings(rankings, QUERIES, GRADES, references=["a"], unjudged_wrong=True)
    assert rows[0]["first right"]["value"] == 0.0


def test_an_unknown_reference_is_refused() -> None:
    with pytest.raises(DataError, match="'b'"):
        score_rankings({"a": {"cat": [], "red cat": []}}, QUERIES, GRADES, references=["b"])
