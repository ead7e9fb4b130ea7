"""SCM: the first bit against the generalised eigenproblem, later bits against a dense residual."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eig

from rmsh.core.types import ScoreArray
from rmsh.data.labels import unit_labels
from rmsh.data.pairs import Pairs
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods.scm import SCM, leading_pair
from rmsh.metrics.evaluate import evaluate

RIDGE = 0.05


def _parallel(a: ScoreArray, b: ScoreArray) -> float:
    return float(abs(a @ b) / np.linalg.norm(a) / np.linalg.norm(b))


def _reference(pairs: Pairs, bits: int) -> list[ScoreArray]:
    """W_x of SCM as printed: the N x N similarity, and an eigenproblem a bit."""
    x, y = (np.asarray(pairs.features(m), np.float64) for m in ("image", "text"))
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    labels = unit_labels(np.asarray(pairs.labels))
    similarity = bits * (2 * labels @ labels.T - 1)
    xx, yy = (z.T @ z + RIDGE * np.trace(z.T @ z) / z.shape[1] * np.eye(z.shape[1]) for z in (x, y))
    found = []
    for _ in range(bits):
        c = x.T @ similarity @ y
        values, vectors = eig(c @ np.linalg.solve(yy, c.T), xx)
        w_x = vectors[:, values.real.argmax()].real
        w_y = np.linalg.solve(yy, c.T @ w_x)
        similarity = similarity - np.outer(np.sign(x @ w_x), np.sign(y @ w_y))
        found.append(w_x)
    return found


def test_every_bit_solves_the_eigenproblem_of_what_is_left() -> None:
    pairs = generate_pairs(80, image_dim=7, text_dim=5)
    (layer,) = SCM(bits=4, ridge=RIDGE).fit(pairs).model.functions["image"].layers
    for bit, wanted in enumerate(_reference(pairs, 4)):
        assert _parallel(layer[0][:, bit].astype(np.float64), wanted) > 1 - 1e-4


def test_the_leading_pair_is_that_of_the_singular_value_decomposition() -> None:
    for shape in ((6, 3), (3, 6)):
        matrix = np.random.default_rng(0).normal(size=shape)
        left, right = leading_pair(matrix)
        assert left @ matrix @ right > 0
        np.testing.assert_allclose(left @ matrix @ right, np.linalg.svd(matrix)[1][0])


def test_codes_are_far_above_chance() -> None:
    pairs = generate_pairs(600)
    codes = {m: SCM(bits=16).fit(pairs).encode(pairs.features(m), m) for m in ("image", "text")}
    scores = evaluate(codes["text"], codes["image"], pairs.labels, pairs.labels, k=50)
    assert scores.ndcg.value > 1.3 * scores.ndcg.chance
