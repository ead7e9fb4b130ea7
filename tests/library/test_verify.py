"""Verifying: every kind of damage is one sentence, and a whole library has none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rmsh.codes import to_words
from rmsh.core.errors import FormatError
from rmsh.library import Library, snapshot
from rmsh.library.maintenance import compact
from rmsh.library.verify import verify
from rmsh.model import Model

Fill = Callable[..., None]


@pytest.fixture
def stocked(library: Library, fill: Fill) -> Library:
    fill(library, ["a", "b", "c"])
    compact(library)
    return library


def _spoil(library: Library, statement: str) -> None:
    """Change the database behind the back of everything that keeps it whole."""
    with library.maintenance() as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(statement)


def test_a_whole_library_has_no_problem(stocked: Library, folder: Path, fill: Fill) -> None:
    fill(stocked, ["d"])
    stocked.remove(["a"])
    verdict = verify(folder)
    assert verdict.problems == ()
    assert verdict.checked == (
        "database",
        "full-text index",
        "log of changes",
        "items, codes and snapshot",
        "labels",
        "vectors",
        "image files",
        "model",
        "manifest",
    )


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("DELETE FROM labels", "An entry of item_labels has no labels; restore a backup with `rmsh library restore`."),
        (
            "UPDATE texts_data SET block = zeroblob(9) WHERE id > 100",
            "full-text index does not match",
        ),
        ("INSERT INTO texts (rowid, text) VALUES (2, 'more')", "full-text index does not match"),
        (
            "DELETE FROM codes WHERE row = 2",
            "The codes of the item 'b' (row 2) are missing or do not match their checksum",
        ),
        (
            "UPDATE codes SET text = x'00' WHERE row = 2",
            "The codes of the item 'b' (row 2) are missing or do not match their checksum",
        ),
        (
            "UPDATE codes SET text = x'0000' WHERE row = 2",
            "The codes of the item 'b' (row 2) are missing or do not match their checksum",
        ),
        ("UPDATE generations SET bits = 15", "has 16 bits, the codes of the library 15"),
        ("UPDATE generations SET fingerprint = 'other'", "has no model with the fingerprint other"),
        ("UPDATE library SET id = 'other'", "is damaged (its description of the library)"),
        ("UPDATE library SET source = 'other'", "is damaged (its description of the library)"),
        ("UPDATE changes SET last = 7", "The log of changes is damaged at the entry 1"),
        ("UPDATE labels SET name = 'q' WHERE name = 'b'", "The list of labels is damaged"),
        ("UPDATE labels SET count = 2 WHERE name = 'b'", "The list of labels is damaged"),
        ("DELETE FROM item_labels WHERE row = 2", "label 'b' is damaged (0 of 1)"),
    ],
)
def test_damage_is_one_sentence(statement: str, sentence: str, *, stocked: Library, folder: Path) -> None:
    _spoil(stocked, statement)
    assert any(sentence in problem for problem in verify(folder).problems)


def test_a_database_that_lost_a_removed_item_of_the_snapshot_is_seen(stocked: Library, folder: Path) -> None:
    _spoil(stocked, "DELETE FROM items WHERE row = 3")
    _spoil(stocked, "DELETE FROM codes WHERE row = 3")
    assert any("the item of row 3, which is missing" in problem for problem in verify(folder).problems)


def test_a_model_that_was_taken_away_is_named(stocked: Library, folder: Path) -> None:
    shutil.rmtree(folder / "model")
    (problem,) = verify(folder).problems
    assert "`rmsh library restore`" in problem


def test_a_model_that_was_exchanged_is_named(stocked: Library, folder: Path, new_model: Model) -> None:
    new_model.save(folder / "model")
    (problem,) = verify(folder).problems
    assert "has no model" in problem


def test_a_manifest_that_does_not_agree_is_named_and_written_anew(stocked: Library, folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "bits": 99}))
    (problem,) = verify(folder).problems
    assert "`rmsh library upgrade`" in problem


def test_what_is_no_library_at_all_is_refused_and_not_checked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    for place, found in ((tmp_path, "has no manifest.json"), (tmp_path / "file", "is a file")):
        with pytest.raises(FormatError, match=f"{found}.*`rmsh build`"):
            verify(place)
    with pytest.raises(FormatError, match="gone does not exist"):
        verify(tmp_path / "gone")


def test_compacting_repairs_what_can_be_made_anew(stocked: Library, folder: Path) -> None:
    _spoil(stocked, "INSERT INTO texts (rowid, text) VALUES (2, 'more')")
    (folder / snapshot.SNAPSHOT).write_bytes(b"nonsense")
    assert len(verify(folder).problems) == 2
    compact(stocked)
    assert verify(folder).problems == ()


def test_a_snapshot_whose_writer_was_wrong_is_seen(
    stocked: Library, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "to_words", lambda packed: to_words(packed) ^ np.uint64(1))
    stocked.write_snapshot()
    (problem,) = verify(folder).problems
    assert "`rmsh library compact` rewrites the snapshot" in problem
