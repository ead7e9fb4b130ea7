"""Precision-recall curves: worked by hand, and consistent with the scores at single points."""

from __future__ import annotations

import numpy as np
import pytest

from rmsh.metrics.ranking import Curve, by_rank, precision_at, rank_grid

# Query 0: r > 0 at distance 0 and 1, one other at 1. Query 1: nothing near, one of two relevant at distance 2.
CELLS = np.array([[[0, 1], [1, 1], [0, 0]], [[0, 0], [0, 0], [1, 1]]])


def test_by_rank_as_worked_by_hand() -> None:
    precision, recall = by_rank(CELLS, [1, 2])
    assert precision == pytest.approx(np.array([[1, 3 / 4], [1 / 2, 1 / 2]]))
    assert recall == pytest.approx(np.array([[1 / 2, 3 / 4], [1 / 2, 1]]))


def test_a_curve_passes_through_the_score_at_a_rank() -> None:
    assert by_rank(CELLS, [2])[0][:, 0] == pytest.approx(precision_at(CELLS, 2))


def test_a_query_without_a_relevant_item_has_no_curve() -> None:
    nothing = np.array([[[2, 0], [1, 0]]])
    assert np.isnan(by_rank(nothing, [1])).all()


@pytest.mark.parametrize("items", [1, 2, 9, 56_947])
def test_a_rank_grid_runs_from_one_to_the_database(items: int) -> None:
    grid = rank_grid(items)
    assert (grid[0], grid[-1]) == (1, items)
    assert (np.diff(grid) > 0).all()


def test_a_curve_becomes_plain_lists() -> None:
    curve = Curve(np.array([0, 1]), np.array([1.0, 0.5]), np.array([0.5, 1.0]))
    assert curve.to_json() == {"at": [0, 1], "precision": [1.0, 0.5], "recall": [0.5, 1.0]}
