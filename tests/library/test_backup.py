"""Backup: a copy of one state, made while others write, verified, and a library of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rmsh.codes import Codes
from rmsh.core.errors import InputError, RmshError
from rmsh.library import Item, Library
from rmsh.library import backup as backup_module
from rmsh.library.backup import backup
from rmsh.library.recode import recode
from rmsh.library.verify import Verification, verify
from rmsh.model import Model

Fill = Callable[..., None]
Code = Callable[..., Codes]


def test_a_copy_finds_what_the_library_finds(library: Library, tmp_path: Path, fill: Fill, code: Code) -> None:
    fill(library, ["a", "b"])
    backup(library, tmp_path / "copy")
    fill(library, ["c"])
    with Library.open(tmp_path / "copy", writable=True) as copy:
        found = copy.search(code(["b"]), 9, to="text", model=copy.generation().fingerprint)
        assert sorted(hit.item.id for hit in found[0]) == ["a", "b"]
        fill(copy, ["d"])
    assert verify(tmp_path / "copy").problems == ()


def test_a_copy_has_no_files_but_its_own(library: Library, tmp_path: Path, fill: Fill) -> None:
    fill(library, ["a"])
    backup(library, tmp_path / "copy")
    names = {path.name for path in (tmp_path / "copy").iterdir()}
    assert names == {"items.sqlite", "acknowledged", "codes.snapshot", "manifest.json", "model"}


def test_a_copy_made_while_a_writer_works_is_one_of_its_states(
    library: Library, folder: Path, tmp_path: Path, fill: Fill
) -> None:
    stop = threading.Event()

    def work() -> None:
        with Library.open(folder, writable=True) as writer:
            for number in range(10_000):
                fill(writer, [f"a{number}", f"b{number}"])
                if stop.is_set():
                    return

    writing = threading.Thread(target=work)
    writing.start()
    for number in range(3):
        backup(library, tmp_path / f"copy{number}")
    stop.set()
    writing.join(60)
    for number in range(3):
        assert verify(tmp_path / f"copy{number}").problems == ()
        with Library.open(tmp_path / f"copy{number}") as copy:
            last = copy.count() // 2
            assert copy.count() == 2 * last
            assert all(copy.get(f"{letter}{i}") for letter in "ab" for i in range(last))


def test_pictures_in_the_library_are_copied_and_missing_ones_counted(
    library: Library, folder: Path, tmp_path: Path, code: Code
) -> None:
    (folder / "photos").mkdir()
    (folder / "photos" / "a.jpg").write_bytes(b"picture")
    items = [Item("a", picture="photos/a.jpg"), Item("b", picture="photos/b.jpg")]
    library.add(items, {"text": code(["a", "b"])}, model=library.generation().fingerprint)
    assert backup(library, tmp_path / "copy") == 1
    assert (tmp_path / "copy" / "photos" / "a.jpg").read_bytes() == b"picture"


def test_pictures_in_a_source_folder_stay_there(tmp_path: Path, model: Model, code: Code) -> None:
    with Library.create(tmp_path / "library", model, source=tmp_path / "photos") as library:
        library.add([Item("a", picture="a.jpg")], {"text": code(["a"])}, model=model.fingerprint)
        assert backup(library, tmp_path / "copy") == 0
    with Library.open(tmp_path / "copy") as copy:
        assert copy.picture_path(Item("a", picture="a.jpg")) == tmp_path / "photos" / "a.jpg"


def test_a_folder_with_something_in_it_is_not_written_over(library: Library, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not empty"):
        backup(library, tmp_path)


def test_a_copy_that_is_not_whole_is_not_kept(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup_module, "verify", lambda _: Verification(("all",), ("It is torn.",)))
    with pytest.raises(RmshError, match=r"It is torn\."):
        backup(library, tmp_path / "copy")
    assert [path.name for path in tmp_path.iterdir()] == ["library"]


def test_codes_put_in_while_the_model_is_copied_are_copied_with_their_model(
    library: Library, tmp_path: Path, fill: Fill, code: Code, new_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(library, ["a"])
    looked: list[Any] = []
    old_model = library.model

    def look() -> Model:
        found = old_model()
        if not looked:
            recode(library, new_model, encode=lambda items: {"text": code([item.id for item in items], bits=24)})
        looked.append(found.fingerprint)
        return found

    monkeypatch.setattr(library, "model", look)
    backup(library, tmp_path / "copy")
    assert looked[1] == new_model.fingerprint
    assert verify(tmp_path / "copy").problems == ()
