"""Fair trials: as many for each method, the best is chosen, and a grid reads the choice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.grid import read_mapping
from lab.tuning.trials import Trials, chosen_options, read_trials, trial_table, trials_text, write_trials
from rmsh.core.errors import ConfigError

GRIDS = Path(__file__).resolve().parents[3] / "lab" / "grids"
TRIALS = Trials(
    dataset="a",
    train=100,
    k=20,
    methods={"scm": [{}, {"ridge": 0.1}], "seph": [{}, {"alpha": 1.0}]},
    reduced={"seph": {"sample": 50}},
)


def _result(ndcg: float) -> dict[str, Any]:
    score = {"ndcg@20": {"value": ndcg}, "map@all": {"value": 0.5}}
    audit = {"dead": [], "nearly_constant": [3]}
    return {
        "status": "done",
        "scores": {"i2t": score, "t2i": score},
        "audit": {"image": audit, "text": audit},
        "seconds": {"fit_cpu": 2.0},
    }


def test_a_trial_is_a_run_on_validation_with_what_makes_it_cheaper() -> None:
    runs = TRIALS.runs()
    assert [dict(run.options) for run in runs] == [{}, {"ridge": 0.1}, {"sample": 50}, {"sample": 50, "alpha": 1.0}]
    assert all(run.validation and run.train == 100 and run.k == 20 for run in runs)


def test_the_best_trial_is_chosen_without_what_made_it_cheaper() -> None:
    table = trial_table(TRIALS, [_result(0.3), _result(0.4), _result(0.2), _result(0.1)])
    assert chosen_options(table) == {"scm": {"ridge": 0.1}, "seph": {}}


def test_a_failed_trial_is_shown_and_never_chosen() -> None:
    failed = {"status": "failed", "error": "no luck"}
    table = trial_table(TRIALS, [failed, failed, _result(0.2), failed])
    assert chosen_options(table) == {"seph": {}}
    assert "no luck" in trials_text(table)


def test_nothing_is_chosen_before_all_trials_of_a_method_are_done() -> None:
    table = trial_table(TRIALS, [_result(0.3), _result(0.4), _result(0.2), None])
    assert chosen_options(table) == {"scm": {"ridge": 0.1}}
    assert len(table["methods"]["seph"]) == 1


def test_the_table_and_the_choice_are_written(tmp_path: Path) -> None:
    table = trial_table(TRIALS, [_result(0.3), _result(0.4), None, None])
    write_trials(table, tmp_path / "trials.json", chosen=tmp_path / "chosen.yaml")
    assert read_mapping(tmp_path / "chosen.yaml") == {"scm": {"ridge": 0.1}}
    assert json.loads((tmp_path / "trials.json").read_text()).items() >= table.items()


def test_the_text_has_one_line_per_trial() -> None:
    heading, first, second = trials_text(trial_table(TRIALS, [_result(0.3), _result(0.4), None, None])).splitlines()
    assert "ndcg.i2t" in heading
    assert "0.3" in first
    assert "0.4" in second


def test_one_trial_more_for_one_method_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trials.yaml"
    path.write_text("{dataset: a, train: 10, methods: {scm: [{}], rmsh: [{}, {epochs: 2}]}}")
    with pytest.raises(ConfigError, match="scm 1, rmsh 2"):
        read_trials(path)


def test_our_own_trials_are_six_for_every_method_with_options_that_exist() -> None:
    from rmsh.compare.references import method_of
    from rmsh.methods import METHODS

    trials = read_trials(GRIDS / "trials.yaml")
    assert {len(each) for each in trials.methods.values()} == {6}
    # NEST was tuned for both protocols together (docs/nest.md) and runs with its defaults.
    assert {*trials.methods} == {*METHODS.names()} - {"nest"}
    assert all(method_of(run).config.bits == trials.bits for run in trials.runs())
