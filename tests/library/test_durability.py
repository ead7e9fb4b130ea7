"""What is acknowledged is on the disk: how the database is opened, and what is flushed in which order."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rmsh.core.files import make_folder
from rmsh.library import Library
from rmsh.library.maintenance import compact
from rmsh.library.snapshot import SNAPSHOT
from rmsh.model import Model

Fill = Callable[..., None]


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Flushes and renames in their order, each with the inode of what it is about."""
    seen: list[tuple[str, int]] = []
    flush, rename = os.fsync, os.replace

    def fsync(handle: int) -> None:
        flush(handle)
        seen.append(("flush", os.fstat(handle).st_ino))

    def replace(source: str, target: str) -> None:
        rename(source, target)
        seen.append(("rename", os.stat(target).st_ino))

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    return seen


def test_the_writer_commits_to_the_disk(library: Library) -> None:
    with library.maintenance() as connection:
        asked = ("synchronous", "journal_mode", "foreign_keys", "fullfsync")
        assert [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in asked] == [2, "wal", 1, 1]


def test_readers_cannot_write(library: Library) -> None:
    with library.reading() as connection:
        assert connection.execute("PRAGMA query_only").fetchone() == (1,)


def _flushed_then_renamed_then_folder(path: Path, events: list[tuple[str, int]]) -> bool:
    file, folder = path.stat().st_ino, path.parent.stat().st_ino
    wanted = [("flush", file), ("rename", file), ("flush", folder)]
    return events[events.index(wanted[0]) :][:3] == wanted


def test_the_snapshot_is_flushed_renamed_and_its_folder_flushed(
    library: Library, folder: Path, fill: Fill, events: list[tuple[str, int]]
) -> None:
    fill(library, ["a"])
    compact(library)
    assert _flushed_then_renamed_then_folder(folder / SNAPSHOT, events)


def test_a_new_library_is_flushed_its_manifest_last_and_then_the_folder_around_it(
    folder: Path, model: Model, events: list[tuple[str, int]]
) -> None:
    Library.create(folder, model).close()
    assert _flushed_then_renamed_then_folder(folder / "manifest.json", events)
    assert _flushed_then_renamed_then_folder(folder / "model" / "config.json", events)
    manifest = events.index(("rename", (folder / "manifest.json").stat().st_ino))
    assert [kind for kind, _ in events[manifest:]] == ["rename", "flush", "flush"]
    assert events[-1] == ("flush", folder.parent.stat().st_ino)


def test_a_new_folder_is_flushed_with_the_one_that_it_is_in(tmp_path: Path, events: list[tuple[str, int]]) -> None:
    make_folder(tmp_path / "a" / "b")  # otherwise a file in it would be lost with it
    assert events == [("flush", tmp_path.stat().st_ino), ("flush", (tmp_path / "a").stat().st_ino)]


def test_no_unfinished_file_is_left(library: Library, folder: Path, fill: Fill) -> None:
    fill(library, ["a"])
    compact(library)
    library.close()
    names = {path.name for path in folder.iterdir()}
    assert names == {"manifest.json", "model", "items.sqlite", "acknowledged", SNAPSHOT}


def test_compacting_takes_away_what_a_killed_writer_left(library: Library, folder: Path) -> None:
    (folder / f".{SNAPSHOT}.abc.tmp").write_bytes(b"half")
    compact(library)
    assert list(folder.glob(".*")) == []
