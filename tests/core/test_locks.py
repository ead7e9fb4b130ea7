"""Claims: one holder at a time, and none that is dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rmsh.core.locks import claimed

HOLD = """
import sys, pathlib
from rmsh.features.claims import claimed
with claimed(pathlib.Path(sys.argv[1])) as mine:
    print(mine, flush=True)
    sys.stdin.read()
"""


def test_a_claim_has_one_holder_and_can_be_had_again(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "a.claim"
    with claimed(path) as first, claimed(path) as second:
        assert (first, second) == (True, False)
        assert path.read_text().split()[1] == str(os.getpid())
    with claimed(path) as again:
        assert again


def test_the_claim_of_a_killed_process_is_free(tmp_path: Path) -> None:
    path = tmp_path / "a.claim"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=-1, stdout=-1, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        with claimed(path) as mine:
            assert not mine
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with claimed(path) as mine:
        assert mine


def test_a_folder_that_was_removed_meanwhile_gives_no_claim(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: None)
    with claimed(tmp_path / "gone" / "a.claim") as mine:
        assert not mine


def test_a_folder_that_cannot_be_made_is_no_claim_of_somebody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise FileNotFoundError  # as a folder of the system does

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(FileNotFoundError), claimed(tmp_path / "gone" / "a.claim"):
        pass
