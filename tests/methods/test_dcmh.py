"""DCMH: the loss of a batch against the printed sums."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods.dcmh import DCMH, DCMHConfig, Objective
from rmsh.training.loop import TrainingSet

ITEMS, ROWS = 12, np.array([1, 4, 7])


def _data() -> TrainingSet:
    pairs = generate_pairs(ITEMS, classes=5, image_dim=6, text_dim=4)
    return TrainingSet(np.asarray(pairs.images), np.asarray(pairs.texts), np.asarray(pairs.labels))


@pytest.mark.parametrize("side", [0, 1])
def test_the_terms_equal_the_sums_of_the_paper_as_means_over_pairs_and_items(side: int) -> None:
    torch.manual_seed(0)
    objective = Objective(_data(), DCMHConfig(bits=3, hidden=5, gamma=2.0, eta=0.5))
    objective.begin_epoch(0, _data())
    objective.side = side
    objective.mean = objective.outputs[side].mean(dim=0)
    terms = {k.split()[1]: v.item() for k, v in objective(_data().batch(ROWS)).terms.items()}
    f, g = (objective.outputs[s].double().numpy() for s in (side, 1 - side))
    b, labels = np.where(f + g >= 0, 1.0, -1.0), _data().labels
    likelihood = 0.0
    for i in ROWS:
        for j in range(ITEMS):
            theta = 0.5 * f[i] @ g[j]
            likelihood += np.log1p(np.exp(theta)) - theta * bool((labels[i] & labels[j]).any())
    share = ITEMS * len(ROWS)
    assert terms["likelihood"] == pytest.approx(likelihood / share, rel=1e-4)
    assert terms["quantisation"] == pytest.approx(2.0 * np.square(b - f)[ROWS].sum() / len(ROWS), rel=1e-4)
    # |F'1|^2 by the items squared: its gradient for a batch, 2 F'1 / (N n), is that of the original.
    assert terms["balance"] == pytest.approx(0.5 * np.square(f.sum(axis=0)).sum() / ITEMS**2, rel=1e-4)


def test_the_balance_gradient_is_the_originals() -> None:
    torch.manual_seed(0)
    objective = Objective(_data(), DCMHConfig(bits=3, hidden=5))
    objective.begin_epoch(0, _data())
    f = objective.outputs[0, ROWS].clone().requires_grad_()
    objective.mean_output(torch.from_numpy(ROWS), f).square().sum().backward()
    expected = 2 * objective.outputs[0].sum(dim=0) / (ITEMS * len(ROWS))
    torch.testing.assert_close(f.grad, expected.expand(3, -1))


def test_a_sample_of_partners_stands_for_all() -> None:
    torch.manual_seed(0)
    objective = Objective(_data(), DCMHConfig(bits=3, hidden=5, partners=4))
    objective.begin_epoch(0, _data())
    sampled = [objective(_data().batch(ROWS)).terms["image likelihood"].item() for _ in range(400)]
    objective.config = DCMHConfig(bits=3, hidden=5)
    assert np.mean(sampled) == pytest.approx(objective(_data().batch(ROWS)).terms["image likelihood"].item(), rel=0.05)


def test_the_sign_loses_little_of_what_was_learned() -> None:
    pairs = generate_pairs(200)
    lost = {}
    for gamma in (0.1, 0.1 / 200):  # the second is the weight of an item if it is divided by their number
        method = DCMH(bits=16, hidden=32, batch=50, epochs=25, learning_rate=0.01, gamma=gamma).fit(pairs)
        values = np.concatenate([method.project(pairs.features(m), m) for m in ("image", "text")])
        lost[gamma] = np.square(values - np.sign(values)).sum() / np.square(values).sum()
    assert lost[0.1] < 0.7 < 0.85 < lost[0.1 / 200]
