"""`rmsh doctor`: healthy ends with 0, anything wrong with 1 and a sentence."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from rmsh.cli.main import app
from rmsh.doctor import Finding, Report

runner = CliRunner()


def report(*checks: Finding) -> Report:
    """A small report: torch is missing."""
    return Report(
        rmsh="0.1",
        python="3.11",
        platform="Linux",
        machine={"vector instructions": "X86_V3"},
        packages=(Finding("numpy", "2.0"), Finding("torch", "missing", "train")),
        weights=(Finding("minilm", "present"),),
        checks=checks,
    )


@pytest.fixture
def healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmsh.doctor.examine", lambda: report(Finding("codes", "counted")))


@pytest.fixture
def unhealthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "rmsh.doctor.examine", lambda: report(Finding("codes", "failed", problem="the check of codes failed: five"))
    )


@pytest.mark.usefixtures("healthy")
def test_a_healthy_installation_lists_its_parts_and_the_pip_command_for_missing_extras() -> None:
    done = runner.invoke(app, ["doctor"])
    assert done.exit_code == 0
    for shown in (
        "numpy",
        "missing torch: pip install",
        "[train]",
        "X86_V3",
        "minilm present",
        "check of codes: counted",
    ):
        assert shown in done.stdout


@pytest.mark.usefixtures("unhealthy")
def test_a_failed_check_ends_with_one_and_a_sentence_even_when_quiet() -> None:
    done = runner.invoke(app, ["doctor", "--quiet"])
    assert done.exit_code == 1
    assert "check of codes: failed" in done.stdout
    assert done.stderr == "rmsh: found problems: the check of codes failed: five.\n"


@pytest.mark.usefixtures("unhealthy")
def test_json_has_the_problems() -> None:
    done = runner.invoke(app, ["doctor", "--json"])
    value = json.loads(done.stdout)
    assert (done.exit_code, value["healthy"]) == (1, False)
    assert value["problems"] == ["the check of codes failed: five"]


@pytest.mark.usefixtures("healthy")
def test_quiet_prints_no_notes() -> None:
    assert runner.invoke(app, ["doctor", "-q"]).stderr == ""


def test_the_real_installation_is_healthy() -> None:
    done = runner.invoke(app, ["doctor", "--json", "--quiet"])
    assert done.exit_code == 0, done.stderr
    value = json.loads(done.stdout)
    assert value["healthy"]
    assert [check["name"] for check in value["checks"]] == ["metrics", "learning"]
