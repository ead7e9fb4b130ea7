"""Where the cache is: what the environment says, in its order, and never the user's own in these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmsh.core.cache import cache_folder


def test_tests_write_into_a_cache_of_their_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert cache_folder().is_relative_to(tmp_path_factory.getbasetemp())


def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "all"))
    monkeypatch.setenv("RMSH_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("RMSH_CACHE")
    assert cache_folder() == tmp_path / "all" / "rmsh"


def test_the_cache_is_in_the_users_folder_where_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RMSH_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache_folder() == Path.home() / ".cache" / "rmsh"
