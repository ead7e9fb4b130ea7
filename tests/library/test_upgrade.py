"""Formats: a stored sample of every version opens, an older one is upgraded, a lost manifest is written anew."""

from __future__ import annotations

import shutil
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


@pytest.fixture(params=[1])
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
    ("left", "found"), [(None, "has no manifest.json"), (b"{", "that cannot be read"), (b"\xff", "that cannot be read")]
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
    with pytest.raises(FormatError, match=f"{found}; `rmsh library upgrade .*` writes it anew from items.sqlite"):
        Library.open(folder)
    assert upgrade(folder) == (1, 1)
    assert (folder / "manifest.json").read_bytes() == before


def test_an_older_format_is_refused_until_it_is_upgraded(
    library: Library, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.close()
    monkeypatch.setattr(schema, "VERSION", 2)
    monkeypatch.setattr(schema, "MIGRATIONS", {1: "ALTER TABLE items ADD COLUMN added TEXT"})
    with pytest.raises(FormatError, match="has format 1, this rmsh reads 2; `rmsh library upgrade` it"):
        Library.open(folder)
    assert upgrade(folder) == (1, 2)
    with Library.open(folder, writable=True) as opened, opened.reading() as connection:
        assert connection.execute("SELECT added FROM items").fetchall() == []


def test_a_step_that_fails_changes_nothing(library: Library, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "VERSION", 2)
    monkeypatch.setattr(
        schema, "MIGRATIONS", {1: "ALTER TABLE items ADD COLUMN added TEXT; INSERT INTO nowhere VALUES (1)"}
    )
    with pytest.raises(Exception, match="no such table: nowhere"):
        upgrade(folder)
    with library.reading() as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert "added" not in {column[1] for column in connection.execute("PRAGMA table_info(items)")}


def test_a_newer_format_is_not_touched(library: Library, folder: Path) -> None:
    with library.maintenance() as connection:
        connection.execute("PRAGMA user_version = 2")
    with pytest.raises(FormatError, match="has format 2, this rmsh reads up to format 1; update rmsh"):
        upgrade(folder)


def test_a_folder_without_a_database_is_no_library(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"has no items\.sqlite"):
        upgrade(tmp_path)
