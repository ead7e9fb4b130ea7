"""The self-test: it passes here, notices wrong answers, and survives whatever a check raises."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import NoReturn

import numpy as np
import pytest

from rmsh import doctor as self_test
from rmsh.doctor import CHECKS, Check, run_checks
from rmsh.metrics import Score


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_every_check_passes_and_says_what_it_did(check: Check) -> None:
    [outcome] = run_checks([check])
    assert outcome.passed, outcome.detail
    assert outcome.detail


def test_wrong_distances_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_test, "hamming", lambda a, b: np.zeros((len(a), len(b)), dtype=np.int64))
    [outcome] = run_checks([Check("codes", self_test.check_codes)])
    assert not outcome.passed
    assert "differ from a plain count" in outcome.detail


def test_a_wrong_ndcg_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = SimpleNamespace(ndcg=Score(value=0.7, pessimistic=0.6, optimistic=0.8, chance=0.5))
    monkeypatch.setattr("rmsh.metrics.evaluate", lambda *_, k: wrong)
    [outcome] = run_checks([Check("metrics", self_test.check_metrics)])
    assert not outcome.passed
    assert "NDCG of a known case is Score(value=0.7" in outcome.detail


def test_codes_no_better_than_chance_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    poor = SimpleNamespace(ndcg=Score(value=0.3, pessimistic=0.2, optimistic=0.4, chance=0.25))
    monkeypatch.setattr("rmsh.metrics.evaluate", lambda *_, k: poor)
    [outcome] = run_checks([Check("learning", self_test.check_learning)])
    assert not outcome.passed
    assert "Learned codes score NDCG@50 0.30, chance is 0.25" in outcome.detail


def test_without_torch_learning_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "rmsh.methods.rmsh", raising=False)
    [outcome] = run_checks([Check("learning", self_test.check_learning)])
    assert (outcome.passed, outcome.detail) == (True, "not checked, torch is not installed")


def test_a_check_that_raises_does_not_stop_the_others() -> None:
    def broken() -> NoReturn:
        raise OSError("no such library")

    first, second = run_checks([Check("broken", broken), Check("fine", lambda: "done")])
    assert (first.passed, first.detail) == (False, "OSError: no such library")
    assert (second.passed, second.detail) == (True, "done")
