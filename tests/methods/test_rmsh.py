"""RMSH: the objective against the paper's sums written as plain loops, its options, and what a fit leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rmsh.core.errors import ConfigError
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods.rmsh import RMSH, Objective, RMSHConfig, positive_weights
from rmsh.training.loop import TrainingSet
from rmsh.training.losses import draw

DELTA = 3.0
ROWS = np.arange(7)


def _data(n: int = 7) -> TrainingSet:
    pairs = generate_pairs(40, classes=6, image_dim=5, text_dim=4, seed=1)
    return TrainingSet(np.asarray(pairs.images)[:n], np.asarray(pairs.texts)[:n], np.asarray(pairs.labels)[:n])


def _objective(**options: Any) -> Objective:
    given = {"delta": DELTA, "positive_weight": 4.0, "dropout": 0.0, "batch_norm": False, "triplets_per_item": 2}
    torch.manual_seed(0)
    return Objective(_data(), RMSHConfig(**{"bits": 5, "hidden": 6, **given, **options}))


def _terms(objective: Objective) -> dict[str, float]:
    torch.manual_seed(9)
    return {name: term.item() for name, term in objective(_data().batch(ROWS)).terms.items()}


def _triplet(z: list[np.ndarray], tags: list[set[int]], unit: float, literal: bool = False) -> float:
    """L_t of three codes with their tag sets, as the paper words it."""
    star = max(range(3), key=lambda i: (len(tags[i]), -i))
    others = [i for i in range(3) if i != star]

    def s(i: int) -> float:
        return len(tags[star] & tags[i]) / max(len(tags[star]), len(tags[i]), 1)

    near, far = sorted(others, key=lambda i: -s(i))
    d_near, d_far = (unit * float(np.square(z[star] - z[i]).sum()) for i in (near, far))
    loss = 0.0
    if s(near) > 0 and s(far) > 0 and (literal or s(near) > s(far)):
        loss += max(0.0, d_near - d_far + DELTA * (s(near) - s(far)))
    loss += max(0.0, DELTA - d_near) * (s(near) == 0)
    return loss + max(0.0, DELTA - d_far) * (s(far) == 0)


def _codes(objective: Objective) -> tuple[np.ndarray, np.ndarray, list[set[int]]]:
    data = _data()
    batch = data.batch(ROWS)
    tags = [set(np.flatnonzero(row).tolist()) for row in data.labels]
    return objective.image(batch.images).detach().numpy(), objective.text(batch.texts).detach().numpy(), tags


@pytest.mark.parametrize("distance", ["hamming", "raw"])
@pytest.mark.parametrize("mask_equal", [True, False])
def test_triplet_terms_equal_the_sums_of_the_paper(distance: str, mask_equal: bool) -> None:
    options = {"distance": distance, "mask_equal": mask_equal, "inter_anchor": "max_tags"}
    objective = _objective(**options, pseudo_codes=False, lambda1=0.5, lambda2=2.0)
    terms = _terms(objective)
    x, y, tags = _codes(objective)
    unit = 0.25 if distance == "hamming" else 1.0
    torch.manual_seed(9)
    triplets = draw(7, 2).T.tolist()
    intra = inter = 0.0
    for t in triplets:
        own = [tags[i] for i in t]
        for this, other in ((x, y), (y, x)):
            intra += _triplet([this[i] for i in t], own, unit, literal=not mask_equal)
            for place in range(3):
                mixed = [(other if p == place else this)[i] for p, i in enumerate(t)]
                inter += _triplet(mixed, own, unit, literal=not mask_equal)
    assert terms["intra"] == pytest.approx(0.5 * intra / len(triplets), rel=1e-4)
    assert terms["inter"] == pytest.approx(2.0 * inter / len(triplets), rel=1e-4)


def _bce(objective: Objective, z: np.ndarray, tags: set[int]) -> float:
    logits = objective.head(torch.from_numpy(z)[None, None]).detach().numpy()[0, 0].astype(np.float64)
    p = 1 / (1 + np.exp(-logits))
    return float(sum(-4.0 * np.log(p[c]) if c in tags else -np.log(1 - p[c]) for c in range(6)))


def test_classification_and_quantisation_count_each_item_three_times() -> None:
    objective = _objective(lambda4=0.2)
    terms = _terms(objective)
    x, y, tags = _codes(objective)
    b = np.where(x + y >= 0, 1.0, -1.0)
    classes = sum(_bce(objective, z[i], tags[i]) for z in (x, y) for i in range(7))
    quantised = float(np.square(x - b).sum() + np.square(y - b).sum())
    assert terms["classification"] == pytest.approx(3 * classes / 7, rel=1e-4)
    assert terms["quantisation"] == pytest.approx(3 * 0.2 * quantised / 7, rel=1e-4)


@pytest.mark.parametrize("mask_empty", [True, False])
def test_pseudo_codes_have_the_union_and_the_intersection_of_labels(mask_empty: bool) -> None:
    objective = _objective(mask_empty=mask_empty, lambda1=0.5, lambda3=0.3)
    terms = _terms(objective)
    x, y, tags = _codes(objective)
    torch.manual_seed(9)
    partner = draw(7, 2)[1, :7].tolist()
    classes = margins = 0.0
    for z in (x, y):
        for i, j in enumerate(partner):
            joined = torch.from_numpy(np.concatenate([z[i], z[j]]))[None, None]
            z4 = torch.tanh(objective.union(joined)).detach().numpy()[0, 0]
            z5 = torch.tanh(objective.intersection(joined)).detach().numpy()[0, 0]
            union, shared = tags[i] | tags[j], tags[i] & tags[j]
            classes += _bce(objective, z4, union)
            margins += _triplet([z4, z[i], z[j]], [union, tags[i], tags[j]], 0.25)
            if shared or not mask_empty:
                classes += _bce(objective, z5, shared)
                margins += _triplet([z[i], z[j], z5], [tags[i], tags[j], shared], 0.25)
    assert terms["pseudo classification"] == pytest.approx(0.3 * classes / 7, rel=1e-4)
    assert terms["pseudo intra"] == pytest.approx(0.5 * margins / 7, rel=1e-4)


def test_the_share_of_empty_intersections_is_watched() -> None:
    torch.manual_seed(9)
    partner = draw(7, 2)[1, :7].tolist()
    labels = _data().labels
    empty = np.mean([not (labels[i] & labels[j]).any() for i, j in enumerate(partner)])
    objective = _objective()
    torch.manual_seed(9)
    assert objective(_data().batch(ROWS)).watched["empty"] == pytest.approx(empty)


def test_with_the_query_as_anchor_only_distances_across_modalities_count() -> None:
    objective = _objective(inter_anchor="query", pseudo_codes=False, lambda2=1.0)
    x, y, tags = _codes(objective)
    torch.manual_seed(9)
    triplets = draw(7, 2).T.tolist()
    total = 0.0
    for t in triplets:
        for this, other in ((x, y), (y, x)):
            for place in range(3):
                a, (b, c) = t[place], [i for p, i in enumerate(t) if p != place]
                s = {i: len(tags[a] & tags[i]) / max(len(tags[a]), len(tags[i])) for i in (b, c)}
                near, far = sorted((b, c), key=lambda i: -s[i])
                d = {i: 0.25 * float(np.square(other[a] - this[i]).sum()) for i in (b, c)}
                if s[near] > s[far] > 0:
                    total += max(0.0, d[near] - d[far] + DELTA * (s[near] - s[far]))
                total += sum(max(0.0, DELTA - d[i]) for i in (b, c) if s[i] == 0)
    assert _terms(objective)["inter"] == pytest.approx(total / len(triplets), rel=1e-4)


@pytest.mark.parametrize(
    ("ablation", "missing"),
    [
        ("triplet", {"intra", "inter", "pseudo intra"}),
        ("classification", {"classification", "pseudo classification"}),
        ("pseudo_codes", {"pseudo intra", "pseudo classification"}),
    ],
)
def test_an_ablation_leaves_out_its_terms_and_nothing_else(ablation: str, missing: set[str]) -> None:
    whole, without = _terms(_objective()), _terms(_objective(**{ablation: False}))
    assert set(whole) - set(without) == missing
    assert all(without[name] == pytest.approx(whole[name]) for name in without)


def test_the_mean_over_classes_divides_by_their_number() -> None:
    summed, mean = _terms(_objective()), _terms(_objective(class_reduction="mean"))
    assert mean["classification"] == pytest.approx(summed["classification"] / 6, rel=1e-5)


def test_separate_heads_and_pseudo_networks_have_a_map_for_each_modality() -> None:
    objective = _objective(heads="each", pseudo_networks="each")
    assert (len(objective.head.maps), len(objective.union.maps)) == (2, 2)
    both = torch.randn(2, 3, 5)
    expected = torch.stack([objective.head.maps[0](both[0]), objective.head.maps[1](both[1])])
    assert torch.equal(objective.head(both), expected)


def test_codes_updated_by_epoch_are_those_of_the_last_visit() -> None:
    objective = _objective(code_update="epoch", lambda4=1.0)
    first = _terms(objective)["quantisation"]
    x, y, _ = _codes(objective)
    old = np.where(x + y >= 0, 1.0, -1.0)
    with torch.no_grad():
        objective.image.output.weight.neg_()
        objective.text.output.weight.neg_()
    x, y, _ = _codes(objective)
    expected = 3 * float(np.square(x - old).sum() + np.square(y - old).sum()) / 7
    assert _terms(objective)["quantisation"] == pytest.approx(expected, rel=1e-4)
    assert first < expected


def test_weights_of_positives_follow_the_label_frequencies_when_none_is_given() -> None:
    labels = np.array([[1, 1], [1, 0], [1, 0], [1, 0], [1, 0]], dtype=np.uint8)
    assert positive_weights(labels, None).tolist() == pytest.approx([1.0, 2.0])  # sqrt(0.8 / 0.2)
    assert positive_weights(labels, 30.0).tolist() == [30.0, 30.0]


def test_the_presets_are_what_the_paper_prints() -> None:
    paper, literal = RMSH(preset="paper").config, RMSH(preset="paper-literal").config
    assert (paper.lambda1, paper.lambda2, paper.lambda3, paper.lambda4) == (0.01, 0.1, 0.1, 0.1)
    assert (paper.epochs, paper.batch, paper.learning_rate, paper.positive_weight) == (50, 128, 1e-3, 30)
    assert (paper.activation, paper.distance, paper.mask_empty) == ("tanh", "hamming", True)
    assert (literal.distance, literal.mask_empty, literal.mask_equal) == ("raw", False, False)


@pytest.mark.parametrize(
    ("items", "batch", "epochs"), [(60_000, 256, 10), (8192, 256, 25), (1600, 100, 50), (200, 32, 134), (20, 20, 800)]
)
def test_few_pairs_are_learned_from_in_smaller_batches_and_more_epochs(items: int, batch: int, epochs: int) -> None:
    schedule = RMSH()._stages(items)[0]
    assert (schedule.batch, schedule.epochs) == (batch, epochs)
    given = RMSH(batch=64, epochs=3)._stages(items)[0]
    assert (given.batch, given.epochs) == (min(64, items), 3)


def test_a_delta_longer_than_the_code_is_refused() -> None:
    with pytest.raises(ConfigError, match="delta"):
        RMSH(bits=16, delta=17)


def test_delta_comes_from_the_bounds_with_a_reason_unless_it_is_given() -> None:
    pairs = generate_pairs(60)
    quick: dict[str, Any] = {"bits": 32, "epochs": 1, "hidden": 4}
    assert "reason" in RMSH(**quick).fit(pairs).model.facts["delta"]
    assert RMSH(**quick, delta=5).fit(pairs).model.facts["delta"]["delta"] == 5


def test_learned_codes_rank_far_better_than_chance(tmp_path: Path) -> None:
    from rmsh.metrics.evaluate import evaluate

    pairs = generate_pairs(1200, seed=3)
    train, query = pairs.take(np.arange(1000)), pairs.take(np.arange(1000, 1200))
    method = RMSH(bits=32, epochs=10, batch=128, hidden=128).fit(train, checkpoint=tmp_path / "c.safetensors")
    database = method.encode(train.texts, "text", ids=train.ids)
    asked = method.encode(query.images, "image", ids=query.ids)
    scores = evaluate(asked, database, query.labels, train.labels, k=50)
    assert scores.ndcg.value > 2 * scores.ndcg.chance
