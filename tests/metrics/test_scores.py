"""The values an evaluation returns, and their files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from rmsh.codes import Codes
from rmsh.metrics import evaluate
from rmsh.metrics.evaluate import Definitions, save_per_query

ONE, TWO = Codes.from_values([[1, 1]], ids=["q"]), Codes.from_values([[1, 1], [-1, -1]])


def test_a_result_is_plain_json_with_its_definitions() -> None:
    plain = evaluate(ONE, TWO, [[1]], [[1], [1]], map_k=2, map_normaliser="hits").to_json()
    again = json.loads(json.dumps(plain, allow_nan=False))
    assert again == plain
    assert again["settings"] == {"k": 500, "map_k": 2, "map_normaliser": "hits", "radius": 2}
    assert "the first 2 items, divided by hits" in again["definitions"]["map"]
    assert set(again["ndcg"]) == {"value", "pessimistic", "optimistic", "chance"}


def test_scores_have_the_names_a_table_shows() -> None:
    scores = evaluate(ONE, TWO, [[1]], [[1], [1]], k=5)
    assert list(scores.named()) == ["NDCG@5", "mAP@all", "P@5", "P(d<=2)"]
    assert scores.named()["NDCG@5"] is scores.ndcg


def test_every_score_has_a_definition() -> None:
    assert set(Definitions().names()) <= set(Definitions().describe())


def test_values_of_each_query_are_written_by_direction(tmp_path: Path) -> None:
    scores = evaluate(ONE, TWO, [[1]], [[1], [0]], per_query=True)
    save_per_query(tmp_path / "values.npz", {"i2t": scores, "t2i": evaluate(ONE, TWO, [[1]], [[1], [0]])})
    with np.load(tmp_path / "values.npz", allow_pickle=False) as file:
        assert file["i2t_ids"].tolist() == ["q"]
        assert file["i2t_ndcg"].tolist() == [1.0]
        assert not [name for name in file if name.startswith("t2i")]
