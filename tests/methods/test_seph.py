"""SePH: the objective against whole matrices, its gradient against differences; anchors and kernel regression."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import xlogy
from sklearn.linear_model import LogisticRegression

from rmsh.core.types import FloatArray
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.hash_function import KernelLayer
from rmsh.methods import seph
from rmsh.methods.seph import (
    Anchors,
    SemanticEmbedding,
    SePH,
    kernel_logistic_regression,
    mean_squared_distance,
    select_anchors,
)
from rmsh.metrics.evaluate import evaluate

RNG = np.random.default_rng(0)
LABELS = np.array([[1, 1, 0], [0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1], [1, 1, 1], [0, 0, 1]], dtype=np.uint8)
H = RNG.normal(size=(7, 2)).astype(np.float32)
WEIGHT = 0.3


@pytest.fixture(autouse=True)
def _blocks_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seph, "_ROWS", 3)


def _loss(h: FloatArray) -> float:
    """The objective with P and Q as whole matrices."""
    unit = LABELS / np.sqrt(LABELS.sum(axis=1, keepdims=True))
    p, h = unit @ unit.T, h.astype(np.float64)
    q = 1 / (1 + np.square(h[:, None] - h).sum(axis=2) / 4)
    for matrix in (p, q):
        np.fill_diagonal(matrix, 0)
        matrix /= matrix.sum()
    off = ~np.eye(len(h), dtype=bool)
    return float((xlogy(p, p) - xlogy(p, q))[off].sum() + WEIGHT * np.square(np.abs(h) - 1).sum())


def test_the_loss_in_blocks_is_that_of_whole_matrices() -> None:
    assert SemanticEmbedding(LABELS, weight=WEIGHT)(H)[0] == pytest.approx(_loss(H), rel=1e-5)


def test_the_gradient_is_that_of_small_differences() -> None:
    _, gradient = SemanticEmbedding(LABELS, weight=WEIGHT)(H)
    for i, k in np.ndindex(*H.shape):
        step = np.zeros(H.shape)
        step[i, k] = 1e-4
        slope = (_loss(H + step) - _loss(H - step)) / 2e-4
        assert gradient[i, k] == pytest.approx(slope, abs=1e-3)


def test_the_best_iterate_is_returned_and_is_lower_than_the_first() -> None:
    labels = np.asarray(generate_pairs(60).labels)
    embedding = SemanticEmbedding(labels, weight=0.01 / (8 * 60))
    h, losses = embedding.minimise(8, iterations=60, step=500.0, rng=np.random.default_rng(0))
    assert embedding(h)[0] == pytest.approx(min(losses), rel=1e-5)
    assert min(losses) < 0.8 * losses[0]
    np.testing.assert_allclose(h.mean(axis=0), 0, atol=1e-4)


@pytest.mark.parametrize("anchors", ["k-means", "random"])
def test_codes_are_far_above_chance_and_a_sample_is_enough(anchors: str) -> None:
    pairs = generate_pairs(400)
    method = SePH(bits=16, sample=150, anchors=anchors, anchor_count=40).fit(pairs)
    assert method.model.facts["sample"] == 150
    codes = {m: method.encode(pairs.features(m), m) for m in ("image", "text")}
    scores = evaluate(codes["image"], codes["text"], pairs.labels, pairs.labels, k=50)
    assert scores.ndcg.value > 1.3 * scores.ndcg.chance


KERNEL_RNG = np.random.default_rng(0)
FEATURES = KERNEL_RNG.normal(size=(40, 3)).astype(np.float32)


def test_the_mean_squared_distance_is_that_of_all_pairs() -> None:
    differences = FEATURES[:, None].astype(np.float64) - FEATURES
    assert mean_squared_distance(FEATURES) == pytest.approx(np.square(differences).sum(axis=2).mean(), rel=1e-6)


def test_random_anchors_are_different_rows() -> None:
    anchors = select_anchors(FEATURES, 10, how="random", seed=1)
    places = [np.flatnonzero((anchor == FEATURES).all(axis=1)).tolist() for anchor in anchors]
    assert len({place for (place,) in places}) == 10


def test_k_means_anchors_are_the_centres_of_clear_groups() -> None:
    groups = np.repeat(np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], np.float32), 5, axis=0)
    anchors = select_anchors(groups, 3, how="k-means", seed=0)
    assert sorted(anchors.tolist()) == [[0.0, 0.0], [0.0, 9.0], [9.0, 0.0]]


@pytest.mark.parametrize("how", ["k-means", "random"])
def test_few_rows_are_all_anchors_and_equal_rows_do_no_harm(how: Anchors) -> None:
    np.testing.assert_array_equal(select_anchors(FEATURES[:4], 5, how=how, seed=0), FEATURES[:4])
    assert select_anchors(np.ones((9, 2), np.float32), 5, how=how, seed=0).shape == (5, 2)


def test_logistic_regression_agrees_with_scikit_learn() -> None:
    """With anchors whose kernel is the identity the penalty is that of plain logistic regression without a constant."""
    codes = np.where(
        FEATURES @ KERNEL_RNG.normal(size=(3, 2)) + KERNEL_RNG.normal(size=(40, 2)) >= 0, 1.0, -1.0
    ).astype(np.float32)
    ours = kernel_logistic_regression(FEATURES, np.eye(3, dtype=np.float32), codes, penalty=0.5)
    for bit in range(2):
        # Theirs is |w|^2 / 2 + C * loss, ours is loss + penalty * |w|^2.
        theirs = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8).fit(FEATURES, codes[:, bit])
        np.testing.assert_allclose(ours[:, bit], theirs.coef_[0], atol=1e-3)


def test_the_weights_of_kernel_logistic_regression_are_stationary() -> None:
    kernel = KernelLayer(FEATURES[:6], np.array([3.0], np.float32))
    k, k_zz = kernel(FEATURES).astype(np.float64), kernel(FEATURES[:6]).astype(np.float64)
    codes = np.where(FEATURES[:, :1] * FEATURES[:, 1:2] >= 0, 1.0, -1.0).astype(np.float32)
    w = kernel_logistic_regression(kernel(FEATURES), kernel(FEATURES[:6]), codes, penalty=0.1)
    gradient = 2 * 0.1 * k_zz @ w - k.T @ (codes / (1 + np.exp(codes * (k @ w))))
    assert np.abs(gradient).max() < 1e-2
