"""Directions: each uses the right codes, and no item finds itself."""

from __future__ import annotations

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.core.errors import CodesError, ConfigError, DataError
from rmsh.core.progress import Progress
from rmsh.metrics import LabelledCodes, evaluate, evaluate_directions
from rmsh.metrics.counterparts import rank_codes, recall_score


def side(seed: int, prefix: str, n: int, *modalities: str) -> dict:
    rng = np.random.default_rng(seed)
    ids = [f"{prefix}{row}" for row in range(n)]
    labels = np.eye(3, dtype=np.uint8)[np.arange(n) % 3]
    values = {modality: rng.standard_normal((n, 8)) for modality in ("image", "text")}
    return {m: LabelledCodes(Codes.from_values(values[m], ids=ids), labels) for m in modalities}


QUERY, DATABASE = side(0, "q", 6, "image", "text"), side(1, "d", 30, "image", "text")


@pytest.mark.parametrize(
    ("direction", "of_query", "of_database"),
    [("i2t", "image", "text"), ("t2i", "text", "image"), ("i2i", "image", "image"), ("t2t", "text", "text")],
)
def test_a_direction_compares_its_modalities(direction: str, of_query: str, of_database: str) -> None:
    scores = evaluate_directions(QUERY, DATABASE, directions=[direction], k=5)[direction]
    query, database = QUERY[of_query], DATABASE[of_database]
    assert scores.ndcg == evaluate(query.codes, database.codes, query.labels, database.labels, k=5).ndcg


def test_the_default_directions_go_across_modalities() -> None:
    assert list(evaluate_directions(QUERY, DATABASE)) == ["i2t", "t2i"]


def test_a_single_modality_finds_itself_by_default() -> None:
    assert list(evaluate_directions(side(0, "q", 3, "text"), side(1, "d", 9, "text"))) == ["t2t"]


def test_sides_may_have_different_items_in_each_modality() -> None:
    fewer = {"image": DATABASE["image"], "text": DATABASE["text"].take(np.arange(20))}
    scores = evaluate_directions(QUERY, fewer)
    assert (scores["i2t"].database, scores["t2i"].database) == (20, 30)


def test_progress_names_the_direction() -> None:
    reports: list[Progress] = []
    evaluate_directions(QUERY, DATABASE, on_progress=reports.append)
    assert [report.stage for report in reports] == ["evaluate i2t", "evaluate t2i"]


def test_an_item_that_would_find_itself_is_refused_within_a_modality_only() -> None:
    same = {m: QUERY[m].take(np.arange(2)) for m in QUERY}
    assert evaluate_directions(same, QUERY, directions=["i2t"])
    with pytest.raises(CodesError, match=r"2 ids .*'q0'.*i2i"):
        evaluate_directions(same, QUERY, directions=["i2i"])


def test_a_modality_without_codes_is_refused() -> None:
    with pytest.raises(CodesError, match=r"t2i .*image codes of the database"):
        evaluate_directions(QUERY, side(1, "d", 9, "text"), directions=["t2i"])


def test_an_unknown_direction_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'x2t'.*i2t, t2i, i2i, t2t"):
        evaluate_directions(QUERY, DATABASE, directions=["x2t"])


def test_labels_that_are_not_one_row_per_code_are_refused() -> None:
    with pytest.raises(DataError, match=r"\(2, 1\)"):
        LabelledCodes(Codes.from_values([[1]]), np.ones((2, 1), dtype=np.uint8))


def test_recall_ranks_the_queries_that_have_both_modalities() -> None:
    fewer = {"image": QUERY["image"].take(np.array([4, 2, 0, 5])), "text": QUERY["text"].take(np.arange(5))}
    found = evaluate_directions(fewer, DATABASE, recall=(1, 2))
    rows = np.array([0, 2, 4])
    expected = rank_codes(QUERY["image"].codes.take(rows), QUERY["text"].codes.take(rows))
    assert found["i2t"].further == {f"recall@{k}": recall_score(expected, k) for k in (1, 2)}
    assert found["t2i"].further["recall@1"].chance == pytest.approx(1 / 3)


def test_recall_needs_the_other_modality_of_the_queries() -> None:
    found = evaluate_directions(side(0, "q", 6, "image"), DATABASE, directions=["i2t", "i2i"], recall=(1,))
    assert found["i2t"].further == found["i2i"].further == {}
