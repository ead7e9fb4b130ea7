"""A run end to end on tiny data: the content of its result, and that it agrees with the parts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from rmsh.compare.measure import measure, parts_of, split_of
from rmsh.compare.result import changed_options, stale_reason, unpack_scores
from rmsh.compare.run import Run
from rmsh.core.errors import ConfigError, DataError
from rmsh.data.open import Opened, open_pairs
from rmsh.data.splits import fingerprint_ids
from rmsh.methods import create
from rmsh.metrics import evaluate
from rmsh.metrics.counterparts import rank_codes, recall_at


@pytest.fixture(scope="module")
def opened() -> Opened:
    return open_pairs("generated:200")


def test_the_scores_are_those_of_the_method_on_the_split(opened: Opened) -> None:
    assert opened.split is not None
    result = measure(Run("generated", "scm", 16), opened)
    train, query = opened.pairs.take(opened.split.train), opened.pairs.take(opened.split.query)
    method = create("scm", bits=16).fit(train)
    codes = method.encode(query.features("image"), "image"), method.encode(train.features("text"), "text")
    expected = evaluate(*codes, query.labels, train.labels, per_query=True)
    found = result["scores"]["i2t"]
    assert found["ndcg@500"]["value"] == pytest.approx(expected.ndcg.value, abs=1e-5)
    assert found["map@all"]["chance"] == pytest.approx(expected.map.chance, abs=1e-5)
    assert np.nanmean(unpack_scores(result["per_query"]["i2t"]["ndcg@500"])) == pytest.approx(
        expected.ndcg.value, abs=1e-3
    )


def test_relaxed_scores_are_those_of_the_cosine_of_the_values_before_the_sign(opened: Opened) -> None:
    run = Run("generated", "scm", 4, protocol="unseen")
    result, parts = measure(run, opened), parts_of(run, opened)
    method = create("scm", bits=4).fit(parts.train)
    values = [method.project(p.features(m), m) for p, m in ((parts.query, "image"), (parts.database, "text"))]
    units = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in values]
    gains = 2.0 ** (np.asarray(parts.query.labels, float) @ np.asarray(parts.database.labels, float).T) - 1
    expected = np.mean([ndcg_score(g[None], s[None], k=10) for g, s in zip(gains, units[0] @ units[1].T, strict=True)])
    found = result["relaxed"]["i2t"]
    assert found["queries"] == len(parts.query)
    assert found["values"]["ndcg@10"] == pytest.approx(expected, abs=1e-5)
    assert found["codes"]["ndcg@10"] == pytest.approx(result["scores"]["i2t"]["ndcg@10"]["value"], abs=1e-5)
    assert {*found["values"]} == {"ndcg@10", "ndcg@100", "map@all"}


def test_codes_that_are_not_the_signs_of_values_have_no_relaxed_scores(opened: Opened) -> None:
    options = {"database_codes": "labels", "epochs": 1, "hidden": 8}
    assert measure(Run("generated", "svhn", 8, options=options), opened)["relaxed"] == {}


def test_only_some_queries_are_ranked_by_values(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmsh.compare.measure._RELAXED_QUERIES", 5)
    result = measure(Run("generated", "scm", 8, protocol="unseen", validation=True), opened)
    first = unpack_scores(result["per_query"]["t2i"]["ndcg@10"])[:5]
    assert result["relaxed"]["t2i"]["queries"] == 5
    assert result["relaxed"]["t2i"]["codes"]["ndcg@10"] == pytest.approx(np.nanmean(first), abs=2e-3)


def test_a_result_explains_itself_and_is_small(opened: Opened) -> None:
    result = measure(Run("generated", "rmsh", 16, options={"epochs": 2, "hidden": 8}), opened)
    assert result["config"]["epochs"] == 2
    assert result["config"]["lambda4"] == 0.1
    assert result["split"]["sha256"] == opened.split.sha256
    assert len(result["history"]) == 2
    assert "history" not in result["facts"]
    assert result["peak_memory_mb"] >= result["memory_mb"]["before"]
    assert "ties" in result["definitions"]
    assert result["format"] == 3
    assert {len(result[key]) for key in ("code_hash", "data")} == {64}
    assert stale_reason(result) is None
    assert changed_options(result) == []
    assert len(json.dumps(result)) < 40_000


def test_unseen_items_are_ranked_by_a_method_that_never_saw_them(opened: Opened) -> None:
    run = Run("generated", "scm", 16, protocol="unseen")
    result, split = measure(run, opened), split_of(run, opened)
    train, query, database = (opened.pairs.take(rows) for rows in (split.train, split.query, split.database))
    method = create("scm", bits=16).fit(train)
    codes = method.encode(query.features("text"), "text"), method.encode(database.features("image"), "image")
    expected = evaluate(*codes, query.labels, database.labels, k=(10, 100))
    found = result["scores"]["t2i"]
    for name, score in expected.by_name().items():
        assert found[name.lower()]["value"] == pytest.approx(score.value, abs=1e-5)
    own = rank_codes(codes[0], method.encode(query.features("image"), "image"))
    assert found["recall@5"]["value"] == pytest.approx(recall_at(own, 5).mean(), abs=1e-5)
    assert found["recall@5"]["chance"] == 5 / 20
    assert result["training_pairs"] == len(split.train)
    assert result["queries"]["t2i"]["database"] == len(split.database)
    assert result["run"]["protocol"] == "unseen"
    assert result["split"] == {
        "name": "generated-unseen",
        "sha256": split.sha256,
        "held_out": fingerprint_ids(database.ids),
    }


@pytest.mark.parametrize(("method", "bits"), [("scm", 16), ("cca-cosine", 0)])
def test_on_validation_unseen_items_are_ranked_among_themselves(opened: Opened, method: str, bits: int) -> None:
    run = Run("generated", method, bits, protocol="unseen", validation=True)
    result, split = measure(run, opened), split_of(run, opened)
    assert (len(split.query), len(split.database)) == (18, 0)
    assert result["queries"]["i2t"] == {"asked": 18, "dropped": 0, "database": 17}
    assert result["scores"]["i2t"]["recall@1"]["chance"] == pytest.approx(1 / 18, abs=1e-5)


def test_leaving_out_the_own_item_has_the_same_chance_for_codes_and_vectors(opened: Opened) -> None:
    runs = [Run("generated", m, b, protocol="unseen", validation=True) for m, b in (("scm", 8), ("cca-cosine", 0))]
    codes, line = (measure(run, opened)["scores"]["t2i"] for run in runs)
    for name in ("ndcg@10", "ndcg@100", "map@all"):
        assert codes[name]["chance"] == pytest.approx(line[name]["chance"], abs=1e-5)


def test_prefixes_are_scored_as_codes_of_their_length(opened: Opened) -> None:
    run = Run("generated", "cca-itq", 16, prefixes=(8,))
    result, parts = measure(run, opened), parts_of(run, opened)
    method = create("cca-itq", bits=16).fit(parts.train)
    codes = (
        method.encode(parts.query.features("image"), "image").prefix(8),
        method.encode(parts.database.features("text"), "text").prefix(8),
    )
    expected = evaluate(*codes, parts.query.labels, parts.database.labels)
    assert result["prefixes"]["8"]["i2t"]["map@all"]["value"] == pytest.approx(expected.map.value, abs=1e-5)


def test_the_fingerprint_of_the_data_changes_with_labels_and_features_but_not_with_noise(opened: Opened) -> None:
    run = Run("generated", "scm")
    noisy = replace(run, label_noise=0.5, image_noise=1.0)
    other = replace(opened, pairs=replace(opened.pairs, labels=np.roll(np.asarray(opened.pairs.labels), 1, axis=0)))
    assert parts_of(run, opened).sha256 == parts_of(noisy, opened).sha256
    assert parts_of(run, opened).sha256 != parts_of(run, other).sha256


def test_distances_count_every_pair_of_query_and_item_once(opened: Opened) -> None:
    result = measure(Run("generated", "cca-itq", 16), opened)
    counts = result["distances"]["t2i"]
    assert [*counts] == ["0", "1", "2", "3+"]
    assert sum(map(sum, counts.values())) == 20 * 180
    assert {len(group) for group in counts.values()} == {17}


def test_curves_rise_in_recall_and_have_few_points(opened: Opened) -> None:
    curve = measure(Run("generated", "cca-itq", 16), opened)["curves"]["i2t"]
    assert curve["recall"] == sorted(curve["recall"])
    assert curve["recall"][-1] == pytest.approx(1)
    assert len(curve["rank"]) == len(curve["precision"]) <= 50


@pytest.mark.parametrize(
    ("name", "options"),
    [("cca-cosine", {}), ("logistic", {"epochs": 3}), ("mlp", {"epochs": 3, "hidden": 16})],
)
def test_a_reference_line_is_scored_without_codes_and_beats_chance(
    opened: Opened, name: str, options: dict[str, int]
) -> None:
    result = measure(Run("generated", name, 0, options=options), opened)
    for direction in ("i2t", "t2i"):
        score = result["scores"][direction]["ndcg@500"]
        assert score["value"] > score["chance"]
    assert "audit" not in result


def test_the_cut_of_the_ranking_is_in_the_name_of_the_score(opened: Opened) -> None:
    for method, bits in (("cca-itq", 8), ("cca-cosine", 0)):
        result = measure(Run("generated", method, bits, k=20), opened)
        assert "ndcg@20" in result["scores"]["t2i"]
        assert result["definitions"]["ndcg"].startswith("NDCG@20")


def test_chance_is_the_same_for_codes_and_reference_lines(opened: Opened) -> None:
    codes, line = (measure(Run("generated", m, b), opened) for m, b in (("cca-itq", 8), ("cca-cosine", 0)))
    for measured in ("ndcg@500", "map@all"):
        both = [result["scores"]["i2t"][measured]["chance"] for result in (codes, line)]
        assert both[0] == pytest.approx(both[1], abs=1e-5)


def test_a_method_without_a_length_is_refused(opened: Opened) -> None:
    with pytest.raises(ConfigError, match="'scm'"):
        measure(Run("generated", "scm", 0), opened)


def test_validation_queries_are_training_pairs_and_never_queries(opened: Opened) -> None:
    split = split_of(Run("generated", "scm", validation=True), opened)
    assert opened.split is not None
    assert np.isin(split.query, opened.split.train).all()
    assert not np.isin(opened.split.query, np.concatenate([split.query, split.database, split.train])).any()


def test_on_validation_fewer_training_pairs_are_also_what_is_searched(opened: Opened) -> None:
    trial = split_of(Run("generated", "scm", train=50, validation=True), opened)
    assert trial.database.tolist() == trial.train.tolist()
    assert len(split_of(Run("generated", "scm", train=50), opened).database) == 180


def test_fewer_training_pairs_are_the_same_ones_for_every_seed(opened: Opened) -> None:
    one, other = (split_of(Run("generated", "scm", seed=seed, train=50), opened) for seed in (0, 1))
    assert len(one.train) == 50
    assert one.sha256 == other.sha256


def test_more_training_pairs_than_there_are_is_refused(opened: Opened) -> None:
    with pytest.raises(DataError, match=r"1,000.*generated.*180"):
        split_of(Run("generated", "scm", train=1000), opened)


def test_data_without_a_split_gets_one_and_incomplete_items_are_left_out(opened: Opened) -> None:
    has_text = np.ones(200, dtype=bool)
    has_text[:10] = False
    gappy = replace(opened, split=None, pairs=replace(opened.pairs, has_text=has_text))
    split = split_of(Run("generated", "scm"), gappy)
    rows = np.concatenate([split.query, split.database])
    assert len(rows) == 190
    assert rows.min() == 10


def test_data_without_labels_is_refused(opened: Opened) -> None:
    bare = replace(opened, pairs=replace(opened.pairs, labels=None, class_names=()))
    with pytest.raises(DataError, match=r"generated.*labels"):
        parts_of(Run("generated", "cca-itq"), bare)


def test_noise_is_added_to_training_labels_and_query_features_only(opened: Opened) -> None:
    clean = parts_of(Run("generated", "scm"), opened)
    noisy = parts_of(Run("generated", "scm", label_noise=0.5, image_noise=1.0), opened)
    assert (clean.train.labels != noisy.train.labels).any()
    assert (clean.query.labels == noisy.query.labels).all()
    assert (clean.query.images != noisy.query.images).any()
    assert (clean.database.images == noisy.database.images).all()
