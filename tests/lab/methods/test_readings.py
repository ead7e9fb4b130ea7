"""CMDVH and EGDH: their second stage against values worked out independently, and their names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import lab.methods  # noqa: F401  # adds them to the registry
from lab.methods import egdh
from lab.methods.cmdvh import variational_loss
from rmsh.codes import unpack
from rmsh.core.types import MODALITIES
from rmsh.data.pairs import Pairs
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods import METHODS, create, method_class
from rmsh.methods.svhn import divergence
from rmsh.metrics.evaluate import evaluate
from rmsh.training.loop import TrainingSet
from rmsh.training.losses import quantisation_loss, signs

F = torch.tensor([[0.9, -0.8, 0.7, -0.6], [0.5, 0.4, 0.3, -0.2], [0.6, -0.5, -0.4, 0.8]])
G = torch.tensor([[0.8, -0.9, 0.6, -0.5], [0.4, 0.3, -0.2, 0.1], [0.7, -0.6, -0.8, 0.9]])
READINGS = ["cmdvh-reading", "egdh-reading"]


class Fixed(nn.Module):
    """A network with given outputs."""

    def __init__(self, outputs: Tensor) -> None:
        super().__init__()
        self.outputs = outputs

    def forward(self, _: Tensor) -> Tensor:
        return self.outputs


def test_the_second_stage_of_cmdvh() -> None:
    b, log_variance = signs(F + G), torch.full_like(F, -1.0)
    assert divergence(F, log_variance).mean().item() == pytest.approx(1.444092, abs=1e-6)
    assert quantisation_loss(F, b).mean().item() == pytest.approx(0.95, abs=1e-6)
    loss = variational_loss(F, log_variance, torch.zeros_like(F), b, beta=10.0)
    assert loss.item() == pytest.approx(10.944092, abs=1e-5)


def test_the_second_stage_of_egdh() -> None:
    # The label sets in the order of np.unique are those of the items 0, 2 and 1.
    labels = np.array([[0, 1], [1, 1], [1, 0]], np.uint8)
    data = TrainingSet(np.zeros((3, 2), np.float32), np.ones((3, 2), np.float32), labels)
    objective: Any = egdh.Objective(data, egdh.EGDHConfig(bits=4, others=0, gamma=1.0), label_epochs=0)
    objective.image, objective.text = Fixed(F), Fixed(G)
    objective.labels = Fixed(torch.tensor([[1.0, -1, 1, -1], [-1, 1, -1, 1], [1, 1, 1, -1]]))
    terms = {name: term.item() for name, term in objective(data.batch(np.arange(3))).terms.items()}
    assert terms["image classes"] == pytest.approx(0.465905, abs=1e-6)
    assert terms["text classes"] == pytest.approx(0.492790, abs=1e-6)
    assert terms["image distance"] == pytest.approx(2.416667, abs=1e-6)
    assert terms["text distance"] == pytest.approx(3.153333, abs=1e-6)


@pytest.mark.parametrize("name", READINGS)
def test_readings_learn_and_say_what_they_are(name: str) -> None:
    pairs = generate_pairs(300, noise=0.5, seed=3)
    method = create(name, bits=32, hidden=64, epochs=6, batch=50).fit(pairs)
    images, texts = (method.encode(pairs.features(m), m) for m in ("image", "text"))
    ndcg = evaluate(images, texts, pairs.labels, pairs.labels, k=50).ndcg
    assert ndcg.value > 1.2 * ndcg.chance
    assert "a reading of the abstract" in method_class(name).summary


def test_bits_of_cmdvh_vary_though_most_items_lack_most_labels() -> None:
    chance = np.random.default_rng(0)
    labels = (chance.random((500, 80)) < 0.03).astype(np.uint8)
    images, texts = (labels @ chance.standard_normal((2, 80, 64))).astype(np.float32)
    pairs = Pairs(ids=np.arange(500), images=images, texts=texts, labels=labels, source="test")
    method = create("cmdvh-reading", bits=32, hidden=256, epochs=10, batch=50).fit(pairs)
    for modality in MODALITIES:
        share = unpack(method.encode(pairs.features(modality), modality).packed, 32).mean(axis=0)
        assert np.mean((share < 0.02) | (share > 0.98)) <= 0.05


def test_every_reading_is_marked_by_its_name() -> None:
    assert [name for name in METHODS.names() if name.endswith("-reading")] == READINGS
