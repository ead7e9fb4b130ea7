"""The table of image files: stored, compared by filters, checked, and absent from older libraries."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from rmsh.codes import Codes
from rmsh.features.photo import Photo
from rmsh.index.filters import parse
from rmsh.library import Item, Library
from rmsh.library.photos import ImageFile, damaged_photos, read_photos
from rmsh.library.repair import repair
from rmsh.library.verify import verify
from rmsh.model import Model

FILES = {
    "a": ImageFile(9, 1, "aa", Photo(4, 3, bytes(8), "2024-06-30T23:59:59", "FUJIFILM X-T5", (-33.9, 151.2), ("Sea",))),
    "b": ImageFile(
        8, 2, "bb", Photo(4, 3, bytes(range(8)), "2024-07-01T00:00:00", "Canon R6", None, (), "two dogs", 4)
    ),
    "c": ImageFile(7, 3, "cc", Photo(4, 3, bytes(8))),
}


@pytest.fixture
def photos(library: Library, model: Model, code: Callable[..., Codes]) -> Library:
    """A library of four items, three of which have an image file."""
    names = ("a", "b", "c", "no file")
    library.add([Item(name) for name in names], {"text": code(names)}, model=model.fingerprint, files=FILES)
    return library


def _found(library: Library, written: str) -> str:
    codes = library.codes(["a"], "text")
    (hits,) = library.search(codes, 9, to="text", model=library.generation().fingerprint, where=parse(written))
    return "".join(sorted(hit.item.id for hit in hits))


def test_files_are_read_as_they_were_stored(photos: Library) -> None:
    with photos.reading() as connection:
        assert [file for _, file in read_photos(connection)] == list(FILES.values())
        assert damaged_photos(connection) == []


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("date<=2024-06", "a"),
        ("date>2024-06", "b"),
        ("date=2024", "ab"),
        ("date<2024-07-01T00:00:00", "a"),
        ("camera~fuji", "a"),
        ("camera='canon r6'", "b"),
        ("keyword=sea", "a"),
        ("keyword~e", "a"),
        ("rating>=4", "b"),
        ("latitude<0 and longitude>151", "a"),
        ("not date=2024", "cno file"),
        ("camera~fuji or rating=4", "ab"),
    ],
)
def test_filters_compare_what_files_tell(photos: Library, written: str, expected: str) -> None:
    assert _found(photos, written) == expected


def test_an_update_replaces_the_file_and_a_removal_deletes_it(photos: Library) -> None:
    photos.add([Item("a")], {"text": photos.codes(["a"], "text")}, model=photos.generation().fingerprint, replace=True)
    photos.remove(["b"])
    with photos.reading() as connection:
        assert [file.hash for _, file in read_photos(connection)] == ["cc"]


def test_a_library_without_files_has_none_that_match(library: Library, fill: Callable[..., None]) -> None:
    fill(library, ["a"])
    assert (_found(library, "date>1900"), _found(library, "not date>1900")) == ("", "a")


def test_damage_is_noticed(photos: Library) -> None:
    photos.close()
    with closing(sqlite3.connect(photos.folder / "items.sqlite", isolation_level=None)) as connection:
        connection.execute("UPDATE photos SET camera = 'FUJIFILM X-T4' WHERE camera LIKE 'FUJI%'")
    with Library.open(photos.folder) as opened, opened.reading() as connection:
        assert len(damaged_photos(connection)) == 1
        assert [file.hash for _, file in read_photos(connection)] == ["bb", "cc"]
    (problem,) = verify(photos.folder).problems
    assert "row 1 is damaged" in problem
    assert "row 1 was deleted" in repair(photos.folder).restored[0]
    assert verify(photos.folder).problems == ()
