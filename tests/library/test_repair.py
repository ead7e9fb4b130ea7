"""Damage inside rows: it is recognised, never served, and repaired from whichever copy is right."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from rmsh.codes import Codes
from rmsh.core.errors import FormatError
from rmsh.index.filters import Text
from rmsh.library import Item, Library
from rmsh.library.backup import backup, restore
from rmsh.library.database import read_acknowledged
from rmsh.library.export import export_parquet
from rmsh.library.maintenance import compact
from rmsh.library.repair import repair
from rmsh.library.snapshot import SNAPSHOT
from rmsh.library.verify import verify

Fill = Callable[..., None]
Code = Callable[..., Codes]

FLIP_CODE = "UPDATE codes SET text = CAST(x'ffff' AS BLOB) WHERE row = 2"
FLIP_TEXT = "UPDATE items SET text = 'text of B' WHERE row = 2"


@pytest.fixture
def stocked(library: Library, fill: Fill) -> Library:
    """Three items and a snapshot of them."""
    fill(library, ["a", "b", "c"])
    compact(library)
    return library


def _spoil(library: Library, *statements: str) -> None:
    """Change the database behind everything that keeps it intact."""
    with library.maintenance() as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA recursive_triggers = OFF")
        (trigger,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'item_kept'").fetchone()
        connection.execute("DROP TRIGGER item_kept")
        for statement in statements:
            connection.execute(statement)
        connection.execute(trigger)
        connection.execute("PRAGMA foreign_keys = ON")


def _found(library: Library, query: Codes, k: int = 3, **options: object) -> list[str]:
    (hits,) = library.search(query, k, to="text", model=library.generation().fingerprint, **options)
    return sorted(hit.item.id for hit in hits)


def test_verify_blames_the_database_and_not_the_snapshot(stocked: Library, folder: Path) -> None:
    _spoil(stocked, FLIP_CODE)
    (problem,) = verify(folder).problems
    assert "'b' (row 2)" in problem
    assert "`rmsh library repair`" in problem


def test_compact_does_not_overwrite_a_good_snapshot_from_a_damaged_database(stocked: Library, folder: Path) -> None:
    before = (folder / SNAPSHOT).read_bytes()
    _spoil(stocked, FLIP_CODE)
    with pytest.raises(FormatError, match=r"'b' \(row 2\)"):
        compact(stocked)
    with pytest.raises(FormatError, match=r"'b' \(row 2\)"):
        stocked.write_snapshot()
    assert (folder / SNAPSHOT).read_bytes() == before


def test_compact_does_not_overwrite_the_only_copy_of_a_lost_code(stocked: Library, folder: Path) -> None:
    before = (folder / SNAPSHOT).read_bytes()
    _spoil(stocked, "DELETE FROM codes WHERE row = 2")
    with pytest.raises(FormatError, match=r"'b' \(row 2\)"):
        compact(stocked)
    assert (folder / SNAPSHOT).read_bytes() == before


def test_a_damaged_code_is_repaired_from_the_snapshot(stocked: Library, folder: Path, code: Code) -> None:
    _spoil(stocked, FLIP_CODE)
    done = repair(folder)
    assert done.lost == []
    assert any("row 2 were restored from the snapshot" in sentence for sentence in done.restored)
    assert verify(folder).problems == ()
    assert stocked.codes(["b"], "text").packed.tolist() == code(["b"]).packed.tolist()


def test_a_damaged_code_is_not_loaded_without_the_snapshot_and_the_rest_is_found(
    stocked: Library, folder: Path, code: Code, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / SNAPSHOT).unlink()
    _spoil(stocked, FLIP_CODE)
    with caplog.at_level(logging.WARNING), Library.open(folder) as reader:
        assert _found(reader, code(["b"])) == ["a", "c"]
        assert _found(reader, code(["b"])) == ["a", "c"]
        assert reader.codes(["a", "b"], "text").ids.tolist() == ["a"]
        with pytest.raises(FormatError, match=r"'b' \(row 2\).*`rmsh library repair`"):
            reader.codes(["b"], "text")
    assert caplog.text.count("'b' (row 2)") == 1


@pytest.mark.parametrize(
    "statement",
    [
        FLIP_TEXT,
        "UPDATE items SET text = CAST(x'e1e1' AS TEXT) WHERE row = 2",
        "UPDATE items SET text = CAST(text AS BLOB) WHERE row = 2",
        "UPDATE items SET picture = 'x.jpg' WHERE row = 2",
        "UPDATE items SET checksum = checksum + 1 WHERE row = 2",
        "UPDATE labels SET name = 'q' WHERE name = 'b'",
        "DELETE FROM item_labels WHERE row = 2",
        "DELETE FROM labels WHERE name = 'b'",
        "INSERT INTO item_labels VALUES (1, 2)",
        "UPDATE items SET id = 'x' WHERE row = 2",
    ],
)
def test_a_damaged_item_is_left_out_reported_and_restored_from_a_backup(
    statement: str, *, stocked: Library, folder: Path, tmp_path: Path, code: Code, caplog: pytest.LogCaptureFixture
) -> None:
    backup(stocked, tmp_path / "copy")
    with Library.open(folder) as reader:
        _spoil(stocked, statement)
        assert _found(reader, code(["b"]), 2) == ["a", "c"]
        assert "(row 2)" in caplog.text
        assert any("(row 2)" in problem for problem in verify(folder).problems)
        assert any("(row 2)" in sentence for sentence in repair(folder).lost)
        restore(tmp_path / "copy", folder)
        assert verify(folder).problems == ()
        assert _found(reader, code(["b"]), 1) == ["b"]
        assert reader.get("b") == Item("b", text="text of b", labels=("b",))
        assert _found(reader, code(["b"]), where=Text("b")) == ["b"]


def test_a_reader_without_the_snapshot_finds_a_repaired_code_at_once(
    stocked: Library, folder: Path, tmp_path: Path, code: Code
) -> None:
    (folder / SNAPSHOT).rename(tmp_path / "aside")
    _spoil(stocked, FLIP_CODE)
    with Library.open(folder) as reader:
        assert _found(reader, code(["b"])) == ["a", "c"]
        (tmp_path / "aside").rename(folder / SNAPSHOT)
        done = repair(folder)
        assert any("row 2 were restored from the snapshot" in sentence for sentence in done.restored)
        assert _found(reader, code(["b"]), 1) == ["b"]


def test_asking_for_a_damaged_item_is_an_error_and_exports_refuse_it(stocked: Library, tmp_path: Path) -> None:
    _spoil(stocked, FLIP_TEXT)
    for ask in (lambda: stocked.get("b"), lambda: export_parquet(stocked, tmp_path / "x.parquet")):
        with pytest.raises(FormatError, match=r"'b' \(row 2\).*`rmsh library repair`"):
            ask()
    assert stocked.get("a") is not None


def test_exports_refuse_a_damaged_code(stocked: Library, tmp_path: Path) -> None:
    _spoil(stocked, FLIP_CODE)
    with pytest.raises(FormatError, match=r"'b' \(row 2\).*`rmsh library repair`"):
        export_parquet(stocked, tmp_path / "x.parquet")
    assert not (tmp_path / "x.parquet").exists()


def test_what_cannot_be_saved_stays_reported(stocked: Library, folder: Path) -> None:
    (folder / SNAPSHOT).unlink()
    _spoil(stocked, FLIP_CODE, FLIP_TEXT)
    for _ in range(2):
        done = repair(folder)
        assert len(done.lost) == 2
        assert all("'b' (row 2)" in sentence for sentence in done.lost)
    assert any("'b' (row 2)" in problem for problem in verify(folder).problems)
    assert not (folder / SNAPSHOT).exists()


def test_a_lost_row_is_reported_and_restored_from_a_backup(stocked: Library, folder: Path, tmp_path: Path) -> None:
    backup(stocked, tmp_path / "copy")
    _spoil(
        stocked,
        "DELETE FROM items WHERE row = 3",
        "DELETE FROM codes WHERE row = 3",
        "DELETE FROM item_labels WHERE row = 3",
    )
    assert any("row 3" in sentence for sentence in repair(folder).lost)
    restore(tmp_path / "copy", folder)
    assert verify(folder).problems == ()
    assert stocked.get("c") == Item("c", text="text of c", labels=("c",))


def test_a_damaged_item_can_be_removed_and_added_again(stocked: Library, folder: Path, fill: Fill) -> None:
    _spoil(stocked, FLIP_TEXT)
    stocked.remove(["b"])
    fill(stocked, ["b"])
    assert verify(folder).problems == ()
    assert stocked.get("b") == Item("b", text="text of b", labels=("b",))


def test_a_damaged_snapshot_and_a_damaged_text_index_are_rewritten(stocked: Library, folder: Path) -> None:
    _spoil(stocked, "INSERT INTO texts (rowid, text) VALUES (2, 'more')")
    (folder / SNAPSHOT).write_bytes(b"nonsense")
    assert repair(folder).lost == []
    assert verify(folder).problems == ()
    assert (folder / SNAPSHOT).stat().st_size > 100


def test_an_intact_library_is_not_changed(stocked: Library, folder: Path) -> None:
    done = repair(folder)
    assert (done.restored, done.lost) == ([], [])


def test_a_writer_that_opens_keeps_a_snapshot_it_cannot_rewrite(stocked: Library, folder: Path) -> None:
    _spoil(stocked, FLIP_CODE)
    content = bytearray((folder / SNAPSHOT).read_bytes())
    content[20] ^= 1
    (folder / SNAPSHOT).write_bytes(content)
    Library.open(folder, writable=True).close()
    assert (folder / SNAPSHOT).read_bytes() == bytes(content)


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_a_damaged_model_is_restored_from_a_backup(
    file: str, *, stocked: Library, folder: Path, tmp_path: Path
) -> None:
    backup(stocked, tmp_path / "copy")
    content = bytearray((folder / "model" / file).read_bytes())
    content[-9] ^= 1
    (folder / "model" / file).write_bytes(content)
    assert any("model is damaged" in sentence for sentence in repair(folder).lost)
    restore(tmp_path / "copy", folder)
    assert verify(folder).problems == ()
    assert stocked.model().fingerprint == stocked.generation().fingerprint


def test_the_log_goes_on_with_later_numbers_after_a_repair(stocked: Library, folder: Path, fill: Fill) -> None:
    """An interrupted repair would otherwise look like the loss of all acknowledged changes."""
    fill(stocked, ["d"])
    before = read_acknowledged(folder)
    _spoil(stocked, "UPDATE changes SET first = 7")
    assert repair(folder).lost == []
    after = read_acknowledged(folder)
    assert before is not None
    assert after is not None
    assert after[0] > before[0]
    assert verify(folder).problems == ()
