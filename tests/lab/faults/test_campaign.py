"""A minute of the campaign: no damaged file, kill or loss of power leads to a wrong answer or a traceback."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lab.faults.corruption import damage_files, summary
from lab.faults.kills import kill_writers
from lab.faults.power_loss import lose_power

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/fd").exists() or shutil.which("cc") is None, reason="needs Linux and cc"),
]


def test_no_damaged_file_leads_to_a_wrong_answer(tmp_path: Path) -> None:
    found = summary(damage_files(tmp_path, 24, seed=1))
    assert (found["cases"], found["failures"]) == (24, [])
    assert found["outcomes"]["refused"]


def test_a_library_survives_writers_that_are_killed(tmp_path: Path) -> None:
    tally = kill_writers(tmp_path / "root", 9, seed=0)
    assert (tally.runs, tally.failures) == (9, [])
    assert len(tally.killed_during) >= 7
    assert tally.acknowledged


def test_a_library_survives_losses_of_power(tmp_path: Path) -> None:
    tally = lose_power(tmp_path / "root", 18, seed=0)
    assert (tally.points, tally.failures) == (18, [])
    assert tally.losses == {"dropped": 6, "names": 6, "mixed": 6}
