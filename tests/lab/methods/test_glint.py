"""GLINT: its loss by hand, the functions it exports, its schedule, codes that rank."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lab.methods.glint import GLINT, GLINTConfig, Objective, bit_distances, listwise_loss
from rmsh.codes import Codes, hamming
from rmsh.compare.measure import with_noisy_labels
from rmsh.compare.run import Run
from rmsh.compare.runner import make_runs
from rmsh.core.progress import OnProgress, Progress
from rmsh.core.types import BitArray, FloatArray, IntArray, ScoreArray
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.metrics.evaluate import evaluate
from rmsh.training.loop import Schedule, TrainingSet, train
from rmsh.training.losses import target_shares


def _objective(**options: object) -> tuple[Objective, TrainingSet]:
    pairs = generate_pairs(30, image_dim=5, text_dim=4)
    data = TrainingSet(np.asarray(pairs.images), np.asarray(pairs.texts), np.asarray(pairs.labels))
    torch.manual_seed(0)
    config = GLINTConfig.parse({"bits": 8, "hidden": 6, "width": 7, "dropout": 0.0, **options})
    return Objective(data, config, classifier_epochs=1), data


def _asked(
    distances: ScoreArray,
    labels: IntArray,
    temperature: float,
    gain: float,
    *,
    trust: ScoreArray | None = None,
    asked: IntArray | None = None,
) -> float:
    """The listwise loss of all rows, with loops; those that are asked are those that ask, or others."""
    losses = []
    others = labels if asked is None else asked
    believed, believed_others = (np.ones(len(those)) if trust is None else trust for those in (labels, others))
    for row, own, weight in zip(distances, labels, believed, strict=True):
        gains = [t * (gain ** int(own @ other) - 1) for t, other in zip(believed_others, others, strict=True)]
        shares = [math.exp(-d / temperature) for d in row]
        wanted = sum(gains) or 1  # who shares nothing with anybody asks for nothing
        loss = -sum(g / wanted * math.log(s / sum(shares)) for g, s in zip(gains, shares, strict=True))
        losses.append(weight * loss)
    return float(np.mean(losses))


def _probabilities(objective: Objective, data: TrainingSet) -> torch.Tensor:
    batch = data.batch(np.arange(30))
    return torch.sigmoid(torch.stack([objective.image(batch.images), objective.text(batch.texts)])).detach()


def _codes(objective: Objective, data: TrainingSet) -> tuple[FloatArray, FloatArray]:
    image, text = _probabilities(objective, data).sqrt()
    return objective.image_coder(image).detach().numpy(), objective.text_coder(text).detach().numpy()


def test_the_classifiers_minimise_the_cross_entropy_of_the_labels() -> None:
    objective, data = _objective()
    batch, p = data.batch(np.arange(30)), _probabilities(*_objective())
    wanted = -(batch.labels * p.log() + (1 - batch.labels) * (1 - p).log()).sum(dim=(1, 2)) / 30
    terms = objective(batch).terms
    assert float(terms["image labels"].detach()) == pytest.approx(float(wanted[0]), rel=1e-4)
    assert float(terms["text labels"].detach()) == pytest.approx(float(wanted[1]), rel=1e-4)


def test_the_coders_minimise_the_listwise_loss_of_codes_of_probabilities() -> None:
    objective, data = _objective(gain=3.0, temperature=1.5)
    objective.begin_epoch(1, data)
    terms = {name: float(term.detach()) for name, term in objective(data.batch(np.arange(30))).terms.items()}
    image, text = (codes.astype(np.float64) for codes in _codes(objective, data))
    assert objective.image_coder.steepness == 1 + 15 * 0.5 / 0.8  # the middle of a stage of one epoch
    distances, labels = (8 - image @ text.T) / 2, data.labels.astype(int)
    assert terms["image to text"] == pytest.approx(_asked(distances, labels, 1.5, 3.0), rel=1e-3)
    assert terms["text to image"] == pytest.approx(_asked(distances.T, labels, 1.5, 3.0), rel=1e-3)


def test_the_coders_leave_the_classifiers_alone() -> None:
    objective, data = _objective()
    objective.begin_epoch(1, data)
    sum(objective(data.batch(np.arange(30))).terms.values()).backward()
    learning = {name.split(".")[0] for name, p in objective.named_parameters() if p.grad is not None}
    assert learning == {"image_coder", "text_coder"}


def test_the_exported_functions_are_the_networks() -> None:
    objective, data = _objective()
    objective.begin_epoch(1, data)
    objective(data.batch(np.arange(30)))  # moves the running statistics of the normalisation
    objective.eval()
    image, text = _codes(objective, data)
    functions = objective.export()
    np.testing.assert_allclose(functions["image"](data.images), image, atol=1e-5)
    np.testing.assert_allclose(functions["text"](data.texts), text, atol=1e-5)


def test_a_steep_end_leaves_little_to_the_sign() -> None:
    pairs = generate_pairs(300)
    ends = {}
    for steepness in (1.0, 16.0):
        method = GLINT(bits=16, epochs=12, hidden=32, batch=32, steepness=steepness).fit(pairs)
        ends[steepness] = float(np.mean(1 - np.abs(method.project(pairs.images, "image"))))
    assert ends[16.0] < 0.5 * ends[1.0]


def test_every_term_falls_in_its_stage() -> None:
    history = GLINT(bits=16, epochs=12, hidden=32, batch=32).fit(generate_pairs(300)).model.facts["history"]
    for first, last, names in ((0, 11, ("image labels", "text labels")), (12, 23, ("image to text", "text to image"))):
        assert history[first].keys() == set(names)
        assert all(history[last][name] < 0.95 * history[first][name] for name in names)


def _checked(*, noise: float, **options: object) -> tuple[Objective, BitArray]:
    """The first stage on labels of which a share is another item's; and which labels are right."""
    pairs = generate_pairs(2000, noise=0.5)
    given = np.asarray(with_noisy_labels(pairs, noise, seed=0).labels)
    data = TrainingSet(np.asarray(pairs.images), np.asarray(pairs.texts), given)
    torch.manual_seed(0)
    config = GLINTConfig.parse({"bits": 8, "hidden": 64, "dropout": 0.1, **options})
    objective = Objective(data, config, classifier_epochs=20)
    train(objective, data, stages=[Schedule(20, 64, 5e-3, "one-cycle")], seed=0)
    return objective, (given == np.asarray(pairs.labels)).all(axis=1)


def test_labels_of_another_item_are_found_out_early_and_right_ones_are_believed() -> None:
    objective, right = _checked(noise=0.3)
    trust = objective.label_weights.numpy()
    assert trust[right].mean() > 0.9
    assert trust[~right].mean() < 0.3
    assert _checked(noise=0.0)[0].label_weights.mean() > 0.97


def test_labels_are_all_believed_where_nobody_checks_them() -> None:
    assert (_checked(noise=0.3, check_labels=False)[0].label_weights == 1).all()


def test_items_count_as_far_as_their_labels_are_believed() -> None:
    objective, data = _objective(gain=3.0, temperature=1.5)
    batch, p = data.batch(np.arange(30)), _probabilities(objective, data)
    trust = torch.linspace(0.1, 1, 30)
    objective.label_weights.copy_(trust)
    wrong = -(batch.labels * p.log() + (1 - batch.labels) * (1 - p).log()).sum(dim=2)
    named = objective(batch).terms["text labels"].detach()
    assert float(named) == pytest.approx(float((trust * wrong[1]).mean()), rel=1e-4)
    objective.begin_epoch(1, data)
    asked = objective(batch).terms["image to text"].detach()
    image, text = (codes.astype(np.float64) for codes in _codes(objective, data))
    labels = data.labels.astype(int)
    wanted = _asked((8 - image @ text.T) / 2, labels, 1.5, 3.0, trust=trust.double().numpy())
    assert float(asked) == pytest.approx(wanted, rel=1e-3)


def _with_some_alone() -> tuple[Objective, TrainingSet, BitArray, BitArray]:
    """An objective over items of which the first ten have a picture alone, and the last five a text alone."""
    objective, data = _objective(gain=3.0, temperature=1.5)
    has_image, has_text = np.arange(30) < 25, np.arange(30) >= 10
    return objective, replace(data, present=np.stack([has_image, has_text])), has_image, has_text


def test_classifiers_learn_from_what_is_there() -> None:
    objective, data, has_image, _ = _with_some_alone()
    batch, p = data.batch(np.arange(30)), _probabilities(objective, data)
    wrong = -(batch.labels * p.log() + (1 - batch.labels) * (1 - p).log()).sum(dim=2)
    named = float(objective(batch).terms["image labels"].detach())
    assert named == pytest.approx(float(wrong[0, has_image].sum() / 30), rel=1e-4)


def test_pictures_and_texts_ask_each_other_though_not_of_the_same_items() -> None:
    objective, data, has_image, has_text = _with_some_alone()
    objective.begin_epoch(1, data)
    terms = {name: float(term.detach()) for name, term in objective(data.batch(np.arange(30))).terms.items()}
    roots, labels = _probabilities(objective, data).sqrt(), data.labels.astype(int)
    image = objective.image_coder(roots[0, has_image]).detach().numpy().astype(np.float64)
    text = objective.text_coder(roots[1, has_text]).detach().numpy().astype(np.float64)
    distances, pictured, told = (8 - image @ text.T) / 2, labels[has_image], labels[has_text]
    assert terms["image to text"] == pytest.approx(_asked(distances, pictured, 1.5, 3.0, asked=told), rel=1e-3)
    assert terms["text to image"] == pytest.approx(_asked(distances.T, told, 1.5, 3.0, asked=pictured), rel=1e-3)


def test_a_batch_with_hardly_a_text_teaches_the_coders_nothing() -> None:
    objective, data, *_ = _with_some_alone()
    objective.begin_epoch(1, data)
    terms = objective(data.batch(np.arange(11))).terms
    torch.stack(list(terms.values())).sum().backward()
    assert all(parameter.grad is None for parameter in objective.parameters())


def test_pictures_and_texts_of_different_items_meet_in_their_labels() -> None:
    pairs = generate_pairs(600)
    has_image = np.arange(600) % 2 == 0
    method = GLINT(bits=32, epochs=10, batch=64, hidden=64).fit(
        replace(pairs, has_image=has_image, has_text=~has_image)
    )
    assert method.model.facts["items"] == 600
    codes = {m: method.encode(pairs.features(m), m) for m in ("image", "text")}
    scores = evaluate(codes["image"], codes["text"], pairs.labels, pairs.labels, k=50)
    assert scores.ndcg.value > 1.4 * scores.ndcg.chance


def test_a_run_resumed_in_either_stage_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    pairs, options = generate_pairs(90, image_dim=6, text_dim=5), {"bits": 8, "epochs": 3, "hidden": 8, "batch": 16}
    whole = GLINT(**options).fit(pairs).model
    for stop in (2, 5, 6):
        file = tmp_path / f"{stop}.safetensors"
        with pytest.raises(KeyboardInterrupt):
            GLINT(**options).fit(pairs, checkpoint=file, on_progress=_interrupt_after(stop))
        resumed = GLINT(**options).fit(pairs, checkpoint=file).model
        assert resumed.fingerprint == whole.fingerprint


def _interrupt_after(epochs: int) -> OnProgress:
    def interrupt(progress: Progress) -> None:
        if progress.done == epochs:
            raise KeyboardInterrupt

    return interrupt


def test_few_pairs_pass_more_often_in_smaller_batches() -> None:
    few, many = GLINT()._stages(200), GLINT()._stages(100_000)
    assert [(stage.batch, stage.epochs) for stage in few] == [(32, 134)] * 2
    assert [(stage.batch, stage.epochs) for stage in many] == [(256, 16)] * 2


def test_a_thousand_classes_most_of_which_never_occur_are_learned() -> None:
    pairs = generate_pairs(60, image_dim=6, text_dim=5)
    labels = np.zeros((60, 1000), np.uint8)
    labels[:, 500:512] = np.asarray(pairs.labels)
    model = GLINT(bits=16, epochs=2, hidden=8, batch=20).fit(replace(pairs, labels=labels, class_names=())).model
    assert np.isfinite(model.project(pairs.features("text"), "text")).all()


@pytest.mark.parametrize("bits", [16, 64])
def test_codes_rank_far_above_chance(bits: int) -> None:
    pairs = generate_pairs(600)
    method = GLINT(bits=bits, epochs=10, batch=64, hidden=64).fit(pairs)
    codes = {m: method.encode(pairs.features(m), m) for m in ("image", "text")}
    scores = evaluate(codes["image"], codes["text"], pairs.labels, pairs.labels, k=50)
    assert scores.ndcg.value > 1.5 * scores.ndcg.chance
    assert scores.map.value > 1.3 * scores.map.chance


@pytest.mark.slow
def test_a_run_in_a_process_of_its_own_knows_the_method(tmp_path: Path) -> None:
    run = Run("few", "glint", 8, options={"epochs": 1, "hidden": 8})
    (result,) = make_runs([run], tmp_path, data={"few": "generated:60"})
    assert result is not None
    assert (result["status"], result["method_version"]) == ("done", GLINT.version)


def _random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def test_distances_of_signs_are_hamming_distances() -> None:
    values = torch.where(_random(9, 20) >= 0, 1.0, -1.0)
    packed = Codes.from_values(values.numpy()).packed
    np.testing.assert_array_equal(bit_distances(values[:4], values[4:]).numpy(), hamming(packed[:4], packed[4:]))


def test_the_loss_is_the_cross_entropy_written_with_loops() -> None:
    distances, shares = 10 * _random(3, 5).abs(), torch.softmax(_random(3, 5), dim=1)
    total = 0.0
    for row, wanted in zip(distances.tolist(), shares.tolist(), strict=True):
        weights = [math.exp(-d / 2.5) for d in row]
        total -= sum(share * math.log(w / sum(weights)) for share, w in zip(wanted, weights, strict=True))
    assert listwise_loss(distances, shares, temperature=2.5).item() == pytest.approx(total / 3, rel=1e-5)


def test_the_loss_is_least_where_distances_are_logarithms_of_the_gains() -> None:
    shares = target_shares(torch.tensor([[3.0, 2.0, 1.0]]), base=4.0)
    best = listwise_loss(-4 * shares.log(), shares, temperature=4.0)
    assert best.item() == pytest.approx(-(shares * shares.log()).sum().item(), rel=1e-5)
    for shift in 3 * _random(20, 1, 3):
        assert listwise_loss(-4 * shares.log() + shift, shares, temperature=4.0) >= best


def test_an_item_that_asks_for_nothing_has_no_gradient() -> None:
    shares, z = torch.tensor([[0.0, 0.0], [1.0, 0.0]]), _random(2, 2).requires_grad_()
    listwise_loss(z, shares, temperature=1.0).backward()
    assert z.grad is not None
    assert z.grad[0].tolist() == [0.0, 0.0]
    assert z.grad[1].abs().min() > 0
