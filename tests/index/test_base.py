"""Hits and neighbours: always sorted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rmsh.core.errors import InputError
from rmsh.index.base import Hits, Neighbours


def test_hits_have_their_dtypes_whatever_integers_are_given() -> None:
    hits = Hits(np.array([[1, 0]], dtype=np.int32), np.array([[2, 3]], dtype=np.uint8))
    assert (hits.rows.dtype, hits.distances.dtype, len(hits)) == (np.int64, np.int32, 1)


@pytest.mark.parametrize(
    ("rows", "distances"),
    [([[0, 1]], [[2, 1]]), ([[1, 0]], [[2, 2]]), ([[1, 1]], [[2, 2]]), ([[0, 1], [1, 0]], [[0, 0], [0, 0]])],
)
def test_hits_out_of_order_are_refused(rows: Any, distances: Any) -> None:
    with pytest.raises(InputError, match="not sorted"):
        Hits(np.array(rows), np.array(distances))


@pytest.mark.parametrize(
    ("rows", "distances"), [([[0]], [[0, 1]]), ([0], [0]), ([[0.5]], [[1]]), ([[0]], [[1.5]]), ([["a"]], [[1]])]
)
def test_hits_must_be_integers_of_the_same_shape(rows: Any, distances: Any) -> None:
    with pytest.raises(InputError, match="2 axes"):
        Hits(np.array(rows), np.array(distances))


def test_neighbours_are_returned_by_query() -> None:
    found = Neighbours(np.array([0, 0, 2, 3]), np.array([5, 9, 2]), np.array([1, 4, 0]))
    assert [found.of(q)[0].tolist() for q in range(len(found))] == [[], [5, 9], [2]]
    assert found.of(1)[1].tolist() == [1, 4]


@pytest.mark.parametrize("offsets", [[0, 1], [1, 2], [0, 3, 2], [], [[0, 2]]])
def test_offsets_that_do_not_match_the_hits_are_refused(offsets: Any) -> None:
    with pytest.raises(InputError, match="for 2 hits"):
        Neighbours(np.array(offsets), np.array([1, 2]), np.array([0, 0]))


def test_neighbours_are_sorted_within_each_query() -> None:
    Neighbours(np.array([0, 1, 2]), np.array([1, 0]), np.array([3, 2]))
    with pytest.raises(InputError, match="not sorted"):
        Neighbours(np.array([0, 2, 2]), np.array([1, 0]), np.array([3, 2]))
