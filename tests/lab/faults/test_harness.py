"""What the campaign itself must notice: wrong answers, incomplete items, data and names that were not flushed."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from lab.faults.content import inspect_library, make_codes, make_item, make_model
from lab.faults.corruption import Case, apply_damage, summary
from lab.faults.kills import State, replay
from lab.faults.power_loss import Change, Disk
from lab.faults.questions import Clean, fresh_answers
from lab.faults.soak import exceeded, growth
from rmsh.library import Library


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library with two items, which is closed."""
    model, items = make_model(0), [make_item("n1", 1), make_item("n9", 4)]
    with Library.create(tmp_path / "library", model) as created:
        created.add(items, make_codes(items, model.fingerprint), model=model.fingerprint)
    return tmp_path / "library"


def _spoil(library: Path, statement: str) -> None:
    with Library.open(library, writable=True) as opened, opened.transaction() as connection:
        connection.execute(statement)


def test_what_must_be_there_follows_from_what_was_acknowledged() -> None:
    said = [{"begin": "add", "ids": ["a", "b"], "version": 1}, {"end": "add"}]
    said += [{"begin": "backup", "ids": [], "version": 5}, {"end": "backup"}]
    said += [{"begin": "remove", "ids": ["a"], "version": 2}, {"end": "remove"}]
    said += [{"begin": "restore", "ids": [], "version": 3}]
    counts = Counter[str]()
    state = replay(State({"c": 0}, {}), said, counts)
    assert state == State({"c": 0, "b": 1}, {"c": 0, "a": 1, "b": 1})
    assert state.after(said[-1]).items == state.copy
    assert counts == {"add": 1, "backup": 1, "remove": 1}


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM item_labels WHERE row = 1",
        "UPDATE codes SET text = zeroblob(4) WHERE row = 1",
        "DELETE FROM vectors WHERE row = 1",
        "DELETE FROM texts_data WHERE id > 10",
    ],
)
def test_an_incomplete_item_is_noticed(statement: str, *, library: Path) -> None:
    assert inspect_library(library) == ({"n1": 1, "n9": 4}, [])
    _spoil(library, statement)
    assert inspect_library(library)[1]


def test_a_wrong_answer_is_told_from_one_that_lacks_a_damaged_item(library: Path) -> None:
    clean = Clean(library)
    assert clean.compare(clean.answers, [], []) == ("same", [])
    _spoil(library, "UPDATE codes SET text = zeroblob(4) WHERE row = 1")
    found = fresh_answers(library)
    assert clean.compare(found, ["The codes of the item 'n1' (row 1) are missing"], []) == ("left out", [])
    outcome, wrong = clean.compare(found, [], [])
    assert outcome == "wrong"
    assert any(message.startswith("nearest text") for message in wrong)


def test_an_answer_by_words_may_differ_only_if_verify_finds_a_problem(library: Path) -> None:
    clean = Clean(library)
    found = clean.answers | {"worded": []}
    assert clean.compare(found, [], ["the index is damaged"])[0] == "text index"
    assert clean.compare(found, [], [])[0] == "wrong"
    assert clean.compare(clean.answers | {"count": ["refused", "x"]}, [], [])[0] == "refused"
    assert clean.compare(clean.answers | {"count": 3}, [], [])[0] == "wrong"


@pytest.mark.parametrize(
    ("damage", "content"), [("bit", b"ab\xe3d"), ("cut", b"ab"), ("zeros", b"\0\0\0\0"), ("deleted", None)]
)
def test_each_kind_of_damage_changes_the_file(damage: str, content: bytes | None, *, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abcd")
    apply_damage(path, Case(0, "closed", "file", damage, 23, live=False))
    assert (path.read_bytes() if path.exists() else None) == content


def test_failures_name_their_case() -> None:
    case = Case(7, "killed", "items.sqlite", "bit", 3, live=True)
    case.note("traceback", "KeyError")
    case.note("same")
    found = summary([case])
    assert found["outcomes"] == {"traceback": 1}
    assert found["failures"] == ["case 7 (killed/items.sqlite, bit): KeyError"]


def _lost(disk: Disk, to: Path, loss: str) -> dict[str, bytes]:
    disk.lose_power(to, loss, random.Random(0))  # noqa: S311
    return {path.relative_to(to).as_posix(): path.read_bytes() for path in to.rglob("*") if path.is_file()}


def test_data_and_names_that_were_not_flushed_are_lost(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "old").write_bytes(b"old")
    disk, of_root = Disk(root), root.stat().st_ino
    name, target = (str(root / each).encode() for each in ("new.tmp", "old"))
    for change in (Change("C", 5000, 0, name, b""), Change("W", 5000, 0, b"new", b""), Change("R", 0, 0, name, target)):
        disk.apply(change)
    assert _lost(disk, tmp_path / "1", "dropped") == {"old": b"old"}
    assert _lost(disk, tmp_path / "2", "names") == {"old": b""}
    disk.apply(Change("S", 5000, 0, b"", b""))
    assert _lost(disk, tmp_path / "3", "dropped") == {"old": b"old"}
    disk.apply(Change("S", of_root, 0, b"", b""))
    assert _lost(disk, tmp_path / "4", "dropped") == {"old": b"new"}


def test_sectors_that_were_not_flushed_survive_in_any_order(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_bytes(b"a" * 1024)
    disk = Disk(root)
    disk.apply(Change("W", (root / "file").stat().st_ino, 0, b"b" * 1024, b""))
    kinds = set()
    for number in range(30):
        disk.lose_power(tmp_path / str(number), "mixed", random.Random(number))  # noqa: S311
        content = (tmp_path / str(number) / "file").read_bytes()
        kinds.add((content[:512], content[512:]))
    assert kinds == {(x * 512, y * 512) for x in (b"a", b"b") for y in (b"a", b"b")}


def test_a_soak_that_grows_or_fails_exceeds_its_limits() -> None:
    parts = [{"recode": n in (1, 4), "p50": 10.0, "p95": 20.0, "memory_mb": 100 + 10 * n} for n in range(8)]
    found = {"errors": {}, "problems": [], "operations": Counter(recodes=2)}
    found["growth"] = {name: growth(parts, name) for name in ("p50", "p95", "memory_mb")}
    assert found["growth"] == {"p50": 1.0, "p95": 1.0, "memory_mb": 1.5}
    assert [line.split()[0] for line in exceeded(found)] == ["memory_mb"]
    calm = found | {"growth": dict.fromkeys(found["growth"], 1.0)}
    assert exceeded(calm) == []
    assert len(exceeded(calm | {"errors": {"words 500": 2}, "operations": Counter(recodes=1)})) == 2
