"""`rmsh speed`: a table and JSON, and bad input."""

from __future__ import annotations

import json

import pytest

from rmsh.cli.main import run
from rmsh.index import speed as benchmark


def test_the_result_names_engines_and_the_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmark, "_LEAST_SECONDS", 0.001)
    words = ["bench", "search", "--items", "2000", "--batch", "1", "--engine", "memory", "--engine", "mih"]
    assert run([*words, "--json", "--quiet"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [m["engine"] for m in result["measured"]] == ["memory", "mih"]
    assert all(m["queries_per_second"] > 0 for m in result["measured"])
    assert run(words) == 0
    assert "queries/s" in capsys.readouterr().out


def test_an_unknown_kind_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "search", "--items", "10", "--kind", "tidy"]) == 2
    assert "give clustered or uniform" in capsys.readouterr().err
