"""Result files: old formats, staleness, packed scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rmsh import __version__
from rmsh.compare import result as results
from rmsh.compare.provenance import code_hash
from rmsh.compare.result import (
    CARRIED_OVER,
    changed_options,
    failure,
    pack_scores,
    read_result,
    stale_reason,
    unpack_scores,
)
from rmsh.compare.run import Run, method_of
from rmsh.methods.scm import SCM

RUN = Run("a", "scm", 8)
SAMPLE = Path(__file__).resolve().parent.parent / "samples" / "result_v1.json"


def _result(**changes: Any) -> dict[str, Any]:
    config = method_of(RUN).config.model_dump(mode="json")
    made = {"commit": "c", "method_version": getattr(SCM, "version", 1), "code_hash": code_hash(SCM)}
    return {"format": 2, "status": "done", "run": RUN.to_json(), "config": config, **made, **changes}


def test_packing_loses_less_than_a_step_and_keeps_dropped_queries() -> None:
    values = np.append(np.random.default_rng(0).random(500), np.nan)
    back = unpack_scores(pack_scores(values))
    assert np.isnan(back).tolist() == np.isnan(values).tolist()
    assert np.nanmax(np.abs(back - values)) <= 0.5 / 254 + 1e-12


def test_a_file_of_format_1_is_read_and_judged_by_version_1() -> None:
    result = read_result(SAMPLE)
    assert result["scores"]["i2t"]["ndcg@500"]["value"] == 0.824353
    assert (result["method_version"], result["code_hash"], result["commit"]) == (1, CARRIED_OVER, None)
    assert stale_reason(result) is None


def test_a_result_of_the_current_code_is_not_stale() -> None:
    assert stale_reason(_result()) is None
    assert stale_reason(_result(code_hash=CARRIED_OVER)) is None
    assert stale_reason(failure(RUN, "no reason", 1.0)) is None


@pytest.mark.parametrize(
    ("changes", "said"), [({"method_version": 77}, "version 77"), ({"code_hash": "0"}, "made at c")]
)
def test_another_version_or_other_code_makes_a_result_stale(changes: dict[str, Any], said: str) -> None:
    reason = stale_reason(_result(**changes))
    assert reason is not None
    assert said in reason
    assert "a/scm-8-s0.json" in reason


def test_options_that_are_new_or_have_another_default_are_named() -> None:
    result = _result()
    assert changed_options(result) == []
    del result["config"]["ridge"]
    assert changed_options(result) == ["ridge"]


def test_an_installed_package_is_recorded_by_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "commit", lambda: None)
    assert failure(RUN, "", 1.0)["commit"] == f"rmsh {__version__}"


def test_a_file_without_a_protocol_is_of_the_protocol_paper() -> None:
    for name in ("result_v1.json", "result_v2.json"):
        run = read_result(SAMPLE.with_name(name))["run"]
        assert (run["protocol"], run["prefixes"]) == ("paper", [])
        assert Run(**run).protocol == "paper"
