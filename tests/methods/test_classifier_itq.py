"""Classifier-ITQ: principal directions, and codes above chance."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods.classifier_itq import ClassifierITQ, principal_directions
from rmsh.metrics.evaluate import evaluate


def test_principal_directions_span_what_scikit_learn_finds() -> None:
    values = np.random.default_rng(0).normal(size=(50, 4)) * [1, 5, 2, 3]
    values -= values.mean(axis=0)
    ours, theirs = principal_directions(values.T @ values, 2), PCA(2).fit(values).components_.T
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-8)


@pytest.mark.parametrize(("bits", "dimensions"), [(8, 8), (40, 12)])
def test_codes_shorter_and_longer_than_the_classes_are_far_above_chance(bits: int, dimensions: int) -> None:
    pairs = generate_pairs(600)
    method = ClassifierITQ(bits=bits, epochs=30, batch=32, hidden=64).fit(pairs)
    assert method.model.facts["dimensions"] == dimensions
    codes = {m: method.encode(pairs.features(m), m) for m in ("image", "text")}
    scores = evaluate(codes["image"], codes["text"], pairs.labels, pairs.labels, k=50)
    assert scores.ndcg.value > 1.3 * scores.ndcg.chance
