"""What the deep baselines share: the schedule, sweeps, and going on bit for bit after being killed."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rmsh.data.pairs import Pairs
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods import METHODS, create, method_class
from rmsh.methods.base import Method
from rmsh.methods.deep import NetworkConfig, NetworkMethod, SweepingObjective
from rmsh.metrics.evaluate import evaluate
from rmsh.training.loop import TrainingSet

HEADS = ["cirh", "dchmt", "dgcpn", "dhaph", "dnph", "dsph", "mith", "scbch", "twdh", "ucch"]
DEEP = ["dcmh", "ssah", "svhn", "tdh", "uch", *HEADS]
ALIKE = [name for name in METHODS.names() if issubclass(method_class(name), NetworkMethod)]


def _method(name: str) -> Method:
    return create(name, bits=10, hidden=8, epochs=3, batch=20)


def _pairs() -> Pairs:
    return generate_pairs(80, image_dim=9, text_dim=7)


@pytest.mark.parametrize("name", DEEP)
def test_a_run_killed_at_three_steps_ends_with_identical_weights(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objective: Any = importlib.import_module(METHODS.load(name).__module__).Objective
    forward, file = objective.forward, tmp_path / "checkpoint.safetensors"
    expected = _method(name).fit(_pairs())
    for fatal in (2, 7, 5):
        left = [fatal]

        def dying(self: Any, batch: Any, left: list[int] = left) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            return forward(self, batch)

        monkeypatch.setattr(objective, "forward", dying)
        with pytest.raises(KeyboardInterrupt):
            _method(name).fit(_pairs(), checkpoint=file)
    monkeypatch.setattr(objective, "forward", forward)
    resumed = _method(name).fit(_pairs(), checkpoint=file)
    assert resumed.model.fingerprint == expected.model.fingerprint
    assert resumed.model.facts == expected.model.facts


@pytest.mark.parametrize("name", DEEP)
def test_learning_beats_chance_on_generated_pairs(name: str) -> None:
    pairs = generate_pairs(300, noise=0.5, seed=3)
    method = create(name, bits=32, hidden=64, epochs=12, batch=50, learning_rate=1e-3).fit(pairs)
    pictures, texts = (method.encode(pairs.features(m), m) for m in ("image", "text"))
    labels = np.asarray(pairs.labels)
    for query, database in ((pictures, texts), (texts, pictures)):
        ndcg = evaluate(query, database, labels, labels, k=50).ndcg
        assert ndcg.value > 1.2 * ndcg.chance


@pytest.mark.parametrize("name", DEEP)
def test_facts_say_how_many_epochs_were_made_and_what_the_original_made(name: str) -> None:
    facts = _method(name).fit(_pairs()).model.facts
    assert facts["epochs"] == 3
    assert facts["original_epochs"]
    assert facts["batch"] == 20


@pytest.mark.parametrize("name", ALIKE)
def test_every_method_has_the_same_choice_of_networks_and_schedules(name: str) -> None:
    pairs, options = _pairs(), {"scaling": "norm", "batch_norm": True, "dropout": 0.25, "schedule": "one-cycle"}
    method: Any = create(name, bits=5, hidden=8, **options)
    data = TrainingSet(np.asarray(pairs.images), np.asarray(pairs.texts), np.asarray(pairs.labels))
    objective = method._objective(data)
    for network in (objective.image, objective.text):
        assert (network.dropout, network.norm is not None) == (0.25, True)
        assert not network.scaling.offset.any()  # of standardised features it is the mean
    assert {stage.shape for stage in method._stages(80)} == {"one-cycle"}


def test_the_methods_that_are_tuned_alike_are_all_deep_ones_but_those_with_networks_of_their_own() -> None:
    assert {*ALIKE} >= {*DEEP, "classifier-itq", "rmsh"}
    assert not {"glint", "nest"} & {*ALIKE}


@pytest.mark.parametrize("name", ALIKE)
def test_dropout_and_normalisation_train_and_are_exported(name: str) -> None:
    pairs, options = _pairs(), {"bits": 8, "hidden": 8, "epochs": 2, "batch": 20, "dropout": 0.5, "batch_norm": True}
    one, two = (create(name, **options).fit(pairs).model for _ in range(2))
    assert one.fingerprint == two.fingerprint
    assert np.isfinite(one.project(pairs.features("text"), "text")).all()


def test_few_pairs_pass_more_often() -> None:
    facts = create("dcmh", bits=4, hidden=2, batch=40).fit(_pairs()).model.facts
    assert facts["epochs"] == 400  # of 2 steps


def test_an_objective_sweeps_over_pictures_and_texts_in_turn() -> None:
    pairs = _pairs()
    data = TrainingSet(np.asarray(pairs.images), np.asarray(pairs.texts), np.asarray(pairs.labels))
    objective = SweepingObjective(data, NetworkConfig(bits=3, hidden=4))
    objective.begin_epoch(0, data)
    assert (objective.network, objective.training) == (objective.image, True)
    torch.testing.assert_close(objective.outputs[1], objective.text(torch.from_numpy(data.texts).float()))
    with torch.no_grad():
        objective.image.output.bias.add_(1.0)
    moved = objective.image(torch.from_numpy(data.images[:9]).float())
    torch.testing.assert_close(objective.mean_output(torch.arange(9), moved), objective.outputs[0].mean(dim=0) + 1)
    objective.begin_epoch(1, data)
    assert objective.network is objective.text
    torch.testing.assert_close(objective.outputs[0, :9], moved)


def test_outputs_are_stored_without_dropout() -> None:
    pairs = _pairs()
    data = TrainingSet(np.asarray(pairs.images), np.asarray(pairs.texts), np.asarray(pairs.labels))
    objective = SweepingObjective(data, NetworkConfig(bits=3, hidden=4, dropout=0.9))
    objective.begin_epoch(0, data)
    torch.testing.assert_close(objective.outputs[0], objective.eval().image(torch.from_numpy(data.images).float()))
