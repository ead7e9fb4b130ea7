"""Stages run once for the same inputs, and again for other inputs or after an interruption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rmsh.builder.stages import Stages, digest


class Counter:
    """Work that counts how often it was done."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> dict[str, Any]:
        self.count += 1
        return {"count": self.count}


def test_a_stage_is_done_once_for_the_same_inputs(tmp_path: Path) -> None:
    skipped: list[str] = []
    work, stages = Counter(), Stages(tmp_path, on_skip=skipped.append)
    assert stages.run("train", "a", work) == stages.run("train", "a", work) == {"count": 1}
    assert skipped == ["train"]
    assert stages.run("train", "b", work) == {"count": 2}


def test_a_stage_whose_outcome_is_gone_is_done_again(tmp_path: Path) -> None:
    work, stages = Counter(), Stages(tmp_path, on_skip=print)
    stages.run("library", "a", work)
    assert stages.run("library", "a", work, exists=False) == {"count": 2}


def test_a_stage_that_was_cut_off_is_not_done(tmp_path: Path) -> None:
    stages = Stages(tmp_path, on_skip=print)
    stages.run("train", "old", Counter())

    def cut_off() -> dict[str, Any]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stages.run("train", "new", cut_off)
    assert stages.run("train", "old", Counter()) == {"count": 1}


@pytest.mark.parametrize("content", ["{", "[]", "{}"])
def test_a_damaged_file_counts_as_not_done(tmp_path: Path, content: str) -> None:
    (tmp_path / "train.json").write_text(content)
    assert Stages(tmp_path, on_skip=print).run("train", "a", Counter()) == {"count": 1}


def test_the_time_of_a_stage_is_that_of_when_it_was_done(tmp_path: Path) -> None:
    first, second = (Stages(tmp_path, on_skip=lambda name: None) for _ in range(2))
    first.run("train", "a", Counter())
    second.run("train", "a", Counter())
    assert first.seconds == second.seconds


def test_a_digest_follows_the_content() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}) != digest({"a": 1, "b": 3})
