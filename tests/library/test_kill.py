"""A writer killed with SIGKILL at random moments: what it acknowledged is there, and nothing is half there."""

from __future__ import annotations

import importlib
import random
from pathlib import Path
from types import ModuleType

import pytest

PROJECT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The measurement that `make lab` runs 200 times."""
    monkeypatch.syspath_prepend(str(PROJECT))
    return importlib.import_module("lab.speed.faults")


@pytest.mark.slow
def test_a_library_survives_writers_that_are_killed(faults: ModuleType, tmp_path: Path) -> None:
    tally = faults.kill_writers(tmp_path / "library", 6, seed=random.SystemRandom().randrange(1 << 30))
    assert (tally.runs, tally.failures) == (6, [])
    assert tally.acknowledged


def test_what_must_be_there_follows_from_what_was_acknowledged(faults: ModuleType) -> None:
    said = [{"begin": "add", "ids": ["a", "b"], "version": 1}, {"end": "add"}]
    said += [{"begin": "remove", "ids": ["a"], "version": 2}, {"end": "remove"}]
    said += [{"begin": "update", "ids": ["b"], "version": 3}]
    assert faults.replay({"c": 0}, said, faults.Tally()) == {"c": 0, "b": 1}
    assert faults.changed({"c": 0, "b": 1}, said[-1]) == {"c": 0, "b": 3}


def test_the_measurement_sees_an_item_that_is_half_there(faults: ModuleType, tmp_path: Path) -> None:
    from lab.speed.faults_writer import make_codes, make_item, make_model

    model, item, other = make_model(0), make_item("a", 1), make_item("b", 1)
    with faults.Library.create(tmp_path / "library", model) as library:
        library.add([item, other], make_codes([item, other], model.fingerprint), model=model.fingerprint)
        with library.transaction() as connection:
            connection.execute("DELETE FROM item_labels WHERE row = 1")
    problems = faults.look(tmp_path / "library")[1]
    assert problems
    assert all("'a' (row 1)" in problem for problem in problems)
