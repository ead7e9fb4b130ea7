"""Recent methods: the loss of a batch against values worked out independently for three items of four bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lab.methods import cirh, dchmt, dgcpn, dhaph, dnph, dsph, mith, scbch, twdh, ucch
from lab.methods.heads import HeadObjective, mixed_cosines
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods import create
from rmsh.training.loop import TrainingSet
from rmsh.training.losses import signs

F = torch.tensor([[0.9, -0.8, 0.7, -0.6], [0.5, 0.4, 0.3, -0.2], [0.6, -0.5, -0.4, 0.8]])
G = torch.tensor([[0.8, -0.9, 0.6, -0.5], [0.4, 0.3, -0.2, 0.1], [0.7, -0.6, -0.8, 0.9]])
TWO_CLASSES = np.array([[1, 0], [1, 1], [0, 1]], np.uint8)
FOUR_CLASSES = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]], np.uint8)
TWO_PROXIES = torch.tensor([[1.0, -1, 1, -1], [-1, 1, 1, 1]])
FOUR_PROXIES = torch.tensor([[1.0, -1, 1, -1], [1, 1, -1, -1], [-1, 1, -1, 1], [1, 1, 1, 1]])
X = np.array([[1, 0], [0.6, 0.8], [0, 1]], np.float32)
Y = np.array([[1, 0], [0.8, 0.6], [0.6, 0.8]], np.float32)
DATA = TrainingSet(X, Y, TWO_CLASSES)


class Fixed(nn.Module):
    """A hash network, and its hidden layer, with given outputs."""

    def __init__(self, outputs: Tensor) -> None:
        super().__init__()
        self.outputs = outputs

    def forward(self, _: Tensor) -> Tensor:
        return self.outputs

    scaling = represent = code = forward


def _objective(config: Any, data: TrainingSet = DATA, *, module: Any, epochs: int = 1) -> Any:
    objective: HeadObjective = module.Objective(data, config, epochs=epochs)
    objective.image, objective.text = Fixed(F), Fixed(G)  # type: ignore[assignment]
    return objective


def _terms(objective: HeadObjective, data: TrainingSet = DATA) -> dict[str, float]:
    return {name: term.item() for name, term in objective(data.batch(np.arange(3))).terms.items()}


def _total(objective: HeadObjective, data: TrainingSet = DATA) -> float:
    return sum(_terms(objective, data).values())


def test_dsph() -> None:
    data = TrainingSet(X, Y, FOUR_CLASSES)
    objective = _objective(dsph.DSPHConfig(bits=4, threshold=0.25), data, module=dsph)
    objective.proxies.data = FOUR_PROXIES
    expected = [0.756174, 0.064654, 0.699165, 0.068614, 0.130208, 0, 0.021361]
    assert list(_terms(objective, data).values()) == pytest.approx(expected, abs=1e-6)
    assert _total(objective, data) == pytest.approx(1.740176, abs=1e-6)


@pytest.mark.parametrize(
    ("classes", "thresholds"),
    [
        (16, [0, 0, -0.03125, -0.0625]),
        (24, [0, 0, 0, 0]),
        (64, [0.25, 0, 0, 0]),
        (80, [0.25, 0.125, 0, 0]),
        (200, [0.375, 0.1875, 0.09375, 0]),
    ],
)
def test_the_threshold_of_dsph_is_that_of_the_best_linear_codes(classes: int, thresholds: list[float]) -> None:
    assert [1 - 2 * dsph.code_distance(bits, classes) / bits for bits in (16, 32, 64, 128)] == thresholds


def test_a_batch_without_strangers_costs_dsph_nothing() -> None:
    objective = _objective(dsph.DSPHConfig(bits=4), module=dsph)
    assert [_terms(objective)[name] for name in ("images", "texts", "images and texts")] == [0, 0, 0]


def test_twdh(monkeypatch: pytest.MonkeyPatch) -> None:
    objective = _objective(twdh.TwDHConfig(bits=2, long=4), module=twdh)
    objective.long.copy_(TWO_PROXIES)
    monkeypatch.setattr(torch, "randn", lambda *shape: torch.ones(*shape))  # ties become 1
    found = twdh.targets(torch.from_numpy(TWO_CLASSES).float(), TWO_PROXIES)
    assert found.tolist() == [[1, -1, 1, -1], [1, 1, 1, 1], [-1, 1, 1, 1]]
    terms = _terms(objective)
    assert terms["image"] + terms["text"] == pytest.approx(0.999227, abs=1e-6)
    entropies = [twdh.bit_loss(z, found, quantisation=0.0).item() for z in (F, G)]
    assert entropies == pytest.approx([0.582249, 0.687812], abs=1e-6)


def test_the_codes_of_twdh_are_the_transformed_long_codes() -> None:
    pairs = generate_pairs(60, image_dim=9, text_dim=7)
    data = TrainingSet(np.asarray(pairs.images), np.asarray(pairs.texts), np.asarray(pairs.labels))
    objective = twdh.Objective(data, twdh.TwDHConfig(bits=6, long=16, hidden=5))
    values = objective.export()["image"](data.images)
    p = torch.sigmoid(2 * objective.image(torch.from_numpy(data.images).float()))
    expected = (2 * p - 1) @ objective.transform.weight.T + objective.transform.bias
    np.testing.assert_allclose(values, expected.detach().numpy(), atol=1e-5)


def test_a_trained_transform_of_twdh_maps_every_class_to_its_centre() -> None:
    torch.manual_seed(0)
    pairs = generate_pairs(300)
    method = create("twdh", bits=16, hidden=8, long=64, epochs=40, batch=50, learning_rate=1e-2)
    objective: Any = None

    def keep(data: TrainingSet, original: Any = method._objective) -> Any:  # type: ignore[attr-defined]
        nonlocal objective
        objective = original(data)
        return objective

    method._objective = keep  # type: ignore[attr-defined]
    method.fit(pairs)
    assert (signs(objective.transform(objective.long)) == objective.short).all(dim=1).float().mean() > 0.9


def test_the_sparsity_of_twdh_weighs_as_much_in_a_longer_code() -> None:
    short, long = (_objective(twdh.TwDHConfig(bits=bits, long=4), module=twdh) for bits in (2, 6))
    with torch.no_grad():
        long.transform.weight.copy_(short.transform.weight.repeat(3, 1))
    assert _terms(long)["sparsity"] == pytest.approx(_terms(short)["sparsity"])


@pytest.mark.parametrize(("epochs", "expected"), [(1, 0.059196), (99, 0.088160)])
def test_dhaph(epochs: int, expected: float) -> None:
    objective = _objective(dhaph.DHaPHConfig(bits=4), module=dhaph, epochs=epochs)  # the pace is 1, or 1 / 33
    assert _total(objective) == pytest.approx(expected, abs=1e-6)
    if epochs == 1:
        assert list(_terms(objective).values()) == pytest.approx([0.020110, 0.018245, 0.020841], abs=1e-6)


def test_the_pace_of_dhaph_is_full_after_a_third_of_the_epochs() -> None:
    objective = _objective(dhaph.DHaPHConfig(bits=4), module=dhaph, epochs=99)
    for epoch in (32, 98):
        objective.begin_epoch(epoch, DATA)
        assert _total(objective) == pytest.approx(0.059196, abs=1e-6)


def test_mith() -> None:
    terms = _terms(_objective(mith.MITHConfig(bits=4), module=mith))
    assert terms["likelihood"] == pytest.approx(10 * 1.216478, abs=1e-5)
    assert terms["quantisation"] == pytest.approx(8 * 0.5925, abs=1e-5)
    assert terms["contrast"] == pytest.approx(50 * 0.010462, abs=5e-5)
    assert sum(terms.values()) == pytest.approx(17.427903, abs=1e-5)


def test_a_sample_of_the_stored_outputs_of_mith_stands_for_all() -> None:
    whole, sampled = (_objective(mith.MITHConfig(bits=4, partners=n), module=mith) for n in (3, 1))
    mean = np.mean([_terms(sampled)["likelihood"] for _ in range(300)])
    assert mean == pytest.approx(_terms(whole)["likelihood"], rel=0.05)


def test_dchmt() -> None:
    objective = _objective(dchmt.DCHMTConfig(bits=4, theta=0.75), module=dchmt)
    terms = _terms(objective)
    assert terms["images and texts"] == pytest.approx(0.554444 + 0.270281, abs=1e-6)
    assert terms["images"] == pytest.approx(0.470000 + 0.296590, abs=1e-6)
    assert terms["texts"] == pytest.approx(0.500000 + 0.236555, abs=1e-6)
    assert sum(terms.values()) == pytest.approx(2.328499, abs=1e-6)


def test_equal_outputs_have_a_gradient_in_dchmt() -> None:
    objective = _objective(dchmt.DCHMTConfig(bits=4), module=dchmt)
    objective.image = objective.text = nn.Linear(2, 4)
    sum(objective(DATA.batch(np.arange(3))).terms.values()).backward()
    assert torch.isfinite(objective.image.weight.grad).all()


def test_dnph(monkeypatch: pytest.MonkeyPatch) -> None:
    objective = _objective(dnph.DNPHConfig(bits=4, uniformity=0.1 * 4 / 16), module=dnph)
    objective.proxies.data = TWO_PROXIES
    pool = torch.tensor([[1.0, 1, 1, 1], [-1, 1, -1, 1], [1, -1, 1, -1]])
    monkeypatch.setattr(dnph, "signs", lambda _: pool)
    terms = _terms(objective)
    assert terms["proxies"] == pytest.approx(1.101147, abs=1e-6)
    uniformity = [terms["image uniformity"], terms["text uniformity"]]
    assert uniformity == pytest.approx([-0.1366667, -0.1266667], abs=1e-6)
    assert sum(terms.values()) == pytest.approx(0.837813, abs=1e-6)
    for outputs in (F, G):
        assert dnph.assign(outputs, pool).tolist() == pool[[2, 0, 1]].tolist()


def test_frozen_proxies_of_dnph_are_not_trained() -> None:
    objective = _objective(dnph.DNPHConfig(bits=4, learn_proxies=False), module=dnph)
    assert not objective.proxies.requires_grad


def test_ucch() -> None:
    objective = _objective(ucch.UCCHConfig(bits=4, negatives=0), module=ucch)
    memory = torch.tensor([[1.0, -1, 1, -1], [1, 1, 1, -1], [-1, 1, -1, 1]]) / 2
    objective.begin_epoch(1, DATA)
    objective.memory.copy_(memory)
    terms = _terms(objective)
    assert terms["memory"] == pytest.approx(0.7 * 1.375450, abs=1e-6)
    assert terms["pairs"] == pytest.approx(0.3 * 1.642054, abs=1e-6)
    assert objective.memory[1].tolist() == pytest.approx([0.720648, 0.606189, 0.229413, -0.246112], abs=1e-6)


def test_the_first_epoch_of_ucch_uses_the_codes_of_the_batch_and_fills_the_memory() -> None:
    objective = _objective(ucch.UCCHConfig(bits=4), module=ucch)
    f, g = (nn.functional.normalize(h, dim=1) for h in (F, G))
    codes = signs(f + g)
    logits = [h @ codes.T / (0.9 * 2) for h in (f, g)]
    expected = sum(nn.functional.cross_entropy(each, torch.arange(3)).item() for each in logits)
    assert _terms(objective)["memory"] == pytest.approx(0.7 * expected, abs=1e-6)
    torch.testing.assert_close(objective.memory, nn.functional.normalize(f + g, dim=1))


def test_dgcpn() -> None:
    s = dgcpn.coherence(mixed_cosines(DATA, 0.99), 0.3, drop=0, scale=1)
    expected = [[0.988275, -0.153818, -0.401935], [-0.153818, 0.706067, 0.124152], [-0.401935, 0.124152, 0.991151]]
    np.testing.assert_allclose(s, expected, atol=1e-6)
    assert dgcpn.coherence_loss(F, G, s).item() == pytest.approx(1.260180, abs=1e-6)
    objective = _objective(dgcpn.DGCPNConfig(bits=4, dropped=0.0), module=dgcpn)
    objective.similarity = s
    assert _terms(objective)["relaxed"] == pytest.approx(1.260180, abs=1e-6)
    assert _terms(objective)["text"] == pytest.approx(dgcpn.coherence_loss(signs(F), G, s).item())


def test_cirh() -> None:
    s = cirh.similarity(mixed_cosines(DATA, 0.1), 0.3, drop=1)
    expected = [[1.323482, 0.363976, 0], [0.129976, 1.323482, 0.591070], [0, 0.591070, 1.323482]]
    np.testing.assert_allclose(s, expected, atol=1e-6)
    loss = cirh.hash_loss(F, G, signs(F + G), s, beta=0.01)
    assert loss.item() == pytest.approx(0.646384, abs=1e-6)
    plain = cirh.hash_loss(F, G, signs(F + G), s, beta=0.0)
    assert plain.item() == pytest.approx(0.641667, abs=1e-6)


@pytest.mark.parametrize("name", ["dgcpn", "cirh"])
def test_a_sample_of_the_pairs_is_learned_from(name: str) -> None:
    method = create(name, bits=8, pairs=40, epochs=1, hidden=4).fit(generate_pairs(90))
    assert (method.model.facts["sample"], method.model.facts["items"]) == (40, 90)


def test_scbch() -> None:
    objective = _objective(scbch.SCBCHConfig(bits=4, alpha=0.3, beta=0.7), module=scbch)
    objective.weights = torch.tensor([1.0, 0.75, 0.5])
    for head in objective.heads:
        head.weight.data = TWO_PROXIES / 2
    terms = _terms(objective)
    assert terms["contrast"] == pytest.approx(0.3 * 1.905453, abs=1e-6)
    assert terms["quantisation"] == pytest.approx(0.7 * 1.035418, abs=1e-6)
    assert terms["labels"] == pytest.approx(0.430790, abs=1e-6)
    assert sum(terms.values()) == pytest.approx(1.727219, abs=1e-6)


def test_labels_that_differ_from_those_of_the_neighbours_count_less_in_scbch() -> None:
    outputs = torch.eye(2).repeat_interleave(30, dim=0)
    labels = outputs.clone()
    labels[0] = torch.tensor([0.0, 1.0])  # its neighbours have the other class
    weights = scbch.agreement(outputs, labels)
    assert weights[0].item() == pytest.approx(0.5)
    assert weights[30:].tolist() == pytest.approx([1.0] * 30)
