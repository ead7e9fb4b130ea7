"""Relevance: shared labels, gains, and the ranking of random codes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rmsh.metrics.histogram import MOST_LABELS, gains, label_words, random_ranking, shared_labels

labels = st.integers(1, 130).flatmap(lambda classes: arrays(np.uint8, (3, classes), elements=st.integers(0, 1)))


def test_gains_are_exact_where_small_integers_would_overflow() -> None:
    assert gains(14)[[0, 1, 7, 14]].tolist() == [0, 1, 127, 16383]


def test_the_gain_of_the_most_labels_is_finite_in_the_largest_database() -> None:
    assert np.isfinite(gains(MOST_LABELS)[-1] * 2**31)


@given(labels)
def test_the_ones_of_a_bitwise_and_are_the_shared_labels(values: np.ndarray) -> None:
    words = label_words(values)
    counted = np.bitwise_count(words[:, None] & words[None]).sum(axis=2)
    assert (counted == shared_labels(values, values)).all()


def test_shared_labels_do_not_overflow_bytes() -> None:
    many = np.ones((1, 300), dtype=np.uint8)
    assert shared_labels(many, many).tolist() == [[300]]


def test_a_random_ranking_has_every_item_at_one_distance() -> None:
    pooled = random_ranking(np.array([[[1, 2], [3, 4]], [[0, 5], [5, 0]]]))
    assert pooled.tolist() == [[[4, 6]], [[5, 5]]]
