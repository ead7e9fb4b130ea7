"""The label graph against the dense matrix it avoids."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rmsh.methods import tdh as label_graph
from rmsh.methods.tdh import LabelGraph, conjugate_gradient, smooth


def _labels(n: int = 60, classes: int = 5) -> np.ndarray:
    labels = (np.random.default_rng(0).random((n, classes)) < 0.25).astype(np.uint8)
    labels[np.arange(n), np.arange(n) % classes] = 1
    return labels


def _solved(labels: np.ndarray, values: np.ndarray, strength: float) -> np.ndarray:
    shared = labels.astype(np.float64) @ labels.T > 0
    laplacian = np.diag(shared.sum(axis=1)) - shared
    return np.linalg.solve(2 * np.eye(len(labels)) + strength * laplacian, values)


@pytest.mark.parametrize("strength", [0.0, 0.01, 1.0])
def test_smoothing_solves_the_dense_system(strength: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_graph, "_BLOCK", 7)  # several blocks, the last one smaller
    labels, values = _labels(), np.random.default_rng(1).normal(size=(60, 4))
    graph = LabelGraph.of(labels, at_most=99)
    ours = smooth(graph, torch.from_numpy(values).float(), strength=strength)
    expected = _solved(labels, values, strength)
    assert np.abs(ours.numpy() - expected).max() < 2e-3 * np.abs(expected).max()


def test_items_of_label_sets_that_are_left_out_have_no_neighbours() -> None:
    labels = np.array([[1, 0], [1, 0], [1, 0], [1, 1], [1, 1], [0, 1]], np.uint8)
    values = torch.arange(6.0)[:, None]
    ours = smooth(LabelGraph.of(labels, at_most=2), values, strength=0.5)
    assert ours[5].item() == 2.5
    expected = _solved(labels[:5], values[:5].numpy(), 0.5)
    assert np.abs(ours[:5].numpy() - expected).max() < 5e-3


def test_the_sets_that_are_kept_are_the_most_frequent() -> None:
    graph = LabelGraph.of(np.array([[0, 1], [1, 0], [1, 0], [1, 1]], np.uint8), at_most=1)
    assert (graph.sets.tolist(), graph.member.tolist()) == ([[1.0, 0.0]], [1, 0, 0, 1])


def test_conjugate_gradients_solve_each_column_and_leave_zero_as_zero() -> None:
    root = torch.randn(12, 12, generator=torch.Generator().manual_seed(0))
    matrix = root @ root.T + 5 * torch.eye(12)
    right = torch.cat([torch.eye(12)[:, :2], torch.zeros(12, 1)], dim=1)
    ours = conjugate_gradient(matrix.mm, right, diagonal=matrix.diagonal()[:, None], tolerance=1e-6)
    torch.testing.assert_close(ours, torch.linalg.solve(matrix, right), rtol=1e-3, atol=1e-5)
