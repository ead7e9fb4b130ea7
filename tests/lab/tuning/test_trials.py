"""Trials: measured under both protocols, recorded one by one, resumed after an interruption, and read by grids."""

from __future__ import annotations

import json
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import pytest
import torch

from lab.data import GRIDS
from lab.grid import read_mapping
from lab.tuning import trials as module
from lab.tuning.halving import Halving, Trials, key_of
from lab.tuning.trials import read_records, read_trials, seconds_left, trials_text, tune, write_chosen
from rmsh.compare.measure import measure
from rmsh.compare.run import method_of
from rmsh.core.errors import ConfigError, DataError
from rmsh.core.locks import try_lock
from rmsh.data.open import Opened, open_pairs
from rmsh.data.pairs import Pairs
from rmsh.methods import METHODS
from rmsh.methods.scm import SCM

TRIALS = Trials(
    dataset="generated",
    bits=8,
    rounds={60: 3, 100: 1},
    variations=1,
    menu={"epochs": [1, 2]},
    methods={"scm": {"grid": {"ridge": [0.001, 0.01, 0.1]}}, "cca-itq": {"grid": {"power": [1.0, 2.0]}}},
)


@pytest.fixture(scope="module")
def opened() -> Opened:
    return open_pairs("generated:200")


def test_a_trial_has_the_scores_of_validation_runs_of_both_protocols(opened: Opened, tmp_path: Path) -> None:
    tune(TRIALS, opened, tmp_path, only="scm", say=lambda _: None)
    trial = json.loads((tmp_path / "scm.json").read_text())["tried"][0]
    run = TRIALS.run("scm", trial["options"], 60, protocol="unseen")
    expected = measure(run, opened)["scores"]
    assert trial["unseen"] == {d: round(expected[d]["ndcg@10"]["value"], 4) for d in ("i2t", "t2i")}
    assert trial["score"] == pytest.approx(sum([*trial["paper"].values(), *trial["unseen"].values()]) / 4, abs=1e-5)
    assert {*trial["paper relaxed"]} == {"i2t", "t2i"}


def test_an_interrupted_search_goes_on_where_it_stopped(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = module.try_options
    made: list[Any] = []

    def stop_at_the_third(*given: Any) -> Any:
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(given[2])
        return real(*given)

    monkeypatch.setattr(module, "try_options", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        tune(TRIALS, opened, tmp_path, only="scm", say=lambda _: None)
    assert (read_records(tmp_path)["scm"]["trials"], read_records(tmp_path)["scm"]["chosen"]) == (2, None)
    monkeypatch.setattr(module, "try_options", lambda *given: made.append(given[2]) or real(*given))
    tune(TRIALS, opened, tmp_path, only="scm", say=lambda _: None)
    record = read_records(tmp_path)["scm"]
    assert record["trials"] == len(made) == 5
    assert record["chosen"] in [trial["options"] for trial in record["tried"]]
    tune(TRIALS, opened, tmp_path, only="scm", say=lambda _: None)
    assert (len(made), read_records(tmp_path)["scm"]) == (5, record)  # a finished search is not continued


def test_trials_of_other_code_are_started_again(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tune(TRIALS, opened, tmp_path, only="scm", say=lambda _: None)
    monkeypatch.setattr(SCM, "version", 99, raising=False)
    lines: list[str] = []
    tune(TRIALS, opened, tmp_path, only="scm", say=lines.append)
    assert len(lines) == 5
    assert read_records(tmp_path)["scm"]["method_version"] == 99


def test_every_line_says_how_much_time_is_left_and_a_locked_method_is_skipped(opened: Opened, tmp_path: Path) -> None:
    lines: list[str] = []
    with try_lock(tmp_path / "scm.claim"):
        tune(TRIALS, opened, tmp_path, say=lines.append)
    assert "scm: another process" in lines[0]
    assert all("60 pairs, NDCG 0." in line and " left" in line for line in lines[1:3])
    assert [*read_records(tmp_path)] == ["cca-itq"]


def test_the_time_left_follows_from_the_time_per_pair() -> None:
    outcome = {"score": 0.5, "seconds": 6.0, "cpu_seconds": 6.0}
    begun = Halving(TRIALS, "scm", 180, {key_of(60, {"ridge": 0.001}): outcome})
    whole = 3 * 60 + 1 * 100 + 1 * 100
    assert seconds_left([begun]) == pytest.approx((whole - 60) * 0.1)
    assert seconds_left([begun, Halving(TRIALS, "cca-itq", 180)]) == pytest.approx((2 * whole - 60) * 0.1)


def test_an_error_is_the_outcome_of_a_trial(opened: Opened, tmp_path: Path) -> None:
    broken = Trials.parse(TRIALS.model_dump() | {"rounds": {60: 1}, "methods": {"scm": {"cheaper": {"ridge": -1}}}})
    tune(broken, opened, tmp_path, say=lambda _: None)
    record = read_records(tmp_path)["scm"]
    assert "'ridge' got -1" in record["tried"][0]["error"]
    assert record["chosen"] is None


def test_chosen_options_replace_those_of_the_same_method(opened: Opened, tmp_path: Path) -> None:
    chosen = tmp_path / "chosen.yaml"
    chosen.write_text("{scm: {ridge: 7.0}, dcmh: {epochs: 3}}")
    tune(TRIALS, opened, tmp_path / "records", only="scm", say=lambda _: None)
    write_chosen(tmp_path / "records", chosen)
    record = read_records(tmp_path / "records")["scm"]
    assert read_mapping(chosen) == {"scm": record["chosen"], "dcmh": {"epochs": 3}}


def test_the_text_has_one_line_per_method_and_for_one_method_one_per_trial(opened: Opened, tmp_path: Path) -> None:
    tune(TRIALS, opened, tmp_path, say=lambda _: None)
    records = read_records(tmp_path)
    assert len(trials_text(records).splitlines()) == 3
    assert len(trials_text({"scm": records["scm"]}).splitlines()) == 6
    assert trials_text({}) == "no trials"


def test_data_without_a_split_is_refused(opened: Opened, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"generated.*split"):
        tune(TRIALS, replace(opened, split=None), tmp_path)


def test_our_own_trials_search_options_that_exist_in_as_many_trials_for_every_method() -> None:
    trials = read_trials(GRIDS / "trials.yaml")
    assert {*trials.methods} == {*METHODS.names()}
    first = max(trials.rounds.values())
    for name in trials.methods:
        search = Halving(trials, name, all_pairs=56_947)
        candidates = search.candidates(first)
        assert len(candidates) >= min(first, prod(map(len, search.grid.values()))), name
        for options in candidates:
            method_of(trials.run(name, options, trials.most_pairs))


def test_a_mistake_in_a_trials_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "trials.yaml"
    path.write_text("{dataset: a, rounds: {10: 2}, variations: 0, menu: {}, methods: {scm: {gird: {}}}}")
    with pytest.raises(ConfigError, match=r"trials.yaml.*gird"):
        read_trials(path)


def test_scoring_does_not_give_later_trials_more_threads_than_asked_for(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    used, fit = [], SCM.fit

    def watched(self: SCM, pairs: Pairs, **options: Any) -> SCM:
        used.append(torch.get_num_threads())
        return fit(self, pairs, **options)

    monkeypatch.setattr(SCM, "fit", watched)
    torch.set_num_threads(2)  # as numba leaves it
    tune(TRIALS, opened, tmp_path, only="scm", say=lambda _: None)
    assert {*used} == {1}
