"""Results that are carried over a change of code: which are, which are not, and what the project's own list says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.carried_over import FILE, earlier, stale_reason
from rmsh.compare.provenance import code_hash
from rmsh.compare.run import Run
from rmsh.methods.scm import SCM

BEFORE, BETWEEN = ({"method_version": 0, "code_hash": name} for name in ("before", "between"))
NOW = {"method_version": SCM.version, "code_hash": code_hash(SCM)}


def _result(**changes: Any) -> dict[str, Any]:
    return {
        "status": "done",
        "run": Run("a", "scm").to_json(),
        "commit": "c",
        "training_pairs": 900,
        **BEFORE,
    } | changes


def _list(folder: Path, *steps: tuple[Any, Any]) -> Path:
    changes = [{"method": "scm", "before": a, "after": b, "least_training_pairs": 900} for a, b in steps]
    path = folder / "carried_over.json"
    path.write_text(json.dumps({"changes": changes}))
    return path


def test_a_result_is_carried_over_one_change_or_several(tmp_path: Path) -> None:
    assert stale_reason(_result(), tmp_path / "missing.json") is not None
    assert stale_reason(_result(), _list(tmp_path, (BEFORE, NOW))) is None
    other = tmp_path / "other"
    other.mkdir()
    assert stale_reason(_result(), _list(other, (BEFORE, BETWEEN), (BETWEEN, NOW))) is None


@pytest.mark.parametrize(
    "changes", [{"training_pairs": 899}, {"code_hash": "another"}, {"run": Run("a", "rmsh").to_json()}]
)
def test_a_result_of_fewer_pairs_or_of_other_code_or_of_another_method_stays_stale(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    assert stale_reason(_result(**changes), _list(tmp_path, (BEFORE, NOW))) is not None


def test_a_further_change_of_the_code_ends_it(tmp_path: Path) -> None:
    reason = stale_reason(_result(), _list(tmp_path, (BEFORE, BETWEEN)))
    assert reason is not None
    assert "version 0" in reason


def test_earlier_results_are_counted_by_method_without_those_carried_over(tmp_path: Path) -> None:
    changes = _list(tmp_path, (BEFORE, NOW))
    other = _result(run=Run("a", "cmfh").to_json())
    assert earlier([_result(), _result(**NOW)], changes) == {}
    assert earlier([_result(), _result(training_pairs=1), other], changes) == {"scm": (1, 2), "cmfh": (1, 1)}


def test_other_defaults_count_as_earlier_unless_carried_over(tmp_path: Path) -> None:
    config = {"bits": 64, "seed": 0, "ridge": 7.0}
    assert earlier([_result(config=config, **NOW)], tmp_path / "missing.json") == {"scm": (1, 1)}
    assert earlier([_result(config=config)], _list(tmp_path, (BEFORE, NOW))) == {}


def test_a_new_option_that_changes_nothing_is_not_another_default(tmp_path: Path) -> None:
    config = {"bits": 64, "seed": 0}
    for neutral, expected in (({}, {"scm": (1, 1)}), ({"ridge": "a reason"}, {})):
        file = tmp_path / f"{len(neutral)}.json"
        file.write_text(json.dumps({"changes": [], "neutral_options": neutral}))
        assert earlier([_result(config=config, **NOW)], file) == expected


def test_every_entry_of_the_project_gives_a_reason_and_evidence() -> None:
    if not FILE.is_file():
        pytest.skip("a source distribution contains no results")
    for change in json.loads(FILE.read_text())["changes"]:
        assert change["reason"]
        assert change["evidence"]
