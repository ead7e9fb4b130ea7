"""Scores of real-valued rankings: the same as those of codes where both are defined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import average_precision_score, ndcg_score

from rmsh.metrics.evaluate import _ranked, score_vectors
from rmsh.metrics.histogram import gains, shared_labels


@pytest.fixture
def ranked() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(80, 6)).astype(np.float32)
    labels = (rng.random((80, 5)) < 0.3).astype(np.uint8)
    return vectors[:10], vectors[10:], labels[:10], labels[10:]


def test_average_precision_is_that_of_scikit_learn(ranked: tuple[np.ndarray, ...]) -> None:
    query, database, asking, asked = ranked
    expected = [
        average_precision_score(shared > 0, row) if shared.any() else np.nan
        for shared, row in zip(shared_labels(asking, asked), query @ database.T, strict=True)
    ]
    assert np.allclose(score_vectors(*ranked)["map"], expected, equal_nan=True)


def test_ndcg_is_that_of_scikit_learn(ranked: tuple[np.ndarray, ...]) -> None:
    query, database, asking, asked = ranked
    gain = gains(5)
    expected = [
        ndcg_score([gain[shared]], [row], k=20) if shared.any() else np.nan
        for shared, row in zip(shared_labels(asking, asked), query @ database.T, strict=True)
    ]
    assert np.allclose(score_vectors(*ranked, k=20)["ndcg"], expected, equal_nan=True)


def test_chance_is_the_mean_over_random_rankings(ranked: tuple[np.ndarray, ...]) -> None:
    _, _, asking, asked = ranked
    rng = np.random.default_rng(0)
    drawn = [score_vectors(rng.normal(size=(10, 6)), rng.normal(size=(70, 6)), asking, asked, k=20) for _ in range(300)]
    for name in ("ndcg", "map"):
        chance = np.nanmean(drawn[0][f"{name}_chance"])
        assert np.nanmean([scores[name] for scores in drawn]) == pytest.approx(chance, abs=0.01)


_VALUES = st.floats(allow_nan=False, width=32) | st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 1.0])


@settings(deadline=None)  # the first example compiles
@given(arrays(np.float32, (2, 20), elements=_VALUES))
def test_the_order_is_that_of_a_stable_argsort(similarities: np.ndarray) -> None:
    columns = np.broadcast_to(np.arange(20), similarities.shape)
    assert np.array_equal(_ranked(similarities, columns), np.argsort(-similarities, axis=1, kind="stable"))


def test_many_items_are_ordered_by_all_bits_of_their_similarity() -> None:
    similarities = np.random.default_rng(1).normal(size=(3, 5000)).astype(np.float32)
    similarities[:, 4000:] = similarities[:, :1000]  # ties
    columns = np.broadcast_to(np.arange(5000), similarities.shape)
    assert np.array_equal(_ranked(similarities, columns), np.argsort(-similarities, axis=1, kind="stable"))
