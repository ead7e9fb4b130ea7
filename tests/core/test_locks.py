"""Locks: one holder at a time, and none after its process has died."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rmsh.core.locks import try_lock

HOLD = """
import sys, pathlib
from rmsh.core.locks import try_lock
with try_lock(pathlib.Path(sys.argv[1])) as acquired:
    print(acquired, flush=True)
    sys.stdin.read()
"""


def test_a_lock_has_one_holder_and_can_be_acquired_again(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "a.lock"
    with try_lock(path) as first, try_lock(path) as second:
        assert (first, second) == (True, False)
    with try_lock(path) as again:
        assert again


def test_an_error_in_the_block_releases_the_lock_and_passes_through(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with pytest.raises(FileNotFoundError, match="inside"), try_lock(path):
        raise FileNotFoundError("inside")
    with try_lock(path) as again:
        assert again


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=-1, stdout=-1, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        with try_lock(path) as acquired:
            assert not acquired
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with try_lock(path) as acquired:
        assert acquired


def test_a_lock_file_that_its_holder_removes_does_not_break_the_next_lock(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with try_lock(path):
        path.unlink()
    with try_lock(path) as first, try_lock(path) as second:
        assert (first, second) == (True, False)


def test_a_folder_that_was_removed_meanwhile_gives_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def acquire(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr("filelock.FileLock.acquire", acquire)
    with try_lock(tmp_path / "gone" / "a.lock") as acquired:
        assert not acquired


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"), try_lock(tmp_path / "file" / "a.lock"):
        pass
