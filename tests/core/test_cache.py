"""The cache folder: environment variables in order of precedence, and never the real one in tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rmsh.core.files import cache_folder


def test_tests_use_a_temporary_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert cache_folder().is_relative_to(tmp_path_factory.getbasetemp())


def test_the_environment_names_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "all"))
    monkeypatch.setenv("RMSH_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("RMSH_CACHE")
    assert cache_folder() == tmp_path / "all" / "rmsh"


@pytest.mark.skipif(sys.platform != "linux", reason="platformdirs knows the folders of other systems")
def test_the_cache_is_in_the_users_folder_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RMSH_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache_folder() == Path.home() / ".cache" / "rmsh"
