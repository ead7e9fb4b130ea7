"""NEST: its targets, prefixes, and what it learns from labels, pairs and single items."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from rmsh.codes import Codes
from rmsh.core.errors import DataError
from rmsh.core.progress import Progress
from rmsh.data.pairs import Pairs
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods import create
from rmsh.methods.nest import NEST, Objective, Targets, joint
from rmsh.metrics.evaluate import evaluate
from rmsh.training.loop import TrainingSet

FEW = {"epochs": 3, "hidden": 32, "width": 32, "embedding": 16, "batch": 32}


def _pairs(n: int = 240) -> Pairs:
    return generate_pairs(n, image_dim=20, text_dim=10)


def _ndcg(method: NEST, pairs: Pairs, bits: int) -> float:
    image, text = (method.project(pairs.features(m), m)[:, :bits] for m in ("image", "text"))
    labels = np.asarray(pairs.labels)
    return evaluate(Codes.from_values(image), Codes.from_values(text), labels, labels, k=10).ndcg.value


def _targets(labels: list[list[int]]) -> Targets:
    features = np.eye(len(labels), dtype=np.float32)
    data = TrainingSet(features, features, np.array(labels, np.uint8), np.ones((2, len(labels)), bool))
    rows = torch.arange(len(labels))
    weights = torch.tensor([float(any(row)) for row in labels])
    return Targets(data.batch(np.arange(len(labels))), weights, rows, rows, gain=2.0)


def _similarity(queries: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
    """Minus the distances in units of the temperature, for codes of 24 bits: 2 bits."""
    return queries @ items.T / 4


def test_the_target_of_labelled_items_mixes_gains_and_the_counterpart() -> None:
    targets = _targets([[1, 1, 0], [1, 0, 0], [0, 0, 1]])
    # At equal distances every item has the probability 1/3, and every target sums to 1, in both directions.
    equal = targets.loss(torch.zeros(3, 24), torch.zeros(3, 24), own=0.4).item()
    assert equal == pytest.approx(2 * np.log(3), abs=1e-6)
    # The first item shares 2 labels with itself and 1 with the second: gains 3 and 1, so 0.75 and 0.25 of what the
    # counterpart leaves. To the second item both are alike.
    wanted = torch.tensor([[0.85, 0.15, 0.0], [0.3, 0.7, 0.0], [0.0, 0.0, 1.0]])
    generator = torch.Generator().manual_seed(0)
    images, texts = torch.rand(2, 3, 24, generator=generator) * 2 - 1
    logits = _similarity(images, texts)
    expected = -(wanted * (logits.log_softmax(dim=1) + logits.T.log_softmax(dim=1))).sum() / 3
    assert targets.loss(images, texts, own=0.4).item() == pytest.approx(expected.item(), abs=1e-5)


def test_unlabelled_items_are_hidden_from_labelled_queries_and_follow_the_texts_themselves() -> None:
    targets = _targets([[1], [1], [0]])
    generator = torch.Generator().manual_seed(0)
    images, texts = torch.rand(2, 3, 24, generator=generator) * 2 - 1
    logits = _similarity(images, texts)
    similar = (torch.eye(3)[2] / 0.15).softmax(dim=0)
    last = 0.6 * (0.5 * similar + 0.5 * torch.eye(3)[2]) + 0.4 * torch.eye(3)[2]
    expected = 0.0
    for scores in (logits, logits.T):
        known = scores[:2, :2].log_softmax(dim=1)  # whether the third item suits the others is not known
        wanted = 0.6 * torch.full((2, 2), 0.5) + 0.4 * torch.eye(2)
        expected -= ((wanted * known).sum() + (last * scores[2].log_softmax(dim=0)).sum()).item() / 3
    assert targets.loss(images, texts, own=0.4).item() == pytest.approx(expected, abs=1e-5)


def test_the_exported_layers_equal_the_trained_networks() -> None:
    pairs = _pairs()
    method = NEST(bits=32, **FEW)
    labels = np.asarray(pairs.labels)
    data = TrainingSet(pairs.features("image"), pairs.features("text"), labels, np.ones((2, len(pairs)), bool))
    objective = method._objective(data)
    with torch.no_grad():
        for _ in range(3):  # running statistics that differ from their start
            objective.image_network(torch.from_numpy(np.asarray(pairs.images)) * 2 + 1)
        objective.eval()
        outputs = objective.image_network(torch.from_numpy(np.asarray(pairs.images)))
        expected = objective.image_coder(joint(outputs, labels.shape[1])).numpy()
    np.testing.assert_allclose(objective.export()["image"](pairs.features("image")), expected, atol=1e-4)


def _untrained(items: int, *, classes: int = 2) -> tuple[Objective, TrainingSet]:
    """An objective of 3 + 3 epochs and its data."""
    features = np.random.default_rng(0).random((items, 4), np.float32)
    data = TrainingSet(features, features, np.ones((items, classes), np.uint8), np.ones((2, items), bool))
    return NEST(bits=32, check_labels=False, **FEW)._objective(data), data


@pytest.mark.parametrize(
    ("items", "last"),
    # In the middle of 3 epochs 5/6, 1/2 and 1/6 of the stage are left; dropout falls over the last 80 % of it.
    [(1000, [1.0, 1.0, 1.0]), (2000, [1.0, 1.0, 1.0]), (6000, [1.0, 0.625, 0.5]), (10_000, [1.0, 0.625, 5 / 24])],
)
def test_the_fewer_labelled_items_there_are_the_less_dropout_falls(items: int, last: list[float]) -> None:
    objective, data = _untrained(items)
    networks, shares = (objective.image_network, objective.text_network), []
    for epoch in range(3):
        objective.begin_epoch(epoch, data)
        shares.append([network.dropout / network.initial_dropout for network in networks])
    np.testing.assert_allclose(shares, np.transpose([last, last]))


@pytest.mark.parametrize(
    ("items", "classes", "drawn_again"), [(2000, 2, True), (9000, 2, True), (10_000, 2, False), (2000, 0, False)]
)
def test_only_coders_of_few_labelled_items_receive_outputs_with_dropout(
    items: int, classes: int, *, drawn_again: bool
) -> None:
    objective, data = _untrained(items, classes=classes)
    before = {name: value.clone() for name, value in objective.image_network.state_dict().items()}
    outputs = []
    for epoch in (3, 4):  # of the second stage
        objective.begin_epoch(epoch, data)
        assert objective.outputs is not None
        outputs.append(objective.outputs.clone())
    assert torch.equal(*outputs) != drawn_again
    assert all(torch.equal(value, before[name]) for name, value in objective.image_network.state_dict().items())
    assert objective.image_network.training
    assert objective.image_network.norm.training


def test_a_run_of_few_labelled_pairs_resumed_in_either_stage_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    pairs, options = _pairs(3000), {**FEW, "bits": 32, "batch": 300}
    whole = NEST(**options).fit(pairs).model
    for stop in (2, 5):  # of 3 + 3 epochs
        file = tmp_path / f"{stop}.safetensors"

        def interrupt(progress: Progress, stop: int = stop) -> None:
            if progress.stage == "train" and progress.done == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            NEST(**options).fit(pairs, checkpoint=file, on_progress=interrupt)
        assert NEST(**options).fit(pairs, checkpoint=file).model.fingerprint == whole.fingerprint


def test_prefixes_of_a_code_rank_nearly_as_well_as_the_whole() -> None:
    pairs = _pairs(600)
    method = NEST(bits=128, seed=1, epochs=30, hidden=64, width=64, batch=32, dropout=0.1).fit(pairs)
    whole, half, quarter = (_ndcg(method, pairs, bits) for bits in (128, 64, 32))
    assert method.model.facts["prefixes"] == [64, 32]
    assert min(half, quarter) > 0.8 * whole
    assert whole > 0.5


def test_it_learns_from_pairs_without_a_single_label() -> None:
    pairs = _pairs(600)
    method = NEST(bits=64, epochs=30, hidden=64, width=64, batch=32, dropout=0.1).fit(
        replace(pairs, labels=None, class_names=())
    )
    labels = np.asarray(pairs.labels)
    chance = evaluate(
        Codes.from_values(np.random.default_rng(0).standard_normal((600, 64)).astype(np.float32)),
        Codes.from_values(np.random.default_rng(1).standard_normal((600, 64)).astype(np.float32)),
        labels,
        labels,
        k=10,
    ).ndcg.value
    assert _ndcg(method, pairs, 64) > chance + 0.25
    assert method.model.facts["trusted"] is None


def test_it_learns_from_single_items_with_labels_and_pairs_without_in_one_run() -> None:
    pairs = _pairs(400)
    labels = np.asarray(pairs.labels).copy()
    labels[::2] = 0
    has_text = np.ones(400, bool)
    has_text[1::4] = False
    mixed = replace(pairs, labels=labels, has_text=has_text)
    method = NEST(bits=32, **FEW).fit(mixed)
    assert method.model.facts["items"] == 400
    assert method.encode(pairs.features("text"), "text").bits == 32


def test_single_items_without_labels_are_skipped_and_counted() -> None:
    pairs = _pairs(60)
    has_text = np.arange(60) >= 20
    method = NEST(bits=32, **FEW).fit(replace(pairs, labels=None, class_names=(), has_text=has_text))
    assert method.model.facts["skipped"]["alone and without labels"] == 20
    with pytest.raises(DataError, match="20 alone and without labels"):
        NEST(bits=32, **FEW).fit(replace(pairs, labels=None, class_names=(), has_text=has_text), strict=True)


def test_labels_count_half_as_much_as_the_rest_of_the_embedding_of_a_model() -> None:
    pairs = _pairs(60)
    model = create("nest", bits=32, **FEW).fit(pairs).model
    vectors, classes = model.embed(pairs.features("image"), "image"), np.asarray(pairs.labels).shape[1]
    for block, square in ((vectors[:, :classes], 0.5), (vectors[:, classes:], 1.0)):
        np.testing.assert_allclose(np.square(block).sum(axis=1), square, atol=1e-5)
