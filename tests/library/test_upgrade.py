"""Formats: a stored sample of every version opens, an older one is upgraded, a lost manifest is written anew."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rmsh.codes import Codes
from rmsh.core.errors import FormatError
from rmsh.index.filters import Label, Text
from rmsh.library import Item, Library, schema
from rmsh.library.maintenance import upgrade
from rmsh.library.verify import verify

Fill = Callable[..., None]
Code = Callable[..., Codes]

SAMPLES = Path(__file__).resolve().parent.parent / "samples"


@pytest.fixture(params=[1, 2])
def sample(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the library that was stored when a version was current."""
    return shutil.copytree(SAMPLES / f"library_v{request.param}", tmp_path / "sample")


def test_a_stored_library_opens_and_is_searched(sample: Path, code: Code) -> None:
    upgrade(sample)
    with Library.open(sample) as library:
        assert library.count() == 5
        assert library.get("dog1") == Item(
            "dog1", text='A "brown" dog', picture="photos/1.jpg", labels=("animal", "dog")
        )
        model = library.generation().fingerprint
        found = library.search(code(["dog1"], "image"), 5, to="image", model=model, where=~Label("cat"))
        assert (found[0][0].item.id, found[0][0].distance) == ("dog1", 0)
        found = library.search(code(["tree"]), 5, to="text", model=model, where=Text("tree"))
        assert [hit.item.id for hit in found[0]] == ["tree"]
        assert library.model().fingerprint == model
    assert verify(sample).problems == ()


def test_a_stored_library_can_be_changed(sample: Path, code: Code) -> None:
    upgrade(sample)
    with Library.open(sample, writable=True) as library:
        library.remove(["tree"])
        library.add([Item("new")], {"text": code(["new"])}, model=library.generation().fingerprint)
        assert library.count() == 5
    assert verify(sample).problems == ()


@pytest.mark.parametrize(
    ("left", "found"), [(None, "has no manifest.json"), (b"{", "unreadable"), (b"\xff", "unreadable")]
)
def test_a_lost_manifest_is_written_anew(
    left: bytes | None, found: str, *, library: Library, folder: Path, fill: Fill
) -> None:
    fill(library, ["a"])
    library.close()
    before = (folder / "manifest.json").read_bytes()
    (folder / "manifest.json").unlink()
    if left is not None:
        (folder / "manifest.json").write_bytes(left)
    with pytest.raises(FormatError, match=f"{found}.*`rmsh library upgrade"):
        Library.open(folder)
    assert upgrade(folder) == (schema.VERSION, schema.VERSION)
    assert (folder / "manifest.json").read_bytes() == before


def test_an_older_format_is_refused_until_it_is_upgraded(
    library: Library, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.close()
    current = schema.VERSION
    monkeypatch.setattr(schema, "VERSION", current + 1)
    monkeypatch.setattr(schema, "MIGRATIONS", {current: ("ALTER TABLE items ADD COLUMN added TEXT",)})
    with pytest.raises(FormatError, match=rf"format {current}, .*format {current + 1}.*`rmsh library upgrade"):
        Library.open(folder)
    assert upgrade(folder) == (current, current + 1)
    with Library.open(folder, writable=True) as opened, opened.reading() as connection:
        assert connection.execute("SELECT added FROM items").fetchall() == []


def test_a_step_that_fails_changes_nothing(library: Library, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    current = schema.VERSION
    monkeypatch.setattr(schema, "VERSION", current + 1)
    steps = ("ALTER TABLE items ADD COLUMN added TEXT", "INSERT INTO nowhere VALUES (1)")
    monkeypatch.setattr(schema, "MIGRATIONS", {current: steps})
    with pytest.raises(Exception, match="no such table: nowhere"):
        upgrade(folder)
    with library.reading() as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (current,)
        assert "added" not in {column[1] for column in connection.execute("PRAGMA table_info(items)")}


@pytest.mark.parametrize("step", ["maintenance.update_files", "folder.write_manifest"])
def test_an_upgrade_that_is_cut_off_leaves_the_old_format_and_may_be_repeated(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = shutil.copytree(SAMPLES / "library_v1", tmp_path / "old")
    with monkeypatch.context() as patch:
        patch.setattr(f"rmsh.library.{step}", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            upgrade(old)
    assert upgrade(old) == (1, schema.VERSION)
    assert verify(old).problems == ()


KILLED = """
import os, signal, sys
from pathlib import Path
from rmsh.library import schema
from rmsh.library.maintenance import upgrade
migrate = schema.migrate
def killed(connection, version):
    migrate(connection, version)
    os.kill(os.getpid(), signal.SIGKILL)
schema.migrate = killed
upgrade(Path(sys.argv[1]))
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_an_upgrade_that_is_killed_may_be_repeated(tmp_path: Path) -> None:
    old = shutil.copytree(SAMPLES / "library_v1", tmp_path / "old")
    assert subprocess.run([sys.executable, "-c", KILLED, str(old)]).returncode != 0
    with pytest.raises(FormatError, match="has format 1"):
        Library.open(old)
    assert upgrade(old) == (1, schema.VERSION)
    assert verify(old).problems == ()


def test_a_newer_format_is_not_touched(library: Library, folder: Path) -> None:
    with library.maintenance() as connection:
        connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    with pytest.raises(FormatError, match=rf"format {schema.VERSION + 1}, .*up to format {schema.VERSION}"):
        upgrade(folder)


def test_a_folder_without_a_database_is_no_library(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"has no items\.sqlite"):
        upgrade(tmp_path)
