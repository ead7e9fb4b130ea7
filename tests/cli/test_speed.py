"""`rmsh speed`: a table and JSON, and bad input."""

from __future__ import annotations

import json

import pytest

from rmsh.cli.main import run
from rmsh.index import speed


def test_the_result_has_a_rate_for_each_batch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(speed, "_SECONDS", 0.001)
    words = ["bench", "search", "--items", "2000", "--batch", "1,2"]
    assert run([*words, "--json", "--quiet"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert list(result["queries_per_second"]) == ["1", "2"]
    assert run(words) == 0
    assert "queries/s" in capsys.readouterr().out


def test_a_batch_of_too_many_queries_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["speed", "--items", "10", "--batch", "2000"]) == 2
    assert "give 1 to 1000" in capsys.readouterr().err
