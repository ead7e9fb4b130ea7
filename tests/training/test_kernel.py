"""Kernels: the width against all pairs, anchors, logistic regression against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from rmsh.hash_function import KernelLayer
from rmsh.methods.seph import Anchors, choose_anchors, kernel_logistic_regression, mean_squared_distance

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(40, 3)).astype(np.float32)


def test_the_mean_squared_distance_is_that_of_all_pairs() -> None:
    differences = FEATURES[:, None].astype(np.float64) - FEATURES
    assert mean_squared_distance(FEATURES) == pytest.approx(np.square(differences).sum(axis=2).mean(), rel=1e-6)


def test_random_anchors_are_different_rows() -> None:
    anchors = choose_anchors(FEATURES, 10, how="random", seed=1)
    places = [np.flatnonzero((anchor == FEATURES).all(axis=1)).tolist() for anchor in anchors]
    assert len({place for (place,) in places}) == 10


def test_k_means_anchors_are_the_centres_of_clear_groups() -> None:
    groups = np.repeat(np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], np.float32), 5, axis=0)
    anchors = choose_anchors(groups, 3, how="k-means", seed=0)
    assert sorted(anchors.tolist()) == [[0.0, 0.0], [0.0, 9.0], [9.0, 0.0]]


@pytest.mark.parametrize("how", ["k-means", "random"])
def test_few_rows_are_all_anchors_and_equal_rows_do_no_harm(how: Anchors) -> None:
    np.testing.assert_array_equal(choose_anchors(FEATURES[:4], 5, how=how, seed=0), FEATURES[:4])
    assert choose_anchors(np.ones((9, 2), np.float32), 5, how=how, seed=0).shape == (5, 2)


def test_logistic_regression_agrees_with_scikit_learn() -> None:
    """With anchors whose kernel is the identity the penalty is that of plain logistic regression without a constant."""
    codes = np.where(FEATURES @ RNG.normal(size=(3, 2)) + RNG.normal(size=(40, 2)) >= 0, 1.0, -1.0).astype(np.float32)
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
