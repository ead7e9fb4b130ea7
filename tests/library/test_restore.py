"""Restoring: the library is what the backup is, or what it was, whatever happens in between."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from rmsh.codes import Codes
from rmsh.core.errors import FormatError, InputError, RmshError
from rmsh.core.locks import try_lock
from rmsh.library import Item, Library
from rmsh.library import backup as backup_module
from rmsh.library.backup import backup, restore
from rmsh.library.folder import write_manifest
from rmsh.library.recode import recode
from rmsh.library.snapshot import SNAPSHOT
from rmsh.library.verify import verify
from rmsh.model import Model

RESTORING = ".restoring"
Fill = Callable[..., None]
Code = Callable[..., Codes]
SAMPLES = Path(__file__).resolve().parent.parent / "samples"


@pytest.fixture
def copy(library: Library, fill: Fill, tmp_path: Path) -> Path:
    """A backup of the items a and b; the library has c since."""
    fill(library, ["a", "b"])
    backup(library, tmp_path / "copy")
    fill(library, ["c"])
    return tmp_path / "copy"


def _names(library: Library, code: Code) -> list[str]:
    (hits,) = library.search(code(["a"]), 9, to="text", model=library.generation().fingerprint)
    return sorted(hit.item.id for hit in hits)


def test_a_log_that_a_killed_writer_left_is_not_replayed_over_the_backup(
    library: Library, folder: Path, copy: Path, tmp_path: Path, code: Code
) -> None:
    killed = shutil.copytree(folder, tmp_path / "killed")  # while it is open, so with its log
    assert (killed / "items.sqlite-wal").stat().st_size > 0
    restore(copy, killed)
    assert verify(killed).problems == ()
    with Library.open(killed) as restored:
        assert _names(restored, code) == ["a", "b"]
    assert not (killed / RESTORING).exists()


def test_readers_and_writers_that_are_open_go_on_with_the_restored_state(
    library: Library, folder: Path, copy: Path, fill: Fill, code: Code
) -> None:
    with Library.open(folder) as reader:
        assert _names(reader, code) == ["a", "b", "c"]
        restore(copy, folder)
        assert _names(reader, code) == ["a", "b"]
        fill(library, ["d"])
        assert _names(reader, code) == ["a", "b", "d"]
    assert verify(folder).problems == ()


@pytest.mark.parametrize("more", [0, 1, 5])
def test_a_reader_notices_whatever_the_number_of_changes(
    more: int, *, library: Library, folder: Path, copy: Path, fill: Fill, code: Code
) -> None:
    for number in range(more):
        fill(library, [f"n{number}"])
    with Library.open(folder) as reader:
        assert len(_names(reader, code)) == 3 + more
        restore(copy, folder)
        assert _names(reader, code) == ["a", "b"]


def test_a_database_that_is_not_one_is_replaced_and_open_libraries_notice(
    library: Library, folder: Path, copy: Path, fill: Fill, code: Code
) -> None:
    with Library.open(folder) as reader:
        assert _names(reader, code) == ["a", "b", "c"]
        (folder / "garbage").write_bytes(b"not a database at all" * 500)
        os.replace(folder / "garbage", folder / "items.sqlite")
        restore(copy, folder)
        assert _names(reader, code) == ["a", "b"]
    with pytest.raises(RmshError, match="was restored"):
        fill(library, ["d"])
    assert verify(folder).problems == ()


def test_a_database_with_pages_of_another_size_is_replaced(
    library: Library, folder: Path, copy: Path, code: Code
) -> None:
    library.close()
    with closing(sqlite3.connect(folder / "items.sqlite", isolation_level=None)) as connection:
        for statement in ("PRAGMA journal_mode = DELETE", "PRAGMA page_size = 8192", "VACUUM"):
            connection.execute(statement)
        assert connection.execute("PRAGMA page_size").fetchone() == (8192,)
    with Library.open(folder) as reader:
        assert _names(reader, code) == ["a", "b", "c"]
        restore(copy, folder)
        assert _names(reader, code) == ["a", "b"]
    assert verify(folder).problems == ()


@pytest.mark.parametrize("name", ["items.sqlite", "manifest.json", "codes.snapshot", "model"])
def test_what_was_deleted_is_restored(name: str, *, library: Library, folder: Path, copy: Path, code: Code) -> None:
    library.write_snapshot()
    library.close()
    shutil.rmtree(folder / name) if (folder / name).is_dir() else (folder / name).unlink()
    restore(copy, folder)
    with Library.open(folder) as restored:
        assert _names(restored, code) == ["a", "b"]


def test_a_model_with_a_flipped_bit_is_replaced(library: Library, folder: Path, copy: Path) -> None:
    weights = folder / "model" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert verify(folder).problems
    restore(copy, folder)
    assert verify(folder).problems == ()


def test_the_model_of_the_backup_comes_back_after_a_recoding(
    library: Library, folder: Path, copy: Path, code: Code, model: Model, new_model: Model
) -> None:
    recode(library, new_model, encode=lambda items: {"text": code([item.id for item in items], bits=24)})
    restore(copy, folder)
    with Library.open(folder, writable=True) as restored:
        assert restored.model().fingerprint == model.fingerprint
        assert _names(restored, code) == ["a", "b"]
    assert not (folder / "model.next").exists()


@pytest.mark.parametrize("name", ["items.sqlite", "codes.snapshot", "model/model.safetensors"])
def test_a_damaged_backup_changes_nothing(name: str, *, library: Library, folder: Path, copy: Path) -> None:
    path = copy / name
    content = bytearray(path.read_bytes())
    at = content.find(b"text of b") if name == "items.sqlite" else len(content) // 2
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(FormatError, match=f"{copy} is damaged"):
        restore(copy, folder)
    assert (library.count(), verify(folder).problems) == (3, ())
    assert not (folder / RESTORING).exists()


def test_another_library_is_replaced_only_when_asked_to(
    copy: Path, tmp_path: Path, model: Model, fill: Fill, code: Code
) -> None:
    with Library.create(tmp_path / "other", model) as other:
        fill(other, ["x"])
    with pytest.raises(InputError, match="--replace"):
        restore(copy, tmp_path / "other")
    with Library.open(tmp_path / "other") as reader:
        assert _names(reader, code) == ["x"]
        restore(copy, tmp_path / "other", replace=True)
        assert _names(reader, code) == ["a", "b"]
    assert verify(tmp_path / "other").problems == ()


def test_a_folder_of_something_else_is_refused(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("keep me")
    with pytest.raises(InputError, match="neither empty nor a library"):
        restore(copy, tmp_path / "mine", replace=True)
    with pytest.raises(InputError, match="two different folders"):
        restore(copy, copy)
    with pytest.raises(FormatError, match="gone does not exist"):
        restore(tmp_path / "gone", tmp_path / "new")


@pytest.mark.parametrize("there", [True, False])
def test_a_new_or_empty_folder_becomes_the_library(there: bool, *, copy: Path, tmp_path: Path, code: Code) -> None:
    if there:
        (tmp_path / "new").mkdir()
    assert restore(copy, tmp_path / "new").items == 2
    with Library.open(tmp_path / "new", writable=True) as restored:
        assert _names(restored, code) == ["a", "b"]
    assert verify(tmp_path / "new").problems == ()


def test_the_replaced_files_are_kept_when_asked_for(library: Library, folder: Path, copy: Path) -> None:
    library.write_snapshot()
    assert restore(copy, folder).replaced is None
    assert list(folder.glob("replaced-*")) == []
    done = restore(copy, folder, keep=True)
    assert done.replaced is not None
    assert {"items.sqlite", "manifest.json", SNAPSHOT, "model"} <= {path.name for path in done.replaced.iterdir()}


def test_the_replaced_files_are_kept_if_the_restore_fails_after_the_database_was_replaced(
    library: Library, folder: Path, copy: Path, code: Code, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(backup_module, "write_manifest", _fail_for(folder))
        with pytest.raises(RmshError, match="full"):
            restore(copy, folder)
    (kept,) = folder.glob("replaced-*")
    assert {"items.sqlite", "manifest.json", "model"} <= {path.name for path in kept.iterdir()}
    assert _names(library, code) == ["a", "b"]
    restore(copy, folder)
    assert verify(folder).problems == ()


def _fail_for(folder: Path) -> Callable[..., None]:
    def write(where: Path, connection: sqlite3.Connection) -> None:
        if where == folder:
            raise OSError(errno.ENOSPC, "no space left")
        write_manifest(where, connection)

    return write


def test_images_of_the_backup_come_back_and_changed_ones_are_kept(
    library: Library, folder: Path, tmp_path: Path, code: Code
) -> None:
    (folder / "photos").mkdir()
    for name in "ab":
        (folder / "photos" / f"{name}.jpg").write_bytes(b"old")
    items = [Item(name, picture=f"photos/{name}.jpg") for name in "ab"]
    library.add(items, {"text": code(["a", "b"])}, model=library.generation().fingerprint)
    backup(library, tmp_path / "copy")
    (folder / "photos" / "a.jpg").unlink()
    (folder / "photos" / "b.jpg").write_bytes(b"new")
    done = restore(tmp_path / "copy", folder, keep=True)
    assert [(folder / "photos" / f"{name}.jpg").read_bytes() for name in "ab"] == [b"old", b"old"]
    assert done.replaced is not None
    assert (done.replaced / "photos" / "b.jpg").read_bytes() == b"new"


def test_a_backup_of_an_older_format_is_upgraded_and_itself_not_changed(tmp_path: Path) -> None:
    old = shutil.copytree(SAMPLES / "library_v1", tmp_path / "old")
    before = (old / "items.sqlite").read_bytes()
    assert restore(old, tmp_path / "new").items == 5
    assert restore(old, tmp_path / "new").items == 5
    assert verify(tmp_path / "new").problems == ()
    assert (old / "items.sqlite").read_bytes() == before


def test_a_writer_that_does_not_finish_is_waited_for_and_nothing_is_changed(
    library: Library, folder: Path, copy: Path
) -> None:
    with library.transaction(), pytest.raises(RmshError, match="is being written to"):
        restore(copy, folder, timeout=0.1)
    assert library.count() == 3
    assert not (folder / RESTORING).exists()


def test_a_restore_waits_for_no_other_one(folder: Path, copy: Path, library: Library) -> None:
    with try_lock(folder / ".restoring.lock"), pytest.raises(RmshError, match="is restoring"):
        restore(copy, folder)
    assert library.count() == 3
    assert restore(copy, folder).items == 2


def test_what_an_interrupted_restore_left_is_deleted_by_the_next_one(
    library: Library, folder: Path, copy: Path, code: Code
) -> None:
    (folder / RESTORING / "new").mkdir(parents=True)
    (folder / RESTORING / "new" / "items.sqlite").write_bytes(b"half of it")
    assert _names(library, code) == ["a", "b", "c"]
    restore(copy, folder)
    assert _names(library, code) == ["a", "b"]
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


def test_changes_acknowledged_during_a_restore_are_those_of_the_replaced_library(
    library: Library, folder: Path, copy: Path, fill: Fill, code: Code, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: object, **options: object) -> bool:
        fill(library, ["late"])
        return False

    set_aside = backup_module._set_aside
    monkeypatch.setattr(backup_module, "_set_aside", lambda *a, **o: late() or set_aside(*a, **o))
    restore(copy, folder)
    with Library.open(folder) as restored:
        assert _names(restored, code) == ["a", "b"]
    assert verify(folder).problems == ()


KILLED = """
import os, signal, sys
from pathlib import Path
moment, count = int(sys.argv[3]), 0
def watch(event, arguments):
    global count
    if event.startswith(("os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.", "sqlite3.connect")):
        count += 1
        if count == moment:
            os.kill(os.getpid(), signal.SIGKILL)
from rmsh.library.backup import restore
sys.addaudithook(watch)
restore(Path(sys.argv[1]), Path(sys.argv[2]), replace=True)
"""


def _state(folder: Path, code: Code) -> list[str]:
    with Library.open(folder) as reader:
        assert reader.model().fingerprint == reader.generation().fingerprint
        return _names(reader, code)


def _is_refused(folder: Path) -> bool:
    """Whether readers are told to restore the library again, instead of being served a mixture of two."""
    try:
        Library.open(folder).close()
    except FormatError as error:
        return "files of two libraries" in str(error)
    return False


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("other", [False, True])
def test_a_restore_killed_at_any_moment_leaves_the_old_or_the_new_state(
    other: bool, *, library: Library, folder: Path, copy: Path, tmp_path: Path, code: Code, model: Model, fill: Fill
) -> None:
    library.write_snapshot()
    library.close()
    if other:
        folder = tmp_path / "other"
        with Library.create(folder, model) as another:
            fill(another, ["a", "b", "c"])
    states = []
    for moment in itertools.count(1, 3):
        target = shutil.copytree(folder, tmp_path / "target")
        program = [sys.executable, "-c", KILLED, str(copy), str(target), str(moment)]
        done = subprocess.run(program, capture_output=True, text=True)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        again = shutil.copytree(target, tmp_path / "again")
        if _is_refused(target):
            assert other
        else:
            states.append(_state(target, code))
            Library.open(target, writable=True).close()
            assert _state(target, code) == states[-1]
            assert verify(target).problems == ()
        restore(copy, again, replace=True)
        assert _state(again, code) == ["a", "b"]
        assert verify(again).problems == ()
        shutil.rmtree(target)
        shutil.rmtree(again)
        if done.returncode == 0:
            break
    assert states[0] == ["a", "b", "c"]
    assert states == sorted(states, reverse=True)
