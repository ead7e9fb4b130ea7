"""SVHN: both stages against the printed formulas, and the two ways to code a database."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from rmsh.core.errors import DataError
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods.svhn import SVHN, Objective, SVHNConfig, divergence
from rmsh.training.loop import TrainingSet

PAIRS = generate_pairs(20, classes=5, image_dim=6, text_dim=4)
ROWS = np.arange(8)


def _data() -> TrainingSet:
    return TrainingSet(np.asarray(PAIRS.images), np.asarray(PAIRS.texts), np.asarray(PAIRS.labels))


def _objective() -> Objective:
    torch.manual_seed(0)
    return Objective(_data(), SVHNConfig(bits=3, hidden=5, quantisation=0.3, beta=4.0), label_epochs=2)


def test_the_divergence_is_that_of_two_normal_distributions() -> None:
    mean, log_variance = torch.tensor([[0.7, -1.5]]), torch.tensor([[0.4, -0.9]])
    ours = torch.distributions.Normal(mean, (0.5 * log_variance).exp())
    expected = torch.distributions.kl_divergence(ours, torch.distributions.Normal(0.0, 1.0)).sum()
    assert divergence(mean, log_variance).item() == pytest.approx(expected.item(), rel=1e-5)


def test_the_label_network_learns_first_by_the_printed_sum() -> None:
    objective, batch = _objective(), _data().batch(ROWS)
    objective.begin_epoch(1, _data())
    terms = {name: term.item() for name, term in objective(batch).terms.items()}
    u, labels = objective.labels(batch.labels).detach().double().numpy(), _data().labels[ROWS]
    likelihood = 0.0
    for i in ROWS:
        for j in ROWS:
            theta = 0.5 * u[i] @ u[j]
            likelihood += np.log1p(np.exp(theta)) - theta * bool((labels[i] & labels[j]).any())
    assert terms["label likelihood"] == pytest.approx(likelihood / 8, rel=1e-4)
    assert terms["label quantisation"] == pytest.approx(0.3 * np.square(np.abs(u) - 1).sum() / 8, rel=1e-4)


def test_each_modality_then_learns_the_labels_code_and_the_label_network_no_more() -> None:
    objective, batch = _objective(), _data().batch(ROWS)
    objective.begin_epoch(2, _data())
    torch.manual_seed(3)
    terms = objective(batch).terms
    torch.manual_seed(3)
    noise = torch.randn(8, 3)
    representation = objective.image.represent(objective.image.scaling(batch.images))
    mean, log_variance = objective.image.code(representation), objective.image_spread(representation)
    h = torch.where(objective.labels(batch.labels) >= 0, 1.0, -1.0)
    z = mean + log_variance.exp().sqrt() * noise
    assert terms["image code"].item() == pytest.approx(4.0 * (h - z).square().sum().item() / 8, rel=1e-4)
    assert terms["image divergence"].item() == pytest.approx(divergence(mean, log_variance).mean().item(), rel=1e-4)
    sum(terms.values()).backward()
    assert all(parameter.grad is None for parameter in objective.labels.parameters())


def test_database_codes_come_from_the_modality_unless_labels_are_asked_for() -> None:
    fair = SVHN(bits=8, hidden=6, epochs=1).fit(PAIRS)
    np.testing.assert_array_equal(
        fair.encode_database(PAIRS, "text").packed, fair.encode(PAIRS.features("text"), "text").packed
    )
    method = SVHN(bits=8, hidden=6, epochs=1, database_codes="labels").fit(PAIRS)
    codes = [method.encode_database(PAIRS, m).packed for m in ("image", "text")]
    np.testing.assert_array_equal(codes[0], codes[1])
    alike = (np.asarray(PAIRS.labels)[:, None] == np.asarray(PAIRS.labels)).all(axis=2)
    same = (codes[0][:, None] == codes[0]).all(axis=2)
    assert same[alike].all()  # the same labels, the same code


def test_codes_of_labels_need_labels() -> None:
    method = SVHN(bits=8, hidden=6, epochs=1, database_codes="labels").fit(PAIRS)
    with pytest.raises(DataError, match=r"20 database items have no labels.*database_codes='labels'"):
        method.encode_database(replace(PAIRS, labels=None, class_names=()), "image")
