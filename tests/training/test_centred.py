"""Centred features: every product equals that of a centred dense copy, in blocks and from sparse matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from rmsh.training import closed_form as centred
from rmsh.training.closed_form import Centred, cross_products, ridge

RNG = np.random.default_rng(0)
X = np.maximum(RNG.normal(size=(11, 4)), 0).astype(np.float32)
Y = RNG.normal(size=(11, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def _blocks_of_four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(centred, "_ROWS", 4)


@pytest.mark.parametrize("features", [X, sparse.csr_array(X)], ids=["dense", "sparse"])
def test_products_equal_those_of_a_centred_copy(features: object) -> None:
    side, copy = Centred.of(features), X - X.mean(axis=0, dtype=np.float64)  # type: ignore[arg-type]
    weights, values = RNG.normal(size=(4, 2)), RNG.normal(size=(11, 2))
    np.testing.assert_allclose(side.times(weights), copy @ weights, atol=1e-5)
    np.testing.assert_allclose(side.transposed_times(values), copy.T @ values, atol=1e-5)
    np.testing.assert_allclose(cross_products(side, side), copy.T @ copy, atol=1e-10)
    np.testing.assert_allclose(cross_products(side, Centred.of(Y)), copy.T @ (Y - Y.mean(axis=0)), atol=1e-5)


def test_the_linear_hash_function_subtracts_the_mean() -> None:
    side, weights = Centred.of(X), RNG.normal(size=(4, 6))
    np.testing.assert_allclose(side.linear_hash(weights)(X), side.times(weights), atol=1e-5)


def test_sparse_features_are_dense_a_block_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    whole = sparse.csr_array.toarray
    monkeypatch.setattr(sparse.csr_array, "toarray", lambda self: rows.append(self.shape[0]) or whole(self))
    cross_products(Centred.of(sparse.csr_array(X)), Centred.of(Y))
    assert rows == [4, 4, 3]


def test_a_ridge_makes_features_that_never_vary_invertible() -> None:
    assert np.linalg.matrix_rank(ridge(np.zeros((3, 3)), 0.1)) == 3
