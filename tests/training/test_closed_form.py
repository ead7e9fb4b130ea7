"""Products of centred features against a dense copy; iterative quantisation against brute force."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from rmsh.core.types import FloatArray
from rmsh.training import closed_form
from rmsh.training.closed_form import Centred, cross_products, iterative_quantisation, procrustes, ridge, signs

RNG = np.random.default_rng(0)
X = np.maximum(RNG.normal(size=(11, 4)), 0).astype(np.float32)
Y = RNG.normal(size=(11, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def _blocks_of_four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closed_form, "_ROWS", 4)


@pytest.mark.parametrize("features", [X, sparse.csr_array(X)], ids=["dense", "sparse"])
def test_products_equal_those_of_a_centred_copy(features: object) -> None:
    side, copy = Centred.of(features), X - X.mean(axis=0, dtype=np.float64)
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


def _values(n: int = 60, dims: int = 5) -> FloatArray:
    values = np.random.default_rng(1).normal(size=(n, dims)) * np.linspace(2, 0.5, dims)
    return (values - values.mean(axis=0)).astype(np.float32)


def test_the_sign_of_zero_is_plus_one() -> None:
    assert signs(np.array([-0.1, 0.0, 2.0], np.float32)).tolist() == [-1.0, 1.0, 1.0]


def test_procrustes_in_the_plane_beats_every_other_rotation_and_reflection() -> None:
    products = np.random.default_rng(0).normal(size=(2, 2))
    angles = np.linspace(0, 2 * np.pi, 2000)
    turns = np.stack([[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]])
    everything = np.concatenate([turns, turns * np.array([1, -1])[:, None, None]], axis=2)
    best = np.einsum("ijt,ij->t", everything, products).max()
    found = float((procrustes(products) * products).sum())
    assert found >= best
    assert found == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("bits", [5, 12])
def test_the_loss_is_that_of_the_rotation_and_never_rises(bits: int) -> None:
    values = _values()
    rotation, losses = iterative_quantisation(values, bits, seed=0, iterations=30)
    assert all(later <= earlier + 1e-6 for earlier, later in pairwise(losses))
    assert losses[-1] < losses[0]
    before, _ = iterative_quantisation(values, bits, seed=0, iterations=29)
    rotated, codes = values @ rotation, signs(values @ before.astype(np.float32))
    assert losses[-1] == pytest.approx(np.square(codes - rotated).sum() / len(values), rel=1e-4)


@pytest.mark.parametrize("bits", [5, 12])
def test_rows_of_the_rotation_are_orthonormal_so_that_lengths_are_kept(bits: int) -> None:
    rotation, _ = iterative_quantisation(_values(), bits, seed=0)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(5), atol=1e-9)


def test_more_bits_than_dimensions_are_different_bits() -> None:
    values = _values(n=600, dims=20)
    rotation, _ = iterative_quantisation(values, 32, seed=0)
    codes = signs(values @ rotation.astype(np.float32))
    agreement = np.abs(codes.T @ codes / len(values)) - np.eye(32)
    assert agreement.max() < 0.95
