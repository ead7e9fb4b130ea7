"""Iterative quantisation: Procrustes against brute force, a loss that never rises, any number of bits."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from rmsh.core.types import FloatArray
from rmsh.training.closed_form import iterative_quantisation, procrustes, signs


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
    rotation, losses = iterative_quantisation(values, bits, rng=np.random.default_rng(0), iterations=30)
    assert all(later <= earlier + 1e-6 for earlier, later in pairwise(losses))
    assert losses[-1] < losses[0]
    before, _ = iterative_quantisation(values, bits, rng=np.random.default_rng(0), iterations=29)
    rotated, codes = values @ rotation, signs(values @ before.astype(np.float32))
    assert losses[-1] == pytest.approx(np.square(codes - rotated).sum() / len(values), rel=1e-4)


@pytest.mark.parametrize("bits", [5, 12])
def test_rows_of_the_rotation_are_orthonormal_so_that_lengths_are_kept(bits: int) -> None:
    rotation, _ = iterative_quantisation(_values(), bits, rng=np.random.default_rng(0))
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(5), atol=1e-9)


def test_more_bits_than_dimensions_are_different_bits() -> None:
    values = _values(n=600, dims=20)
    rotation, _ = iterative_quantisation(values, 32, rng=np.random.default_rng(0))
    codes = signs(values @ rotation.astype(np.float32))
    agreement = np.abs(codes.T @ codes / len(values)) - np.eye(32)
    assert agreement.max() < 0.95
