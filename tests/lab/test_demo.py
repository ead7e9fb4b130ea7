"""The demonstration: what it runs, when it serves, how it ends."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lab import demo
from rmsh.cli import main as cli


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that were run; each ends well."""
    commands: list[list[str]] = []

    def run(words: list[str]) -> int:
        commands.append(words)
        return 0

    monkeypatch.setattr(cli, "run", run)
    return commands


def test_it_draws_builds_searches_and_says_how_to_serve(
    tmp_path: Path, ran: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.demonstrate(tmp_path, serve=False, scenes=3) == 0
    assert f"rmsh serve {tmp_path / 'library'}" in capsys.readouterr().err
    assert [words[0] for words in ran] == ["build", "search", "search", "search"]
    assert ran[0] == ["build", str(tmp_path / "scenes"), "--out", str(tmp_path / "library"), "--overwrite"]
    assert len([*(tmp_path / "scenes").rglob("*.jpg")]) == 3
    assert (tmp_path / "scenes" / demo._LIKE).is_file()


def test_interrupted_drawing_starts_again(tmp_path: Path, ran: list[list[str]]) -> None:
    (tmp_path / "scenes").mkdir()
    (tmp_path / "scenes" / "half.jpg").write_bytes(b"")
    assert demo.demonstrate(tmp_path, serve=True, scenes=3) == 0
    assert ran[-1] == ["serve", str(tmp_path / "library")]


def test_it_ends_with_the_first_command_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "run", lambda words: 2 if words[0] == "search" else 0)
    assert demo.demonstrate(tmp_path, serve=True, scenes=3) == 2


@pytest.mark.parametrize(
    ("serve", "terminal", "watched"), [(None, True, True), ("0", True, False), (None, False, False), ("1", True, True)]
)
def test_it_serves_only_at_a_terminal(
    monkeypatch: pytest.MonkeyPatch, serve: str | None, terminal: bool, watched: bool
) -> None:
    monkeypatch.delenv("SERVE", raising=False)
    if serve is not None:
        monkeypatch.setenv("SERVE", serve)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: terminal, raising=False)
    assert demo._is_interactive() is watched
