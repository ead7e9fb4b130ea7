"""Classifier-ITQ: principal directions, the loss by hand, label probabilities, and codes above chance."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import logit
from sklearn.decomposition import PCA

from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods.classifier_itq import (
    ClassifierITQ,
    Classifiers,
    LogisticProbabilities,
    MLPProbabilities,
    principal_directions,
)
from rmsh.methods.deep import NetworkConfig
from rmsh.metrics.evaluate import evaluate
from rmsh.training.loop import TrainingSet


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


def _classifiers() -> tuple[Classifiers, TrainingSet]:
    pairs = generate_pairs(20, image_dim=5, text_dim=4)
    data = TrainingSet(np.asarray(pairs.images), np.asarray(pairs.texts), np.asarray(pairs.labels))
    torch.manual_seed(0)
    return Classifiers(data, NetworkConfig(hidden=6)), data


def test_the_loss_is_the_cross_entropy_of_both_modalities() -> None:
    objective, data = _classifiers()
    batch = data.batch(np.arange(20))
    terms = objective(batch).terms
    for name, z in (("image", objective.image(batch.images)), ("text", objective.text(batch.texts))):
        p = torch.sigmoid(z)
        wanted = -(batch.labels * p.log() + (1 - batch.labels) * (1 - p).log()).sum() / 20
        assert float(terms[name].detach()) == pytest.approx(float(wanted.detach()), rel=1e-4)


def test_what_is_exported_squares_to_the_probabilities() -> None:
    objective, data = _classifiers()
    roots = objective.export()["image"](data.images)
    wanted = torch.sigmoid(objective.image(torch.from_numpy(data.images))).detach().numpy()
    np.testing.assert_allclose(np.square(roots), wanted, atol=1e-5)


@pytest.mark.parametrize("cls", [LogisticProbabilities, MLPProbabilities])
def test_an_item_has_its_own_labels_with_a_higher_probability(cls: type[MLPProbabilities]) -> None:
    pairs = generate_pairs(300, noise=0.5)
    method = cls(epochs=60, hidden=32, batch=32).fit(pairs)
    assert pairs.labels is not None
    for modality in ("image", "text"):
        probabilities = method.vectors(pairs.features(modality), modality)
        assert probabilities.min() >= 0
        assert probabilities.max() <= 1
        assert probabilities[pairs.labels == 1].mean() > 2 * probabilities[pairs.labels == 0].mean()


def test_the_logit_of_logistic_regression_is_linear_and_that_of_a_network_is_not() -> None:
    pairs = generate_pairs(100)
    ends = np.asarray(pairs.features("image"))[:2]
    line = np.stack([ends[0], ends.mean(axis=0), ends[1]])
    bend = {}
    for cls in (LogisticProbabilities, MLPProbabilities):
        logits = logit(cls(epochs=2, hidden=16).fit(pairs).vectors(line, "image").astype(np.float64))
        bend[cls] = np.abs(logits[1] - (logits[0] + logits[2]) / 2).max()
    assert bend[LogisticProbabilities] < 1e-4 < bend[MLPProbabilities]
