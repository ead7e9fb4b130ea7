"""UCH: errors, cycles and who learns from what."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods.uch import UCH, Objective, UCHConfig, absolute_error, squared_error
from rmsh.metrics.audit import audit_bits
from rmsh.training.loop import TrainingSet

PAIRS = generate_pairs(16, image_dim=6, text_dim=4)


def _data() -> TrainingSet:
    return TrainingSet(np.asarray(PAIRS.images), np.asarray(PAIRS.texts), np.zeros((16, 0), np.uint8))


def _objective() -> Objective:
    torch.manual_seed(0)
    return Objective(_data(), UCHConfig(bits=3, hidden=5, cycle=7.0, paired=2.0, quantisation=0.5, alignment=3.0))


def test_errors_are_relative_to_what_is_copied_and_give_it_no_gradient() -> None:
    made, real = torch.tensor([[0.0, 6.0]], requires_grad=True), torch.tensor([[3.0, 4.0]], requires_grad=True)
    assert absolute_error(made, real).item() == pytest.approx(2.5 / 12.5**0.5)
    assert squared_error(made, real).item() == pytest.approx(6.5 / 12.5)
    (absolute_error(made, real) + squared_error(made, real)).backward()
    assert real.grad is None


def test_a_picture_becomes_a_text_and_a_picture_again_in_both_cycles() -> None:
    objective, batch = _objective(), _data().batch(np.arange(16))
    terms = {name: term.item() for name, term in objective(batch).terms.items()}
    image, text = objective.image, objective.text
    x, y = image.scaling(batch.images), text.scaling(batch.texts)
    made = objective.outer["text"](image.represent(x))
    back = objective.outer["image"](text.represent(made))
    assert terms["text features paired"] == pytest.approx(2.0 * squared_error(made, y).item(), rel=1e-4)
    assert terms["text features cycle"] == pytest.approx(7.0 * absolute_error(back, x).item(), rel=1e-4)
    r, s = image.represent(x), text.represent(y)
    made = F.relu(objective.inner["text"](image.code(r)))
    back = F.relu(objective.inner["image"](text.code(made)))
    assert terms["text representation paired"] == pytest.approx(2.0 * squared_error(made, s).item(), rel=1e-4)
    assert terms["text representation cycle"] == pytest.approx(7.0 * absolute_error(back, r).item(), rel=1e-4)


def test_codes_are_drawn_to_binary_values_and_to_each_other() -> None:
    objective, batch = _objective(), _data().batch(np.arange(16))
    terms = {name: term.item() for name, term in objective(batch).terms.items()}
    z, w = objective.image(batch.images).detach().numpy(), objective.text(batch.texts).detach().numpy()
    quantised = np.square(np.where(z >= 0, 1.0, -1.0) - z).mean()
    assert terms["image quantisation"] == pytest.approx(0.5 * quantised, rel=1e-4)
    assert terms["alignment"] == pytest.approx(3.0 * np.square(z - w).mean(), rel=1e-4)


def test_bits_stay_even_though_the_codes_of_both_modalities_are_drawn_together() -> None:
    pairs = generate_pairs(300)
    method = UCH(bits=16, hidden=32, epochs=8, alignment=10.0, learning_rate=1e-3).fit(pairs)
    for modality in ("image", "text"):
        ones = audit_bits(method.encode(pairs.features(modality), modality)).ones
        assert np.minimum(ones, 1 - ones).min() > 0.2  # without normalisation it is 0.07


def test_an_exported_model_is_normalised_by_the_statistics_of_real_items() -> None:
    pairs = generate_pairs(300)
    method = UCH(bits=16, hidden=32, epochs=4, learning_rate=1e-3).fit(pairs)
    for modality in ("image", "text"):
        values = np.arctanh(method.project(pairs.features(modality), modality).astype(np.float64))
        np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-3)  # up to 0.8 with those of generated items
        np.testing.assert_allclose(values.std(axis=0, ddof=1), 1, atol=1e-2)


def test_labels_play_no_part() -> None:
    options = {"bits": 8, "hidden": 6, "epochs": 2}
    one, two = (UCH(**options).fit(pairs) for pairs in (PAIRS, replace(PAIRS, labels=None, class_names=())))
    assert one.model.fingerprint == two.model.fingerprint
