"""The summary: means over seeds, the worst of the bits, and failures."""

from __future__ import annotations

from typing import Any

from rmsh.compare.result import failure
from rmsh.compare.run import Run
from rmsh.compare.table import cost_cells, score_table, summarise


def _result(run: Run, ndcg: float, *, constant: int = 0, distinct: int = 100) -> dict[str, Any]:
    names = ["map@all", *(f"ndcg@{k}" for k in run.ranks), "recall@1", "recall@5", "recall@10"]
    score = {name: {"value": ndcg, "chance": 0.1} for name in names}
    audit = {"dead": [0] * constant, "nearly_constant": [], "distinct": distinct}
    return {
        "status": "done",
        "run": run.to_json(),
        "scores": {"i2t": score, "t2i": score},
        "queries": {"i2t": {"database": 1000}},
        "audit": {} if not run.bits else {"image": audit, "text": audit | {"distinct": 200}},
        "seconds": {"fit_cpu": 2.0},
        "peak_memory_mb": 1234,
    }


def test_a_row_is_the_mean_over_seeds_and_the_worst_of_the_bits() -> None:
    runs = [Run("a", "scm", 16, 0), Run("a", "scm", 16, 1)]
    (row,) = summarise([_result(runs[0], 0.2), _result(runs[1], 0.4, constant=3, distinct=50)])
    columns, cells = score_table([row])
    assert columns == ["method", "bits", "runs", "NDCG@500", "relaxed NDCG@500", "mAP@all"]
    assert cells[0] == ["scm", "16", "2", "0.3000 / 0.3000", "–", "0.3000 / 0.3000"]
    assert cells[1] == ["chance", "", "", "0.1000 / 0.1000", "", "0.1000 / 0.1000"]
    assert cost_cells(row) == ["scm", "16", "2.0", "1,234", "3", "50"]


def test_relaxed_scores_stand_beside_those_of_the_codes() -> None:
    relaxed = [{d: {"values": {"ndcg@500": v}} for d, v in (("i2t", a), ("t2i", 0.6))} for a in (0.5, 0.7)]
    results = [_result(Run("a", "scm", 16, seed), 0.2) | {"relaxed": relaxed[seed]} for seed in (0, 1)]
    assert score_table(summarise(results))[1][0][3:5] == ["0.2000 / 0.2000", "0.6000 / 0.6000"]


def test_presets_lengths_and_reference_lines_have_separate_rows() -> None:
    runs = [Run("a", "rmsh", 16), Run("a", "rmsh", 32), Run("a", "rmsh", 16, preset="paper"), Run("a", "mlp", 0)]
    rows = summarise(_result(run, 0.5) for run in runs)
    assert [(row.method, row.bits) for row in rows] == [("rmsh", 16), ("rmsh", 32), ("rmsh (paper)", 16), ("mlp", 0)]
    assert cost_cells(rows[3]) == ["mlp", "–", "2.0", "1,234", "–", "–"]


def test_a_failed_run_is_counted_and_named() -> None:
    (row,) = summarise([_result(Run("a", "scm"), 0.5), failure(Run("a", "scm", seed=1), "no luck", 1.0)])
    assert score_table([row])[1][0][2] == "1/2"
    assert row.error == "no luck"


def test_a_method_that_only_failed_has_dashes() -> None:
    (row,) = summarise([failure(Run("a", "scm"), "no luck", 1.0)])
    assert score_table([row])[1] == [["scm", "64", "0/1", "–", "–", "–"], ["chance", "", "", "–", "", "–"]]
    assert cost_cells(row) == ["scm", "64", *["–"] * 4]


def test_what_a_result_does_not_have_is_a_dash() -> None:
    result = _result(Run("a", "scm"), 0.5)
    for key in ("audit", "seconds", "peak_memory_mb"):
        del result[key]
    (row,) = summarise([result])
    assert cost_cells(row) == ["scm", "64", *["–"] * 4]


def test_a_table_of_unseen_items_has_ranks_that_fit_and_recall() -> None:
    (row,) = summarise([_result(Run("a", "scm", protocol="unseen"), 0.5)])
    columns, _ = score_table([row])
    assert columns[3:] == ["NDCG@10", "relaxed NDCG@10", "NDCG@100", "mAP@all", "recall@1", "recall@5", "recall@10"]


def test_a_rank_beyond_the_database_is_not_shown_as_one() -> None:
    small = _result(Run("a", "scm"), 0.5) | {"queries": {"i2t": {"database": 499}}}
    assert score_table(summarise([small]))[0][3:] == ["NDCG@all", "relaxed NDCG@all", "mAP@all"]


def test_protocols_and_prefixes_have_separate_rows() -> None:
    run = Run("a", "scm", 64, protocol="unseen", prefixes=(16, 32))
    whole = _result(run, 0.5)
    parts = {str(bits): _result(run, bits / 100)["scores"] for bits in run.prefixes}
    rows = summarise([_result(Run("a", "scm"), 0.5), whole | {"prefixes": parts}])
    assert [(row.protocol, row.bits, row.prefix_of) for row in rows] == [
        ("paper", 64, None),
        ("unseen", 64, None),
        ("unseen", 16, 64),
        ("unseen", 32, 64),
    ]
    assert score_table(rows[2:])[1][0][1:4] == ["16 of 64", "1", "0.1600 / 0.1600"]
