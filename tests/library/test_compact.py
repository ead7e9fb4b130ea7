"""Compacting: what nobody needs goes, everything else stays, and readers that were open go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rmsh.codes import Codes
from rmsh.library import Item, Library
from rmsh.library.maintenance import compact, describe
from rmsh.library.snapshot import SNAPSHOT, Snapshot
from rmsh.library.verify import verify

Fill = Callable[..., None]
Code = Callable[..., Codes]


def _logged(library: Library) -> list[int]:
    with library.reading() as connection:
        return [seq for (seq,) in connection.execute("SELECT seq FROM changes")]


def test_the_log_is_shortened_to_the_change_of_the_snapshot(library: Library, folder: Path, fill: Fill) -> None:
    for name in "abc":
        fill(library, [name])
    compact(library)
    assert _logged(library) == [3]
    assert Snapshot(folder / SNAPSHOT).stamp.seq == 3


def test_a_reader_that_knows_an_older_state_goes_on(library: Library, folder: Path, fill: Fill, code: Code) -> None:
    fill(library, ["a", "b"])
    with Library.open(folder) as reader:
        model = reader.generation().fingerprint
        reader.search(code(["a"]), 1, to="text", model=model)
        fill(library, ["c"])
        library.remove(["a"])
        compact(library)
        found = reader.search(code(["a", "c"]), 2, to="text", model=model)
    assert [{hit.item.id for hit in hits} for hits in found] == [{"b", "c"}] * 2


def test_labels_of_no_item_go_and_rows_stay(library: Library, fill: Fill, code: Code) -> None:
    fill(library, ["a", "b"])
    library.remove(["a"])
    compact(library)
    assert describe(library).counts["labels"] == 1
    fill(library, ["c"])
    found = library.search(code(["b", "c"]), 1, to="text", model=library.generation().fingerprint)
    assert [hit.row for (hit,) in found] == [2, 3]


def test_space_is_given_back(library: Library, folder: Path, code: Code) -> None:
    names = [f"n{i}" for i in range(50)]
    items = [Item(name, text="long " * 2000) for name in names]
    library.add(items, {"text": code(names)}, model=library.generation().fingerprint)
    library.remove(names)
    library.close()
    before = (folder / "items.sqlite").stat().st_size
    with Library.open(folder, writable=True) as opened:
        compact(opened)
        assert (folder / "items.sqlite").stat().st_size < before / 2
        assert (folder / "items.sqlite-wal").stat().st_size == 0
    assert verify(folder).problems == ()


def test_an_empty_library_may_be_compacted(library: Library, folder: Path) -> None:
    compact(library)
    assert verify(folder).problems == ()
    assert library.count() == 0
