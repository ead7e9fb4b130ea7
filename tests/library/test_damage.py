"""Damage is noticed before it changes an answer: every kind of value, lost rows, lost changes, overwritten files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.core.errors import FormatError
from rmsh.features import extract
from rmsh.features.bag_of_words import BagOfWords
from rmsh.hash_function import HashFunction, JointLayer, Layer
from rmsh.index.filters import Id, Label
from rmsh.library import Item, Library, database, snapshot
from rmsh.library.backup import backup, restore
from rmsh.library.items import CandidateQuery
from rmsh.library.maintenance import compact
from rmsh.library.recode import recode
from rmsh.library.repair import repair
from rmsh.library.snapshot import SNAPSHOT
from rmsh.library.verify import verify
from rmsh.model import Model, load

Fill = Callable[..., None]
Code = Callable[..., Codes]

LOST_IN_KILLED = """
import os, signal, sys
from rmsh.codes import Codes
from rmsh.library import Item, Library
library = Library.open(sys.argv[1], writable=True)
for name in "xyz":
    codes = Codes.from_values([[1.0] * 16], ids=[name])
    library.add([Item(name)], {"text": codes}, model=library.generation().fingerprint)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def stocked(library: Library, fill: Fill) -> Library:
    fill(library, ["a", "b", "c"])
    compact(library)
    return library


def _spoil(library: Library, *statements: str) -> None:
    """Change the database behind everything that keeps it intact."""
    with library.maintenance() as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("DROP TRIGGER IF EXISTS item_kept")
        for statement in statements:
            connection.execute(statement)


def _found(library: Library, query: Codes, **options: object) -> list[str]:
    (hits,) = library.search(query, 9, to="text", model=library.generation().fingerprint, **options)
    return sorted(hit.item.id for hit in hits)


@pytest.fixture
def killed(stocked: Library, folder: Path) -> Path:
    """A library whose writer was killed after it acknowledged three items; they are in the write-ahead log."""
    stocked.close()
    done = subprocess.run([sys.executable, "-c", LOST_IN_KILLED, str(folder)])
    assert done.returncode == -signal.SIGKILL
    return folder


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("damage", ["flipped", "truncated", "deleted"])
def test_acknowledged_changes_that_a_damaged_log_lost_are_noticed(damage: str, *, killed: Path) -> None:
    log = killed / "items.sqlite-wal"
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content if damage == "flipped" else content[: len(content) // 2])
    if damage == "deleted":
        log.unlink()
    for writable in (False, True):
        with pytest.raises(FormatError, match=r"has lost acknowledged changes .*number 4.*`rmsh library repair"):
            Library.open(killed, writable=writable)
    assert any("has lost acknowledged changes" in problem for problem in verify(killed).problems)
    assert any("has lost" in sentence for sentence in repair(killed).lost)
    assert repair(killed).lost == []
    assert verify(killed).problems == ()
    with Library.open(killed) as library:
        assert library.count() < 6


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_what_a_killed_writer_acknowledged_is_there(killed: Path) -> None:
    with Library.open(killed) as library:
        assert library.count() == 6
    assert verify(killed).problems == ()


def test_a_restored_library_forgets_the_later_changes(
    stocked: Library, folder: Path, tmp_path: Path, fill: Fill
) -> None:
    backup(stocked, tmp_path / "copy")
    fill(stocked, ["d"])
    fill(stocked, ["e"])
    stocked.close()
    restore(tmp_path / "copy", folder)
    with Library.open(folder) as library:
        assert library.count() == 3
    assert verify(folder).problems == ()


def test_a_damaged_record_of_what_was_acknowledged_hides_nothing(stocked: Library, folder: Path, fill: Fill) -> None:
    fill(stocked, ["d"])
    assert database.read_acknowledged(folder) is not None
    content = (folder / database.ACKNOWLEDGED).read_bytes()
    for place in range(0, len(content), 7):
        flipped = bytearray(content)
        flipped[place] ^= 4
        (folder / database.ACKNOWLEDGED).write_bytes(flipped)
        with Library.open(folder) as library:
            assert library.count() == 4


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE labels SET name = 'q' WHERE name = 'b'", "list of labels"),
        ("DELETE FROM labels WHERE name = 'b'", None),
        ("DELETE FROM item_labels WHERE row = 2", r"label 'b' is damaged \(0 of 1\)"),
        ("UPDATE item_labels SET label = 1 WHERE row = 2", "label 'b'"),
        ("UPDATE labels SET total = 3 WHERE name = 'b'", "list of labels"),
    ],
)
def test_a_damaged_label_is_noticed_by_the_filter(
    statement: str, found: str | None, *, stocked: Library, folder: Path, code: Code
) -> None:
    _spoil(stocked, statement)
    with Library.open(folder) as reader:
        if found is None:  # a whole row of the table is not a flipped bit; verify notices it
            assert any("(row 2)" in problem for problem in verify(folder).problems)
            return
        with pytest.raises(FormatError, match=found):
            _found(reader, code(["b"]), where=Label("b"))
        assert "a" in _found(reader, code(["b"]))


def test_labels_are_counted_through_every_change(stocked: Library, folder: Path, fill: Fill, code: Code) -> None:
    fill(stocked, ["a2", "b2"])
    stocked.remove(["a", "b"])
    stocked.add([Item("c", labels=("a",))], {"text": code(["c"])}, model=stocked.generation().fingerprint, replace=True)
    assert verify(folder).problems == ()
    assert _found(stocked, code(["q"]), where=Label("a")) == ["a2", "c"]
    assert _found(stocked, code(["q"]), where=Label("c")) == []


@pytest.mark.parametrize("statement", ["UPDATE labels SET count = 5, total = 7", "UPDATE labels SET checksum = 1"])
def test_damaged_counts_of_labels_are_repaired(statement: str, *, stocked: Library, folder: Path, code: Code) -> None:
    _spoil(stocked, statement)
    assert repair(folder).lost == []
    assert verify(folder).problems == ()
    assert _found(stocked, code(["b"]), where=Label("b")) == ["b"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE codes SET generation = 5 WHERE row = 2",
        "UPDATE codes SET text = NULL WHERE row = 2",
        "UPDATE codes SET row = 20 WHERE row = 2",
        "DELETE FROM codes WHERE row = 2",
    ],
)
def test_a_lost_code_is_reported_when_codes_are_read(
    statement: str, *, stocked: Library, folder: Path, code: Code, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / SNAPSHOT).unlink()
    _spoil(stocked, statement)
    with Library.open(folder) as reader:
        assert _found(reader, code(["b"])) == ["a", "c"]
        assert "'b' (row 2)" in caplog.text
        with pytest.raises(FormatError, match=r"'b' \(row 2\)"):
            reader.codes(["b"], "text")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE changes SET first = 1 WHERE kind = 'remove'",
        "UPDATE changes SET kind = 'add'",
        "DELETE FROM changes WHERE seq = 2",
    ],
)
def test_a_damaged_log_of_changes_does_not_change_what_is_found(
    statement: str, *, stocked: Library, folder: Path, fill: Fill, code: Code, caplog: pytest.LogCaptureFixture
) -> None:
    fill(stocked, ["d", "e"])
    stocked.remove(["c"])
    fill(stocked, ["f"])
    _spoil(stocked, statement)
    with Library.open(folder) as reader:
        assert _found(reader, code(["b"])) == ["a", "b", "d", "e", "f"]
    assert "log of changes is damaged" in caplog.text
    assert repair(folder).lost == []
    assert verify(folder).problems == ()


def test_an_id_that_the_index_lost_is_found_in_the_table(stocked: Library, folder: Path, code: Code) -> None:
    _spoil(stocked, "PRAGMA writable_schema = ON")
    _spoil(
        stocked,
        "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = "
        "'sqlite_autoindex_labels_1') WHERE name = 'sqlite_autoindex_items_1'",
    )
    with Library.open(folder) as reader:
        assert reader.get("b") == Item("b", text="text of b", labels=("b",))
        assert _found(reader, code(["b"]), where=Id("b")) == ["b"]


@pytest.mark.parametrize("change", ["source = 'elsewhere'", "generation = 7", "id = 'x'"])
def test_a_damaged_description_of_the_library_is_one_sentence(change: str, *, stocked: Library, folder: Path) -> None:
    _spoil(stocked, f"UPDATE library SET {change}")  # noqa: S608
    with pytest.raises(FormatError, match=r"is damaged \(its description"):
        Library.open(folder)


@pytest.mark.parametrize("statement", ["ALTER TABLE items RENAME TO itemt", "ALTER TABLE labels RENAME name TO nane"])
def test_a_damaged_schema_is_one_sentence(statement: str, *, stocked: Library, folder: Path, code: Code) -> None:
    _spoil(stocked, statement)
    with pytest.raises(FormatError, match=r"is damaged \(the column"), Library.open(folder) as reader:
        _found(reader, code(["b"]), where=Label("b"))


# Vectors.


@pytest.fixture
def with_vectors(folder: Path) -> Iterator[Library]:
    """A library with vectors: two items, and a model that encodes words."""
    words = BagOfWords(["cat", "dog"])
    joint = JointLayer(np.eye(2, 4, dtype=np.float32), np.zeros(4, np.float32), np.array([2], np.float32))
    layers = (joint, Layer(np.eye(4, 8, dtype=np.float32), np.zeros(8, np.float32), "none"))
    model = Model({"text": HashFunction(layers)}, "test", {}, encoders={"text": words.describe()})
    codes = model.encode(words.encode(["a cat", "a dog"]), "text", ids=["a", "b"])
    codes = Codes(codes.packed, codes.bits, codes.ids, np.array([[1, 2], [3, 4]], np.int8))
    with Library.create(folder, model) as library:
        library.add([Item("a", text="a cat"), Item("b", text="a dog")], {"text": codes}, model=model.fingerprint)
        yield library


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE vectors SET text = x'0102' WHERE row = 2",
        "UPDATE vectors SET text = NULL WHERE row = 2",
        "UPDATE vectors SET generation = 3 WHERE row = 2",
        "UPDATE vectors SET checksum = 1 WHERE row = 2",
        "DELETE FROM vectors WHERE row = 2",
    ],
)
def test_damaged_and_lost_vectors_are_reported_and_repaired(
    statement: str, *, with_vectors: Library, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _spoil(with_vectors, statement)
    query = with_vectors.codes(["a"], "text")
    wanted = CandidateQuery(query, 5, "text", with_vectors.generation().fingerprint)
    found = with_vectors.candidates(wanted, lambda found: found)
    assert found.vectors["text"].tolist() == [[1, 2], [0, 0]]
    assert "vectors of the item 'b' (row 2)" in caplog.text
    assert any("vectors of the item 'b' (row 2)" in problem for problem in verify(folder).problems)
    assert any("row 2" in sentence for sentence in repair(folder).restored)
    assert verify(folder).problems == ()


def test_repairing_vectors_does_not_vouch_for_a_damaged_code(with_vectors: Library, folder: Path) -> None:
    _spoil(with_vectors, "UPDATE codes SET text = x'00', vectors = 5 WHERE row = 2")
    assert any("(row 2)" in sentence for sentence in repair(folder).lost)
    with pytest.raises(FormatError, match=r"'b' \(row 2\)"):
        with_vectors.codes(["b"], "text")


def test_vectors_that_are_added_later_are_a_change_that_is_acknowledged(with_vectors: Library, folder: Path) -> None:
    _spoil(with_vectors, "DELETE FROM vectors")
    repair(folder)
    before, codes = database.read_acknowledged(folder), with_vectors.codes(["a", "b"], "text")
    vectors = Codes(codes.packed, codes.bits, codes.ids, np.array([[1, 2], [3, 4]], np.int8))
    recode(with_vectors, with_vectors.model(), encode=lambda _: {"text": vectors})
    found = with_vectors.codes(["b"], "text").vectors
    assert found is not None
    assert found.tolist() == [[3, 4]]
    assert database.read_acknowledged(folder) != before


# The model.


@pytest.mark.parametrize(
    ("old", "new"), [('"dog"', '"dof"'), ('"bag-of-words"', '"bag-of-wores"'), ('"joint"', '"joins"')]
)
def test_a_flipped_bit_in_the_description_of_a_model_is_one_sentence(
    old: str, new: str, *, with_vectors: Library, folder: Path
) -> None:
    path = folder / "model" / "config.json"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(FormatError, match=r"config\.json does not match its checksum"):
        load(folder / "model")


def test_a_damaged_vocabulary_of_an_older_model_is_noticed_too(with_vectors: Library, folder: Path) -> None:
    config = json.loads((folder / "model" / "config.json").read_text())
    description = {**config["encoders"]["text"], "vocabulary": ["cat", "dof"]}
    with pytest.raises(FormatError, match="bag-of-words"):
        extract.restore(description)


# A snapshot that another program overwrites or truncates.


@pytest.mark.parametrize("mapped", [False, True])
def test_a_snapshot_that_is_overwritten_under_a_reader_does_not_change_what_is_found(
    mapped: bool, *, stocked: Library, folder: Path, code: Code, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "_MOST_IN_MEMORY", 0 if mapped else 1 << 20)
    with Library.open(folder) as reader:
        assert _found(reader, code(["b"])) == ["a", "b", "c"]
        path = folder / SNAPSHOT
        for content in (bytes(path.stat().st_size), b"", b"short"):
            path.write_bytes(content)  # in place
            (hits,) = reader.search(code(["b"]), 1, to="text", model=reader.generation().fingerprint)
            assert [(hit.item.id, hit.distance) for hit in hits] == [("b", 0)]


def test_a_snapshot_that_rmsh_replaces_is_not_read_again(
    stocked: Library, folder: Path, code: Code, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(snapshot, "_MOST_IN_MEMORY", 0)
    with Library.open(folder) as reader:
        assert _found(reader, code(["b"])) == ["a", "b", "c"]
        stocked.write_snapshot()
        assert _found(reader, code(["b"])) == ["a", "b", "c"]
    assert caplog.text == ""
