"""CCA-ITQ: correlations against scikit-learn and numpy, and codes that find their partners."""

from __future__ import annotations

import numpy as np
import pytest

from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods.cca_itq import CCAITQ, canonical_correlation
from rmsh.metrics.evaluate import evaluate


def test_a_hidden_variable_of_both_sides_is_found_with_its_correlation() -> None:
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=2000)
    x = np.stack([rng.normal(size=2000), hidden + rng.normal(size=2000)], axis=1)
    y = np.stack([hidden, rng.normal(size=2000), rng.normal(size=2000)], axis=1)
    whole = np.cov(x.T, y.T)
    found = canonical_correlation(whole[:2, :2], whole[2:, 2:], whole[:2, 2:])
    projected = np.corrcoef(x @ found.x[:, 0], y @ found.y[:, 0])[0, 1]
    assert found.correlations[0] == pytest.approx(projected) == pytest.approx(np.sqrt(0.5), abs=0.03)
    assert found.correlations.shape == (2,)


def test_projections_are_uncorrelated_and_have_variance_one() -> None:
    rng = np.random.default_rng(1)
    whole = np.cov(rng.normal(size=(5, 50)))
    xx, yy, xy = whole[:3, :3], whole[3:, 3:], whole[:3, 3:]
    found = canonical_correlation(xx, yy, xy)
    np.testing.assert_allclose(found.x.T @ xx @ found.x, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(found.x.T @ xy @ found.y, np.diag(found.correlations), atol=1e-9)


def test_codes_without_labels_are_far_above_chance() -> None:
    pairs = generate_pairs(600)
    codes = {m: CCAITQ(bits=32).fit(pairs).encode(pairs.features(m), m) for m in ("image", "text")}
    scores = evaluate(codes["image"], codes["text"], pairs.labels, pairs.labels, k=50)
    assert scores.ndcg.value > 1.3 * scores.ndcg.chance


def test_more_bits_than_either_side_has_features() -> None:
    pairs = generate_pairs(200, image_dim=20, text_dim=10)
    method = CCAITQ(bits=24).fit(pairs)
    assert method.model.facts["dimensions"] == 10
    assert method.encode(pairs.features("text"), "text").bits == 24
