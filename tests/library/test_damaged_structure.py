"""Damage to tables, indexes and their definitions: rows that are lost are noticed, and every error is one sentence."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from rmsh.codes import Codes
from rmsh.core.errors import FormatError
from rmsh.index.filters import Id
from rmsh.library import Item, Library
from rmsh.library.backup import backup, restore
from rmsh.library.export import export_parquet
from rmsh.library.maintenance import compact
from rmsh.library.repair import repair
from rmsh.library.verify import verify

Fill = Callable[..., None]
Code = Callable[..., Codes]


@pytest.fixture
def copy(library: Library, folder: Path, tmp_path: Path, fill: Fill) -> Path:
    """A backup of a library of four items, which is closed."""
    fill(library, ["a", "b", "c", "17"])
    compact(library)
    backup(library, tmp_path / "copy")
    library.close()
    return tmp_path / "copy"


def _page_of(folder: Path, name: str) -> int:
    """The offset of the first page of a table or index."""
    with closing(sqlite3.connect(folder / "items.sqlite")) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    return 4096 * (int(page) - 1)


def _lose_last_row(folder: Path, name: str) -> None:
    """Take the last entry away from a table or index, by the number of entries in the header of its page."""
    content = bytearray((folder / "items.sqlite").read_bytes())
    content[_page_of(folder, name) + 4] -= 1
    (folder / "items.sqlite").write_bytes(content)


def _replace(folder: Path, old: bytes, new: bytes) -> None:
    content = (folder / "items.sqlite").read_bytes()
    assert content.count(old) == 1
    (folder / "items.sqlite").write_bytes(content.replace(old, new))


def _spoil(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "items.sqlite", isolation_level=None)) as connection:
        connection.execute(statement)


def test_a_count_from_a_damaged_index_is_refused_and_repaired(copy: Path, folder: Path) -> None:
    _lose_last_row(folder, "sqlite_autoindex_items_1")
    with Library.open(folder) as reader:
        with pytest.raises(FormatError, match="4 items, but 3 in their index"):
            reader.count()
        assert reader.get("c") == Item("c", text="text of c", labels=("c",))
    assert verify(folder).problems
    assert repair(folder).lost == []
    with Library.open(folder) as reader:
        assert reader.count() == 4


def test_a_count_follows_every_change(library: Library, folder: Path, fill: Fill) -> None:
    fill(library, ["a", "b"])
    with Library.open(folder) as reader:
        assert (reader.count(), reader.count()) == (2, 2)
        library.remove(["a"])
        assert reader.count() == 1


@pytest.mark.parametrize("table", ["codes", "items"])
def test_an_export_without_a_lost_row_is_refused(table: str, *, copy: Path, folder: Path, tmp_path: Path) -> None:
    _lose_last_row(folder, table)
    with Library.open(folder) as reader, pytest.raises(FormatError, match=r"row 4"):
        export_parquet(reader, tmp_path / "out.parquet")
    assert any("row 4" in problem for problem in verify(folder).problems)
    restore(copy, folder)
    with Library.open(folder) as reader:
        assert export_parquet(reader, tmp_path / "out.parquet") == 4


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"CREATE TABLE generations", b"CREATE T\xc1BLE generations"),
        (b"CREATE TABLE library", b"CREATE TABLE libr`ry"),
        (b"USING fts5(text", b"USING fts5(uext"),
        (b"USING fts5(text, content", b"USING fts5(text, bontent"),
        (b"USING fts5(text, content", b"USING fts5(text, \xe3ontent"),
        (b"\n    store TEXT", b"\n    st\xefre TEXT"),
        (b"\n    id TEXT NOT NULL UNIQUE", b"\n    id TEXU NOT NULL UNIQUE"),  # 17 and "17" would differ
    ],
)
def test_a_damaged_definition_of_a_table_is_one_sentence_and_restored(
    old: bytes, new: bytes, *, copy: Path, folder: Path
) -> None:
    _replace(folder, old, new)
    assert verify(folder).problems
    with pytest.raises(FormatError, match=r"is damaged \(") as refused:
        repair(folder)
    assert "\n" not in str(refused.value)
    restore(copy, folder)
    with Library.open(folder) as reader:
        assert reader.get("17") == Item("17", text="text of 17", labels=("1",))
    assert verify(folder).problems == ()


@pytest.mark.parametrize("table", ["codes", "item_labels"])
def test_a_row_that_is_not_a_number_is_reported(table: str, *, copy: Path, folder: Path) -> None:
    _spoil(folder, f"UPDATE {table} SET row = 'b' WHERE row = 2")  # noqa: S608
    assert any("row 2" in problem for problem in verify(folder).problems)
    restore(copy, folder)
    assert verify(folder).problems == ()


def test_a_name_without_a_checksum_is_not_repaired_but_restored(copy: Path, folder: Path) -> None:
    _spoil(folder, "UPDATE labels SET name = x'ff' WHERE name = 'b'")
    assert any("(row " in sentence for sentence in repair(folder).lost)
    restore(copy, folder)
    assert verify(folder).problems == ()


@pytest.mark.parametrize("manifest", [True, False])
def test_a_library_with_a_damaged_description_is_restored(manifest: bool, *, copy: Path, folder: Path) -> None:
    _spoil(folder, "UPDATE library SET source = 'elsewhere'")
    if not manifest:
        (folder / "manifest.json").unlink()
    restore(copy, folder, replace=True)
    with Library.open(folder) as reader:
        assert reader.count() == 4


@pytest.mark.parametrize(("old", "new"), [("b", "c"), ("c", "b"), ("b", "j")])
def test_an_index_that_leads_to_another_item_does_not_change_what_is_found(
    old: str, new: str, *, copy: Path, folder: Path, code: Code
) -> None:
    content, page = bytearray((folder / "items.sqlite").read_bytes()), _page_of(folder, "sqlite_autoindex_items_1")
    at = content.index(old.encode(), page)
    content[at] = ord(new)  # one flipped bit
    (folder / "items.sqlite").write_bytes(content)
    with Library.open(folder) as reader:
        for name in ("a", "b", "c"):
            assert reader.get(name) == Item(name, text=f"text of {name}", labels=(name,))
        assert reader.get("j") is None
        assert reader.codes(["17", "a", "b", "c"], "text").ids.tolist() == ["17", "a", "b", "c"]
        for name, found in {"b": ["b"], "c": ["c"], "j": []}.items():
            (hits,) = reader.search(code(["q"]), 4, to="text", model=reader.generation().fingerprint, where=Id(name))
            assert [hit.item.id for hit in hits] == found
    assert verify(folder).problems
    assert repair(folder).lost == []


def test_a_damaged_page_is_one_sentence_and_not_repaired(copy: Path, folder: Path) -> None:
    content, page = bytearray((folder / "items.sqlite").read_bytes()), _page_of(folder, "sqlite_sequence")
    content[page + 8] ^= 8  # where the first row is
    (folder / "items.sqlite").write_bytes(content)
    problems = verify(folder).problems
    assert problems
    assert not any("\n" in problem or "***" in problem for problem in problems)
    with pytest.raises(FormatError, match="cannot be repaired"):
        repair(folder)


def test_a_damaged_manifest_is_rewritten_by_a_repair(copy: Path, folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"bits": 17}))
    assert any("manifest" in sentence for sentence in repair(folder).restored)
    assert json.loads((folder / "manifest.json").read_text()) == manifest
    assert verify(folder).problems == ()
