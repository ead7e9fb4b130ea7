"""The runner: finished runs are kept, failures are recorded, stopped grids are resumable."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rmsh.compare import runner
from rmsh.compare.result import read_result, write_result
from rmsh.compare.run import Run
from rmsh.compare.runner import Report, carry_out, make_runs, missing_runs, stale_runs
from rmsh.core.errors import ConfigError, FormatError
from rmsh.core.locks import try_lock

DATA = {"a": "generated:120"}
GOOD, BAD = Run("a", "scm", 8), Run("a", "scm", 8, options={"ridge": -1})


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Runs are carried out in this process, which is quick; the list shows which."""
    made: list[Run] = []

    def play(command: list[str], *, input: str, **_: object) -> subprocess.CompletedProcess[str]:  # noqa: A002
        task = json.loads(input)
        run = Run(**task["run"])
        made.append(run)
        write_result(Path(task["path"]), carry_out(run, task["data"]))
        return subprocess.CompletedProcess(command, 0, "", "")

    # only the runner's: git is called to record the commit
    monkeypatch.setattr(runner, "subprocess", SimpleNamespace(run=play, TimeoutExpired=subprocess.TimeoutExpired))
    return made


def test_a_run_in_a_child_process_leaves_its_result_and_no_claim(tmp_path: Path) -> None:
    (result,) = make_runs([GOOD], tmp_path, data=DATA)
    assert result is not None
    assert result["status"] == "done"
    assert result["seconds"]["total"] > 0
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["scm-8-s0.json"]


def test_a_finished_run_is_not_repeated(here: list[Run], tmp_path: Path) -> None:
    first = make_runs([GOOD], tmp_path, data=DATA)
    assert make_runs([GOOD], tmp_path, data=DATA) == first
    assert here == [GOOD]


def test_a_failed_run_does_not_stop_the_others_and_is_repeated_only_on_request(here: list[Run], tmp_path: Path) -> None:
    results = make_runs([BAD, GOOD], tmp_path, data=DATA)
    assert [result["status"] for result in results if result] == ["failed", "done"]
    assert results[0] is not None
    assert "'ridge' got -1" in results[0]["error"]
    make_runs([BAD, GOOD], tmp_path, data=DATA)
    assert len(here) == 2
    make_runs([BAD, GOOD], tmp_path, data=DATA, retry_failed=True)
    assert here == [BAD, GOOD, BAD]


def test_an_interrupted_grid_keeps_finished_runs_and_is_resumed(
    here: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = Run("a", "scm", 16)

    def stop(report: Report) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_runs([GOOD, second], tmp_path, data=DATA, on_run=stop)
    assert missing_runs([GOOD, second], tmp_path) == [second]
    make_runs([GOOD, second], tmp_path, data=DATA)
    assert here == [GOOD, second]


def test_progress_counts_and_estimates_the_rest(here: list[Run], tmp_path: Path) -> None:
    reports: list[Report] = []
    make_runs([GOOD, Run("a", "scm", 16)], tmp_path, data=DATA, on_run=reports.append)
    assert [(report.done, report.total) for report in reports] == [(1, 2), (2, 2)]
    assert reports[0].seconds_left == pytest.approx(reports[0].result["seconds"]["total"])
    assert reports[1].seconds_left == 0


def test_a_run_locked_by_another_runner_is_skipped(here: list[Run], tmp_path: Path) -> None:
    with try_lock((tmp_path / GOOD.path).with_suffix(".claim")):
        assert make_runs([GOOD], tmp_path, data=DATA) == [None]
    assert here == []


def test_a_killed_process_is_a_failed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suicide = [sys.executable, "-c", f"import os; os.kill(os.getpid(), {signal.SIGTERM})"]
    real = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda command, **options: real(suicide, **options))
    (result,) = make_runs([GOOD], tmp_path, data=DATA)
    assert result is not None
    assert "SIGTERM" in result["error"]


def test_a_failed_process_is_a_failed_run_with_its_last_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = subprocess.run
    broken = [sys.executable, "-c", "raise SystemExit('no such thing')"]
    monkeypatch.setattr(subprocess, "run", lambda command, **options: real(broken, **options))
    (result,) = make_runs([GOOD], tmp_path, data=DATA)
    assert result is not None
    assert "code 1: no such thing" in result["error"]


def test_a_run_over_the_time_limit_is_stopped_and_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(command: list[str], *, timeout: float, **_: object) -> None:
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(subprocess, "run", endless)
    (result,) = make_runs([GOOD], tmp_path, data=DATA, time_limit=5)
    assert result is not None
    assert "5 s" in result["error"]


def test_results_of_other_data_are_refused(here: list[Run], tmp_path: Path) -> None:
    make_runs([GOOD], tmp_path, data=DATA)
    with pytest.raises(ConfigError, match=r"scm-8-s0\.json.*generated:200"):
        make_runs([GOOD], tmp_path, data={"a": "generated:200"})


def test_a_result_with_other_defaults_is_stale(here: list[Run], tmp_path: Path) -> None:
    (result,) = make_runs([GOOD], tmp_path, data=DATA)
    assert result is not None
    assert stale_runs([GOOD, BAD], tmp_path) == []
    result["config"]["ridge"] = 7.0
    write_result(tmp_path / GOOD.path, result)
    assert stale_runs([GOOD], tmp_path) == [GOOD]


def test_a_dataset_without_a_location_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'a'.*'b'"):
        make_runs([GOOD], tmp_path, data={"b": "generated"})


@pytest.mark.parametrize(
    ("content", "said"),
    [("{", "JSON"), ("[]", "not the result of a run"), ('{"format": 9, "status": "", "run": 0}', "format 9")],
)
def test_a_damaged_or_newer_file_is_refused(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(FormatError, match=said):
        read_result(path)


def test_an_unexpected_error_is_a_failed_run_with_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmsh.compare.runner.measure", lambda *_, **__: 1 / 0)
    assert carry_out(GOOD, "generated:60")["error"] == "ZeroDivisionError: division by zero"
