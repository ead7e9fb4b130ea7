"""A writer killed with SIGKILL at random moments: what it acknowledged is there, and nothing is incomplete."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

PROJECT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def kill_writers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The measurement that `make lab` runs 200 times."""
    monkeypatch.syspath_prepend(str(PROJECT))
    return importlib.import_module("lab.speed.kill_writers")


@pytest.mark.slow
def test_a_library_survives_writers_that_are_killed(kill_writers: ModuleType, tmp_path: Path) -> None:
    tally = kill_writers.kill_writers(tmp_path / "library", 6, seed=0)
    assert (tally.runs, tally.failures) == (6, [])
    assert tally.acknowledged


def test_what_must_be_there_follows_from_what_was_acknowledged(kill_writers: ModuleType) -> None:
    said = [{"begin": "add", "ids": ["a", "b"], "version": 1}, {"end": "add"}]
    said += [{"begin": "remove", "ids": ["a"], "version": 2}, {"end": "remove"}]
    said += [{"begin": "update", "ids": ["b"], "version": 3}]
    assert kill_writers.replay({"c": 0}, said, kill_writers.Tally()) == {"c": 0, "b": 1}
    assert kill_writers.changed({"c": 0, "b": 1}, said[-1]) == {"c": 0, "b": 3}


def test_the_measurement_sees_an_item_that_is_incomplete(kill_writers: ModuleType, tmp_path: Path) -> None:
    from lab.speed.killed_writer import make_codes, make_item, make_model

    model, item, other = make_model(0), make_item("a", 1), make_item("b", 1)
    with kill_writers.Library.create(tmp_path / "library", model) as library:
        library.add([item, other], make_codes([item, other], model.fingerprint), model=model.fingerprint)
        with library.transaction() as connection:
            connection.execute("DELETE FROM item_labels WHERE row = 1")
    problems = kill_writers.inspect_library(tmp_path / "library")[1]
    assert problems
    assert any("'a' (row 1)" in problem for problem in problems)
