"""The snapshot: it holds what the database holds, and whatever happens to it, no result is wrong."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.core.errors import FormatError
from rmsh.library import Library, snapshot
from rmsh.library import queries as reading
from rmsh.library.maintenance import compact
from rmsh.library.snapshot import SNAPSHOT, Snapshot
from rmsh.library.verify import verify

Fill = Callable[..., None]
Code = Callable[..., Codes]
NAMES = [f"{letter}{number}" for letter in "ab" for number in range(20)]


@pytest.fixture
def stocked(library: Library, fill: Fill, monkeypatch: pytest.MonkeyPatch) -> Library:
    """40 items and a snapshot of several blocks."""
    monkeypatch.setattr(reading, "BLOCK", 16)
    fill(library, NAMES)
    compact(library)
    return library


def _nearest(library: Library, query: Codes) -> list[str]:
    found = library.search(query, 1, to="text", model=library.generation().fingerprint)
    return [hit.item.id for (hit,) in found]


def test_codes_and_rows_come_back_from_the_file(stocked: Library, folder: Path, code: Code) -> None:
    rows, words = Snapshot(folder / SNAPSHOT).arrays("image")
    assert rows.tolist() == list(range(1, 41))
    assert np.array_equal(words, code(NAMES, "image").words())


def test_a_modality_nobody_has_is_empty(library: Library, folder: Path) -> None:
    compact(library)
    rows, words = Snapshot(folder / SNAPSHOT).arrays("text")
    assert (rows.shape, words.shape) == ((0,), (0, 1))


def test_a_reader_takes_the_snapshot_and_what_changed_since(
    stocked: Library, folder: Path, fill: Fill, code: Code, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(stocked, ["late"])
    stocked.remove(["a3"])
    monkeypatch.setattr(Snapshot, "arrays", _counted(Snapshot.arrays))
    with Library.open(folder) as reader:
        assert _nearest(reader, code(["a1", "late"])) == ["a1", "late"]
        assert _nearest(reader, code(["a3"])) != ["a3"]
    assert _counted.calls == 1  # type: ignore[attr-defined]


def _counted(function: Callable[..., object]) -> Callable[..., object]:
    _counted.calls = 0  # type: ignore[attr-defined]

    def call(*arguments: object) -> object:
        _counted.calls += 1  # type: ignore[attr-defined]
        return function(*arguments)

    return call


@pytest.mark.parametrize("place", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.999])
def test_a_flipped_bit_is_found_and_changes_no_result(
    place: float, *, stocked: Library, folder: Path, code: Code
) -> None:
    path = folder / SNAPSHOT
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 4
    path.write_bytes(content)
    with Library.open(folder) as reader:
        assert _nearest(reader, code(NAMES)) == NAMES
    (problem,) = verify(folder).problems
    assert "The snapshot" in problem
    assert "`rmsh library compact` rewrites it" in problem


@pytest.mark.parametrize("kept", [0, 10, 500, -1])
def test_a_truncated_snapshot_is_found_and_changes_no_result(
    kept: int, *, stocked: Library, folder: Path, code: Code
) -> None:
    path = folder / SNAPSHOT
    path.write_bytes(path.read_bytes()[:kept])
    with Library.open(folder) as reader:
        assert _nearest(reader, code(NAMES)) == NAMES
    assert "is damaged (" in verify(folder).problems[0]


def test_a_missing_snapshot_changes_no_result_and_is_no_problem(stocked: Library, folder: Path, code: Code) -> None:
    (folder / SNAPSHOT).unlink()
    with Library.open(folder) as reader:
        assert _nearest(reader, code(NAMES)) == NAMES
    assert verify(folder).problems == ()


def test_a_writer_that_opens_puts_a_damaged_snapshot_right(
    stocked: Library, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / SNAPSHOT).write_bytes(b"nonsense")
    monkeypatch.setattr(snapshot, "_FEW", 10)
    Library.open(folder, writable=True).close()
    assert Snapshot(folder / SNAPSHOT).counts == {"image": 40, "text": 40}


def test_a_snapshot_that_fell_behind_is_written_anew(
    stocked: Library, folder: Path, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "_FEW", 10)
    fill(stocked, [f"c{number}" for number in range(10)])
    assert Snapshot(folder / SNAPSHOT).counts["text"] == 40
    fill(stocked, ["d"])
    assert Snapshot(folder / SNAPSHOT).counts["text"] == 51


def test_a_snapshot_of_another_history_is_not_taken(stocked: Library, folder: Path, fill: Fill, code: Code) -> None:
    """The database is put back from a copy and goes on, reaching the same number of changes by other ones."""
    stocked.close()
    shutil.copy(folder / "items.sqlite", folder / "copy")
    with Library.open(folder, writable=True) as library:
        fill(library, ["late"])
        compact(library)
    shutil.move(folder / "copy", folder / "items.sqlite")
    (folder / "acknowledged").unlink()
    with Library.open(folder, writable=True) as library:
        fill(library, ["other"])
        assert _nearest(library, code(["other", *NAMES])) == ["other", *NAMES]


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_snapshot_that_cannot_be_written_costs_nothing(
    fault: int,
    *,
    stocked: Library,
    folder: Path,
    fill: Fill,
    code: Code,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object) -> None:
        raise OSError(fault, "no")

    monkeypatch.setattr(snapshot, "_FEW", 0)
    monkeypatch.setattr("rmsh.core.files.os.replace", fail)
    fill(stocked, ["c", "d", "e"])
    assert "the snapshot could not be written" in caplog.text
    assert _nearest(stocked, code(["c"])) == ["c"]
    assert list(folder.glob(".*.tmp")) == []


def test_a_file_of_another_program_is_no_snapshot(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    with pytest.raises(FormatError, match="truncated"):
        Snapshot(tmp_path / "file")
