"""A library: what is added is found at once, by readers that were open before; what does not fit is refused."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.core.errors import CodesError, FormatError, InputError
from rmsh.library import Item, Library
from rmsh.library.backup import backup, restore
from rmsh.library.maintenance import compact
from rmsh.model import Model

Fill = Callable[..., None]
Code = Callable[..., Codes]


def _found(library: Library, query: Codes, k: int = 10, **options: Any) -> list[str]:
    (hits,) = library.search(query, k, **{"to": "text", "model": library.generation().fingerprint} | options)
    return [hit.item.id for hit in hits]


def test_an_item_comes_back_whole(library: Library, code: Code) -> None:
    item = Item("7", text="a dog", picture="photos/7.jpg", labels=("dog", "animal"))
    library.add([item], {"image": code(["7"], "image")}, model=library.generation().fingerprint)
    ((hit,),) = library.search(code(["7"], "image"), 5, to="image", model=library.generation().fingerprint)
    assert (hit.item, hit.distance, hit.row) == (item, 0, 1)
    assert library.get("7") == item
    assert library.get("8") is None


def test_an_item_without_a_text_code_is_not_found_among_texts(library: Library, code: Code) -> None:
    library.add([Item("a")], {"image": code(["a"], "image")}, model=library.generation().fingerprint)
    assert _found(library, code(["a"])) == []


def test_codes_come_back_in_the_order_of_the_ids_without_those_that_have_none(library: Library, code: Code) -> None:
    codes = {"text": code(["a", "b", "c"]), "image": code(["b"], "image")}
    library.add([Item("a"), Item("b"), Item("c")], codes, model=_print(library))
    found = library.codes(["c", "nobody", "a"], "text")
    assert (found.ids.tolist(), found.packed.tolist()) == (["c", "a"], code(["c", "a"]).packed.tolist())
    assert library.codes("abc", "image").ids.tolist() == ["b"]
    assert (len(library.codes([], "image")), library.codes([], "image").bits) == (0, 16)


def test_codes_of_another_kind_and_of_an_id_given_twice_are_refused(library: Library) -> None:
    with pytest.raises(InputError, match="'sound'"):
        library.codes(["a"], "sound")
    with pytest.raises(InputError, match="'a' 2 times"):
        library.codes(["a", "a"], "text")


def test_a_stored_code_of_another_length_is_told_of_with_its_row(library: Library, fill: Fill) -> None:
    fill(library, ["a", "b"])
    with library.transaction() as connection:
        connection.execute("UPDATE codes SET text = x'01' WHERE row = 2")
    assert len(library.codes(["a"], "text")) == 1
    with pytest.raises(FormatError, match=r"item 'b' \(row 2\) .*do not match their checksum.*repair"):
        library.codes(["b"], "text")
    assert library.codes(["a", "b"], "text").ids.tolist() == ["a"]


def test_a_reader_sees_every_change_at_once(library: Library, folder: Path, fill: Fill, code: Code) -> None:
    with Library.open(folder) as reader:
        assert _found(reader, code(["a"])) == []
        fill(library, ["a", "b"])
        assert _found(reader, code(["a"]), 1) == ["a"]
        library.add([Item("a")], {"text": Codes(code(["b"]).packed, 16, ["a"])}, model=_print(library), replace=True)
        assert _found(reader, code(["b"]), 2) == ["b", "a"]
        library.remove(["b"])
        assert _found(reader, code(["b"]), 2) == ["a"]


def _print(library: Library) -> str:
    return library.generation().fingerprint


def test_equal_distances_are_ordered_by_when_an_item_was_last_written(library: Library, code: Code) -> None:
    same = np.repeat(code(["x"]).packed, 3, axis=0)
    codes = {"text": Codes(same, 16, ["a", "b", "c"])}
    library.add([Item("a"), Item("b"), Item("c")], codes, model=_print(library))
    library.add([Item("a")], {"text": Codes(same[:1], 16, ["a"])}, model=_print(library), replace=True)
    assert _found(library, code(["x"])) == ["b", "c", "a"]


def test_a_removed_id_may_be_added_again_and_takes_a_new_row(library: Library, fill: Fill, code: Code) -> None:
    fill(library, ["a"])
    library.remove(["a"])
    fill(library, ["a"])
    ((hit,),) = library.search(code(["a"]), 1, to="text", model=_print(library))
    assert hit.row == 2


def test_an_id_that_is_there_is_refused_and_nothing_is_added(library: Library, fill: Fill) -> None:
    fill(library, ["a"])
    with pytest.raises(InputError, match="'a' is already in the library"):
        fill(library, ["b", "a"])
    assert library.count() == 1


def test_removing_an_id_that_is_not_there_removes_nothing(library: Library, fill: Fill) -> None:
    fill(library, ["a"])
    with pytest.raises(InputError, match="'b' is not in the library"):
        library.remove(["a", "b"])
    assert library.count() == 1


def test_updating_an_id_that_is_not_there_changes_nothing(library: Library, fill: Fill, code: Code) -> None:
    fill(library, ["a"])
    with pytest.raises(InputError, match="'b' is not in the library"):
        library.add([Item("a"), Item("b")], {"text": code(["a", "b"])}, model=_print(library), replace=True)
    assert library.get("a") == Item("a", text="text of a", labels=("a",))


def test_codes_of_another_model_are_refused_everywhere(library: Library, code: Code) -> None:
    with pytest.raises(CodesError, match=f"model other, .*{_print(library)}"):
        library.add([Item("a")], {"text": code(["a"])}, model="other")
    with pytest.raises(CodesError, match="model other"):
        library.search(code(["a"]), 1, to="text", model="other")
    assert library.count() == 0


def test_codes_of_another_length_are_refused_everywhere(library: Library, code: Code) -> None:
    longer = code(["a"], bits=24)
    with pytest.raises(CodesError, match=r"24 bits.* 16"):
        library.add([Item("a")], {"text": longer}, model=_print(library))
    with pytest.raises(CodesError, match="24 bits"):
        library.search(longer, 1, to="text", model=_print(library))


def test_an_unknown_modality_is_refused(library: Library, code: Code) -> None:
    with pytest.raises(InputError, match=r"'sound'.*image, text"):
        _found(library, code(["a"]), to="sound")


def test_a_library_open_for_reading_refuses_changes(library: Library, folder: Path) -> None:
    with Library.open(folder) as reader:
        for change in (lambda: reader.remove(["a"]), reader.write_snapshot, reader.update_files):
            with pytest.raises(InputError, match="open for reading only"):
                change()


def test_a_closed_library_says_so(library: Library) -> None:
    library.close()
    with pytest.raises(InputError, match="was closed"):
        library.count()


def test_closing_waits_for_nobody_and_ends_what_is_in_use(library: Library) -> None:
    with library.reading() as connection:
        library.close()
        assert connection.execute("SELECT count(*) FROM items").fetchone() == (0,)
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        connection.execute("SELECT 1")


def test_a_folder_with_something_in_it_is_not_made_a_library(tmp_path: Path, model: Model) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    with pytest.raises(InputError, match="not empty"):
        Library.create(tmp_path, model)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def _modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")]}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no file modes of this kind")
def test_a_library_belongs_to_its_owner_alone_and_later_files_follow_the_mode_of_its_folder(
    folder: Path, model: Model, fill: Fill
) -> None:
    folder.parent.chmod(0o755)
    with Library.create(folder, model) as library:
        fill(library, ["a"])
        compact(library)
        assert _modes(folder) == {0o700, 0o600}
        subprocess.run(["chmod", "-R", "go+rX", str(folder)], check=True)
        fill(library, ["b"])
        compact(library)
        assert _modes(folder) == {0o755, 0o644}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no file modes of this kind")
def test_a_backup_and_a_restored_library_are_private_too(library: Library, tmp_path: Path, fill: Fill) -> None:
    fill(library, ["a"])
    backup(library, tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "again")
    restore(tmp_path / "copy", tmp_path / "again")
    assert _modes(tmp_path / "copy") == _modes(tmp_path / "again") == {0o700, 0o600}


def test_creating_that_fails_leaves_nothing(tmp_path: Path, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmsh.library.folder.create_tables", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Library.create(tmp_path / "library", model)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["two words", "50%20off", "a#b?c=d&e", "ünï", "'quoted'"])
def test_a_folder_may_have_any_name(name: str, *, tmp_path: Path, model: Model, fill: Fill) -> None:
    with Library.create(tmp_path / name, model) as library:
        fill(library, ["a"])
    with Library.open(tmp_path / name) as reader:
        assert reader.count() == 1
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_model_of_a_library_is_the_one_it_was_made_with(library: Library, model: Model) -> None:
    assert library.model().fingerprint == model.fingerprint
    assert library.generation().bits == model.bits


def test_pictures_are_found_in_the_source_folder(tmp_path: Path, model: Model) -> None:
    with Library.create(tmp_path / "library", model, source=tmp_path / "photos") as library:
        assert library.picture_path(Item("a", picture="x/a.jpg")) == tmp_path / "photos" / "x" / "a.jpg"
        assert library.picture_path(Item("a")) is None


def test_a_link_out_of_the_folder_of_pictures_is_refused(library: Library, folder: Path, tmp_path: Path) -> None:
    (folder / "out").symlink_to(tmp_path)
    with pytest.raises(InputError, match="leads out of"):
        library.picture_path(Item("a", picture="out/secret.jpg"))


def test_a_library_may_be_searched_by_another_index(library: Library, folder: Path, fill: Fill, code: Code) -> None:
    fill(library, ["a", "b"])
    with Library.open(folder) as reader:
        assert _found(reader, code(["b"]), 1) == ["b"]


@pytest.mark.parametrize("name", ["manifest.json", "items.sqlite"])
def test_a_folder_that_lacks_a_file_is_named(name: str, *, library: Library, folder: Path) -> None:
    library.close()
    (folder / name).unlink()
    with pytest.raises(FormatError, match=f"has no {name}"):
        Library.open(folder)


def test_files_of_two_libraries_are_not_mixed(library: Library, folder: Path, tmp_path: Path, model: Model) -> None:
    Library.create(tmp_path / "other", model).close()
    (folder / "manifest.json").write_bytes((tmp_path / "other" / "manifest.json").read_bytes())
    with pytest.raises(FormatError, match="two libraries"):
        Library.open(folder)
