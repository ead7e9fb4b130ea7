"""Evaluation as a whole: one pass, every score with bounds and chance, known levels on real labels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.core.errors import CodesError, ConfigError, DataError
from rmsh.core.progress import Progress
from rmsh.metrics import evaluate, histogram, histograms
from rmsh.metrics.evaluate import Definitions
from rmsh.metrics.ranking import average_precision, by_rank, ndcg, precision_within


def random_set(seed: int, *, bits: int = 6, queries: int = 20, items: int = 80) -> tuple:
    """Query codes, database codes, query labels, database labels."""
    rng = np.random.default_rng(seed)
    codes = [Codes.from_values(rng.standard_normal((n, bits))) for n in (queries, items)]
    labels = [(rng.random((n, 5)) < 0.3).astype(np.uint8) for n in (queries, items)]
    for some in labels:
        some[:, 0] |= ~some.any(axis=1)  # every item has a label
    return (*codes, *labels)


def test_scores_are_the_means_of_the_measures() -> None:
    query, database, of_query, of_database = random_set(0)
    cells = next(histograms(query, database, query_labels=of_query, database_labels=of_database))
    scores = evaluate(query, database, of_query, of_database, k=10, map_k=7, map_normaliser="hits")
    assert scores.ndcg.value == pytest.approx(ndcg(cells, 10).mean())
    assert scores.map.value == pytest.approx(average_precision(cells, 7, normaliser="hits").mean())
    assert scores.within.value == pytest.approx(precision_within(cells, 2).mean())
    ranks = scores.rank_curve.at
    assert scores.rank_curve.recall == pytest.approx(by_rank(cells, ranks)[1].mean(axis=0))


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluate(*random_set(1))
    monkeypatch.setattr(histogram, "_BLOCK_BYTES", 1)
    reports: list[Progress] = []
    blocks = evaluate(*random_set(1), on_progress=reports.append)
    assert [(report.done, report.total) for report in reports][-2:] == [(19, 20), (20, 20)]
    assert json.dumps(_rounded(whole.to_json())) == json.dumps(_rounded(blocks.to_json()))


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return round(value, 12)
    if isinstance(value, Mapping):
        return {name: _rounded(part) for name, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list) else value


def test_the_order_of_the_database_makes_no_difference() -> None:
    query, database, of_query, of_database = random_set(2)
    turned = np.random.default_rng(3).permutation(len(database))
    first = evaluate(query, database, of_query, of_database)
    second = evaluate(query, database.take(turned), of_query, of_database[turned])
    assert first.to_json() == second.to_json()


def test_a_query_without_relevant_items_is_dropped_and_counted() -> None:
    query, database, of_query, of_database = random_set(4)
    alone, wider = np.zeros((20, 6), dtype=np.uint8), np.pad(of_database, ((0, 0), (0, 1)))
    alone[:, :5], alone[0] = of_query, [0, 0, 0, 0, 0, 1]
    scores = evaluate(query, database, alone, wider, per_query=True)
    others = evaluate(query.take(np.arange(1, 20)), database, of_query[1:], of_database)
    assert (scores.queries, scores.dropped, others.dropped) == (20, 1, 0)
    assert asdict(scores.ndcg) == pytest.approx(asdict(others.ndcg))
    assert scores.rank_curve.precision == pytest.approx(others.rank_curve.precision)
    assert np.isnan(scores.per_query["map"]).tolist() == [True] + [False] * 19


def test_values_of_each_query_average_to_the_scores() -> None:
    scores = evaluate(*random_set(5), per_query=True)
    assert scores.per_query["ids"].tolist() == [str(row) for row in range(20)]
    assert scores.per_query["ndcg_pessimistic"].mean() == pytest.approx(scores.ndcg.pessimistic)
    assert scores.per_query["precision_chance"].mean() == pytest.approx(scores.precision.chance)
    assert evaluate(*random_set(5)).per_query == {}


def test_random_codes_reach_the_chance_level() -> None:
    _, _, of_query, of_database = random_set(6)
    differences = []
    for seed in range(40):
        query, database, _, _ = random_set(seed, bits=16)
        scores = evaluate(query, database, of_query, of_database, k=10)
        differences.append([score.value - score.chance for name, score in scores.named().items() if name[:3] != "P(d"])
    mean, deviation = np.mean(differences, axis=0), np.std(differences, axis=0, ddof=1)
    assert (np.abs(mean) < 4 * deviation / np.sqrt(40)).all()


def test_chance_on_real_labels_is_the_published_level(coco66k_root: Path) -> None:
    with np.load(coco66k_root / "labels.npz") as file:
        labels = np.unpackbits(file["labels"], axis=1, count=len(file["names"]))
    codes = Codes.from_values(np.random.default_rng(0).standard_normal((len(labels), 64)))
    database, query = np.arange(56_947), np.arange(56_947, len(labels))
    scores = evaluate(codes.take(query), codes.take(database), labels[query], labels[database])
    assert (scores.queries, scores.dropped) == (4_956, 0)
    assert (scores.ndcg.chance, scores.map.chance) == pytest.approx((0.129, 0.473), abs=5e-4)
    assert (scores.ndcg.value, scores.map.value) == pytest.approx((0.129, 0.473), abs=2e-3)


def test_the_share_of_queries_that_find_nothing_is_reported() -> None:
    query = Codes.from_values([[1, 1, 1, 1], [-1, -1, -1, -1]])
    database = Codes.from_values([[1, 1, 1, 1], [1, 1, 1, -1]])
    scores = evaluate(query, database, [[1], [1]], [[1], [0]], radius=1)
    assert scores.empty_within == 0.5
    assert scores.within.value == pytest.approx((1 / 2 + 0) / 2)
    assert scores.within.chance == pytest.approx(1 / 2)


def test_no_query_with_a_relevant_item_is_refused() -> None:
    one = Codes.from_values([[1]])
    with pytest.raises(DataError, match=r"1 queries .*1 database items"):
        evaluate(one, one, [[1, 0]], [[0, 1]])


def test_codes_of_different_lengths_are_refused() -> None:
    with pytest.raises(CodesError, match=r"1 bits .*2"):
        evaluate(Codes.from_values([[1]]), Codes.from_values([[1, 1]]), [[1]], [[1]])


@pytest.mark.parametrize(("option", "value"), [("k", 0), ("map_k", -1), ("map_normaliser", "top"), ("radius", -1)])
def test_an_option_out_of_range_is_refused(option: str, value: object) -> None:
    one = Codes.from_values([[1]])
    with pytest.raises(ConfigError, match=f"'{option}' got {value!r}"):
        evaluate(one, one, [[1]], [[1]], **{option: value})


ONE, TWO = Codes.from_values([[1, 1]], ids=["q"]), Codes.from_values([[1, 1], [-1, -1]])


def test_a_result_is_plain_json_with_its_definitions() -> None:
    plain = evaluate(ONE, TWO, [[1]], [[1], [1]], map_k=2, map_normaliser="hits").to_json()
    again = json.loads(json.dumps(plain, allow_nan=False))
    assert again == plain
    assert again["settings"] == {"k": 500, "further_k": [], "map_k": 2, "map_normaliser": "hits", "radius": 2}
    assert "the first 2 items, divided by hits" in again["definitions"]["map"]
    assert set(again["ndcg"]) == {"value", "pessimistic", "optimistic", "chance"}


def test_scores_have_the_names_a_table_shows() -> None:
    scores = evaluate(ONE, TWO, [[1]], [[1], [1]], k=2)
    assert list(scores.named()) == ["NDCG@2", "mAP@all", "P@2", "P(d<=2)"]
    assert scores.named()["NDCG@2"] is scores.ndcg


def test_every_score_has_a_definition() -> None:
    assert set(Definitions().names()) <= set(Definitions().describe())


def test_further_ranks_are_those_of_separate_evaluations() -> None:
    scores = evaluate(*random_set(7), k=(5, 20), per_query=True)
    assert scores.ndcg == evaluate(*random_set(7), k=5).ndcg
    assert scores.further["NDCG@20"] == evaluate(*random_set(7), k=20).ndcg
    assert list(scores.named()) == ["NDCG@5", "mAP@all", "P@5", "P(d<=2)", "NDCG@20"]
    assert scores.per_query["ndcg@20"].mean() == pytest.approx(scores.further["NDCG@20"].value)


def test_a_rank_beyond_the_database_is_shown_as_all() -> None:
    scores = evaluate(*random_set(8), k=(81, 200))
    assert next(iter(scores.by_name())) == "NDCG@81"
    assert list(scores.named()) == ["NDCG@all", "mAP@all", "P@all", "P(d<=2)"]
    assert next(iter(evaluate(*random_set(8), k=80).named())) == "NDCG@80"


def test_the_own_item_of_a_query_can_be_left_out_of_the_database() -> None:
    query, _, labels, _ = random_set(9)
    scores = evaluate(query, query, labels, labels, k=5, leave_own_out=True)
    assert scores.database == 19
    assert scores.rank_curve.recall[-1] == pytest.approx(1)
    assert evaluate(query, query, labels, labels, k=5).ndcg.value > scores.ndcg.value
