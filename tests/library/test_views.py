"""Views: one for each state, shared by threads, advanced by what the log tells."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.core.types import Modality
from rmsh.library import Library, snapshot
from rmsh.library import views as views_module
from rmsh.library.database import Readers
from rmsh.library.queries import stack_vectors
from rmsh.library.views import KeptVectors, View, Views
from rmsh.library.writing import log_new_codes

Fill = Callable[..., None]
Code = Callable[..., Codes]


def _rows(view: View) -> list[int]:
    base = view.base.rows if view.base.alive is None else view.base.rows[view.base.alive]
    return np.concatenate((base, view.tail.rows)).tolist()


@pytest.fixture
def views(library: Library, folder: Path) -> Views:
    return Views(folder)


def test_nothing_is_read_anew_while_nothing_changes(library: Library, views: Views, fill: Fill) -> None:
    fill(library, ["a"])
    with library.reading() as first:
        view = views.at(first, "text")
    with library.reading() as second:
        assert views.at(second, "text") is view


def test_what_is_added_goes_behind_and_what_is_removed_is_masked(library: Library, views: Views, fill: Fill) -> None:
    fill(library, ["a", "b"])
    with library.reading() as connection:
        index = views.at(connection, "text").base.index
    fill(library, ["c", "d"])
    library.remove(["b", "c"])
    with library.reading() as connection:
        view = views.at(connection, "text")
    assert view.base.index is index
    assert view.tail.rows.tolist() == [4]  # row 3 was gone before it was seen
    assert view.base.alive is not None
    assert view.base.alive.tolist() == [True, False]
    assert _rows(view) == [1, 4]


def test_a_view_that_has_outgrown_its_base_takes_the_newer_snapshot(
    library: Library, folder: Path, views: Views, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "_FEW", 1)
    bases, changes = (
        [],
        [lambda: fill(library, ["a", "b"]), lambda: fill(library, ["c", "d"]), lambda: library.remove(["a"])],
    )
    for change in changes:  # after the first two, the snapshot is written
        change()
        with library.reading() as connection:
            bases.append(views.at(connection, "text").base.rows.tolist())
    assert bases == [[1, 2], [1, 2], [1, 2, 3, 4]]


def test_a_view_that_has_outgrown_its_base_goes_on_where_the_newer_snapshot_is_damaged(
    library: Library, folder: Path, views: Views, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "_FEW", 1)
    for name in ("ab", "cd", "e"):
        fill(library, list(name))
        (folder / snapshot.SNAPSHOT).write_bytes(b"nonsense")
        with library.reading() as connection:
            view = views.at(connection, "text")
    assert _rows(view) == [1, 2, 3, 4, 5]


def test_a_connection_that_sees_an_older_state_begins_anew(
    library: Library, folder: Path, views: Views, fill: Fill
) -> None:
    fill(library, ["a"])
    readers = Readers(folder)
    with library.reading() as older, readers.reading() as newer:
        assert older.execute("SELECT count(*) FROM items").fetchone() == (1,)
        newer.rollback()
        fill(library, ["b"])
        newer.execute("BEGIN")
        assert len(views.at(newer, "text")) == 2
        assert len(views.at(older, "text")) == 2
        assert older.execute("SELECT count(*) FROM items").fetchone() == (2,)
    readers.close()


def test_threads_that_search_while_a_writer_works_see_whole_states(
    library: Library, folder: Path, fill: Fill, code: Code
) -> None:
    """Every batch has two items of the same code distance order, so a half-seen batch would show as an odd count."""
    stop, counts, errors = threading.Event(), [], []

    def search(reader: Library, model: str) -> None:
        try:
            while not stop.is_set():
                counts.append(len(reader.search(code(["q"]), 100, to="text", model=model)[0]))
        except BaseException as error:
            errors.append(error)

    with Library.open(folder) as reader:
        model = reader.generation().fingerprint
        threads = [threading.Thread(target=search, args=(reader, model)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(20):
            fill(library, [f"a{number}", f"b{number}"])
            if number % 5 == 4:
                library.remove([f"a{number}", f"b{number}"])
        stop.set()
        for thread in threads:
            thread.join(60)
        assert errors == []
        assert [count for count in counts if count % 2] == []
        assert len(reader.search(code(["q"]), 100, to="text", model=model)[0]) == 32


def _vectors_of(rows: list[int], reads: list[list[int]]) -> dict[Modality, dict[int, bytes]]:
    """Images of all rows, texts of even ones; row 9 has neither."""
    reads.append(rows)
    images = {row: bytes([row, 1]) for row in rows if row != 9}
    return {"image": images, "text": {row: bytes([row, 2, 3]) for row in images if row % 2 == 0}}


@pytest.mark.parametrize("places", [2, 4, 1 << 17])
def test_kept_vectors_are_those_that_reading_gives(places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views_module, "_KEPT", places)
    kept, reads = KeptVectors(), list[list[int]]()
    for rows in ([1, 3], [1, 2, 3, 4], [2, 4], [1, 5, 9], [3, 4, 5, 6, 9], [1, 2, 3, 4, 5, 6, 9]):
        found = kept.of(np.array(rows), lambda missing: _vectors_of(missing, reads))
        read = _vectors_of(rows, [])
        for modality, vectors in found.items():
            expected = stack_vectors(rows, read[modality])
            assert vectors.any(axis=1).tolist() == expected.any(axis=1).tolist()
            assert not expected.size or (vectors == expected).all()
    assert reads[:2] == ([[1, 3], [1, 2, 4]] if places == 2 else [[1, 3], [2, 4]])
    assert reads[-1] == [9] if places == 1 << 17 else 9 in reads[-1]


def test_a_view_of_another_history_keeps_no_vectors_of_the_old_one(
    library: Library, folder: Path, views: Views, fill: Fill
) -> None:
    fill(library, ["a"])
    with library.reading() as connection:
        first = views.at(connection, "image")
    fill(library, ["b"])
    with library.reading() as connection:
        assert views.at(connection, "image").vectors is first.vectors
    with library.transaction() as connection:
        log_new_codes(connection)
    with library.reading() as connection:
        assert views.at(connection, "image").vectors is not first.vectors
