"""SePH: the objective against whole matrices, its gradient against differences, a descent, both kinds of anchors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import xlogy

from rmsh.core.types import FloatArray
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods import seph
from rmsh.methods.seph import SemanticEmbedding, SePH
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
