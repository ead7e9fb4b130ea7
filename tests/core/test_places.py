"""Places by path and by URL: the same files, and errors that name the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmsh.core.errors import DataError, InputError
from rmsh.core.places import Place


@pytest.fixture(params=["path", "url"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path / "shared" if request.param == "path" else f"file://{tmp_path}/shared/")


def test_what_is_written_is_read_and_listed(place: Place, tmp_path: Path) -> None:
    place.write("a.bin", b"one")
    place.write("folder/b.bin", b"two")
    assert (place.read("a.bin"), place.read("folder/b.bin")) == (b"one", b"two")
    assert [*place.states()] == ["a.bin"]
    fetched = place.fetch("folder/b.bin", tmp_path / "copies")
    assert fetched.read_bytes() == b"two"


def test_the_state_of_a_file_changes_with_it(place: Place) -> None:
    place.write("a.bin", b"one")
    before = place.states()
    assert place.states() == before
    place.write("a.bin", b"other")
    assert place.states() != before


def test_a_missing_file_is_not_found(place: Place) -> None:
    with pytest.raises(FileNotFoundError):
        place.read("a.bin")


def test_a_folder_that_does_not_exist_has_no_files(place: Place) -> None:
    assert place.states() == {}


def test_a_path_is_absolute_and_a_folder_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    assert Place("x").name == str(tmp_path / "x")
    with pytest.raises(DataError, match="regular file"):
        Place(tmp_path).read("a")


def test_an_unknown_kind_of_url_is_refused() -> None:
    with pytest.raises(InputError, match=r"unknown://bucket/x .*unknown"):
        Place("unknown://bucket/x")
