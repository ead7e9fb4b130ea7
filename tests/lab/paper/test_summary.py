"""The summary: means over seeds, the worst of the bits, and failures in the open."""

from __future__ import annotations

from typing import Any

from rmsh.compare.grid import Run
from rmsh.compare.result import failure
from rmsh.compare.table import chance_cells, cost_cells, score_cells, summarise


def _result(run: Run, ndcg: float, *, constant: int = 0, distinct: int = 100) -> dict[str, Any]:
    score = {name: {"value": ndcg, "chance": 0.1} for name in ("ndcg@500", "map@all")}
    audit = {"dead": [0] * constant, "nearly_constant": [], "distinct": distinct}
    return {
        "status": "done",
        "run": run.to_json(),
        "scores": {"i2t": score, "t2i": score},
        "audit": {} if not run.bits else {"image": audit, "text": audit | {"distinct": 200}},
        "seconds": {"fit_cpu": 2.0},
        "peak_memory_mb": 1234,
    }


def test_a_row_is_the_mean_over_seeds_and_the_worst_of_the_bits() -> None:
    runs = [Run("a", "scm", 16, 0), Run("a", "scm", 16, 1)]
    (row,) = summarise([_result(runs[0], 0.2), _result(runs[1], 0.4, constant=3, distinct=50)])
    assert score_cells(row) == ["scm", "16", "2", *["0.3000"] * 4]
    assert cost_cells(row) == ["scm", "16", "2.0", "1,234", "3", "50"]
    assert chance_cells([row]) == ["chance", "", "", *["0.1000"] * 4]


def test_presets_lengths_and_reference_lines_have_rows_of_their_own() -> None:
    runs = [Run("a", "rmsh", 16), Run("a", "rmsh", 32), Run("a", "rmsh", 16, preset="paper"), Run("a", "mlp", 0)]
    rows = summarise(_result(run, 0.5) for run in runs)
    assert [(row.method, row.bits) for row in rows] == [("rmsh", 16), ("rmsh", 32), ("rmsh (paper)", 16), ("mlp", 0)]
    assert cost_cells(rows[3]) == ["mlp", "–", "2.0", "1,234", "–", "–"]


def test_a_failed_run_is_counted_and_named() -> None:
    (row,) = summarise([_result(Run("a", "scm"), 0.5), failure(Run("a", "scm", seed=1), "no luck", 1.0)])
    assert score_cells(row)[2] == "1/2"
    assert row.error == "no luck"


def test_a_method_that_only_failed_has_dashes() -> None:
    (row,) = summarise([failure(Run("a", "scm"), "no luck", 1.0)])
    assert score_cells(row) == ["scm", "64", "0/1", *["–"] * 4]
    assert cost_cells(row) == ["scm", "64", *["–"] * 4]
    assert chance_cells([row])[3:] == ["–"] * 4


def test_what_a_result_does_not_have_is_a_dash() -> None:
    result = _result(Run("a", "scm"), 0.5)
    for key in ("audit", "seconds", "peak_memory_mb"):
        del result[key]
    (row,) = summarise([result])
    assert cost_cells(row) == ["scm", "64", *["–"] * 4]
