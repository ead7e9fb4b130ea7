"""Writers take turns: who waits too long is told so, and a block that fails leaves nothing."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rmsh.core.errors import RmshError
from rmsh.library import Library, database
from rmsh.library.verify import verify
from rmsh.model import Model

Fill = Callable[..., None]


def test_a_second_writer_that_waits_too_long_is_told(library: Library, folder: Path, fill: Fill) -> None:
    with Library.open(folder, writable=True, timeout=0.05) as second, library.transaction():
        with pytest.raises(RmshError, match=rf"{folder} is being written to by another program"):
            fill(second, ["a"])
        assert second.count() == 0


def test_a_library_that_somebody_writes_to_for_long_is_not_called_whole_or_damaged(
    library: Library, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = database.connect_writer
    monkeypatch.setattr("rmsh.library.verify.connect_writer", lambda path, timeout: quick(path, timeout=0.05))
    with library.transaction():
        (problem,) = verify(folder).problems
    assert "is being written to by another program" in problem


def test_a_second_writer_waits_for_the_first(library: Library, folder: Path, fill: Fill) -> None:
    with Library.open(folder, writable=True) as second:
        with library.transaction():
            waiting = threading.Thread(target=fill, args=(second, ["a"]))
            waiting.start()
            assert second.count() == 0
        waiting.join(60)
        assert second.count() == 1


def test_threads_of_one_library_take_turns(library: Library, folder: Path, fill: Fill) -> None:
    threads = [threading.Thread(target=fill, args=(library, [f"n{i}"])) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert library.count() == 8


def test_a_thread_that_waits_too_long_for_another_is_told(folder: Path, model: Model, fill: Fill) -> None:
    Library.create(folder, model).close()
    with Library.open(folder, writable=True, timeout=0.05) as library, library.transaction():
        refused: list[str] = []

        def attempt() -> None:
            try:
                fill(library, ["a"])
            except RmshError as error:
                refused.append(str(error))

        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join(60)
        assert "Another thread is writing to the library" in refused[0]


def test_a_block_that_fails_leaves_nothing(library: Library) -> None:
    def half() -> None:
        with library.transaction() as connection:
            connection.execute("INSERT INTO labels (name) VALUES ('half')")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    with library.reading() as connection:
        assert connection.execute("SELECT count(*) FROM labels").fetchone() == (0,)


def test_a_row_of_items_never_changes(library: Library, fill: Fill) -> None:
    fill(library, ["a"])
    with pytest.raises(sqlite3.IntegrityError, match="rows of items never change"), library.transaction() as connection:
        connection.execute("UPDATE items SET text = 'other'")
