"""SSAH: the losses against the printed sums, its two stages, and where the adversarial loss goes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods.ssah import SSAH, Objective, SSAHConfig
from rmsh.metrics.audit import audit_bits
from rmsh.training.loop import Batch, TrainingSet

ROWS = np.arange(6)


def _data() -> TrainingSet:
    pairs = generate_pairs(16, classes=5, image_dim=6, text_dim=4)
    return TrainingSet(np.asarray(pairs.images), np.asarray(pairs.texts), np.asarray(pairs.labels))


def _objective(**options: object) -> Objective:
    torch.manual_seed(0)
    config = SSAHConfig.parse(
        {"bits": 3, "hidden": 5, "alpha": 0.5, "gamma": 1.0, "beta": 2.0, "eta": 3.0, "delta": 0.7, **options}
    )
    return Objective(_data(), config, label_epochs=1)


def _batch() -> Batch:
    return _data().batch(ROWS)


def _nll(own: np.ndarray, teacher: np.ndarray, scale: float = 1.0) -> float:
    labels, total = _data().labels, 0.0
    for i in ROWS:
        for j in range(16):
            theta = scale * 0.5 * own[i] @ teacher[j]
            total += np.log1p(np.exp(theta)) - theta * bool((labels[i] & labels[j]).any())
    return total / (len(ROWS) * 16)


@pytest.mark.parametrize(("name", "epoch"), [("label", 0), ("image", 1), ("text", 1)])
def test_the_terms_of_each_network_equal_the_printed_sums(name: str, epoch: int) -> None:
    objective, batch, everyone = _objective(), _batch(), torch.from_numpy(_data().labels).float()
    objective.begin_epoch(epoch, _data())
    terms = {key: term.item() for key, term in objective(batch).terms.items()}
    with torch.no_grad():
        teacher = [objective.labels.represent(everyone).numpy(), objective.labels(everyone).numpy()]
        network = {"label": objective.labels, "image": objective.image, "text": objective.text}[name]
        inputs = {"label": batch.labels, "image": batch.images, "text": batch.texts}[name]
        f = network.represent(inputs if name == "label" else network.scaling(inputs))
        code, predicted = network.code(f).numpy(), torch.sigmoid(objective.heads[name](f)).numpy()
    assert terms[f"{name} representation"] == pytest.approx(0.5 * _nll(f.numpy(), teacher[0]), rel=1e-4)
    assert terms[f"{name} code"] == pytest.approx(_nll(code, teacher[1], scale=64 / 3), rel=1e-4)
    signs = np.where(code >= 0, 1.0, -1.0)
    assert terms[f"{name} quantisation"] == pytest.approx(2.0 * np.square(signs - code).mean(), rel=1e-4)
    errors = np.square(predicted - _data().labels[ROWS])
    assert terms[f"{name} labels"] == pytest.approx(3.0 * errors.sum() / 6, rel=1e-4)


def _gradients(adversarial: str) -> tuple[Objective, dict[str, float]]:
    objective = _objective(adversarial=adversarial)
    objective.begin_epoch(1, _data())
    objective(_batch()).terms["image adversarial"].backward()
    parts = {"network": objective.image.hidden.weight, "judge": objective.discriminators["image"][0].weight}
    return objective, {name: 0.0 if p.grad is None else float(p.grad.abs().sum()) for name, p in parts.items()}


def test_in_the_paper_the_adversarial_loss_changes_the_network_and_not_the_discriminator() -> None:
    _, gradient = _gradients("paper")
    assert gradient["network"] > 0
    assert gradient["judge"] == 0


def test_in_the_official_code_it_changes_the_discriminator_and_not_the_network() -> None:
    _, gradient = _gradients("official-code")
    assert gradient["network"] == 0
    assert gradient["judge"] > 0


def test_a_discriminator_learns_in_a_share_of_the_steps_and_its_loss_is_always_reported() -> None:
    for rate in (0.0, 1.0):
        objective = _objective(discriminator_rate=rate)
        objective.begin_epoch(1, _data())
        terms = objective(_batch()).terms
        sum(terms.values()).backward()
        assert terms["image discriminator"].item() > 0
        assert (objective.discriminators["image"][0].weight.grad is not None) == bool(rate)


def test_discriminators_stay_undecided_and_bits_vary_in_long_codes() -> None:
    pairs = generate_pairs(400)
    method = SSAH(bits=128, hidden=32, batch=50, epochs=20, learning_rate=0.003).fit(pairs)
    last = method.model.facts["history"][-1]
    assert min(last["image discriminator"], last["text discriminator"]) > 0.1  # 0.008 if they learn in every step
    for modality in ("image", "text"):
        audit = audit_bits(method.encode(pairs.features(modality), modality))
        assert len(audit.dead) + len(audit.nearly_constant) <= 0.05 * 128


def test_the_label_network_learns_in_the_first_stage_only() -> None:
    for epoch, learns in ((0, True), (1, False)):
        objective = _objective()
        objective.begin_epoch(epoch, _data())
        sum(objective(_batch()).terms.values()).backward()
        assert (objective.labels.first.weight.grad is not None) is learns
        assert (objective.image.hidden.weight.grad is None) is learns
