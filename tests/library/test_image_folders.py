"""Images of a library: checked, backed up with their texts, and restored."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image

from rmsh.codes import Codes
from rmsh.core.errors import RmshError
from rmsh.features.images import read_photo
from rmsh.library import Item, Library
from rmsh.library.backup import backup, restore
from rmsh.library.folder import image_folders, set_folder
from rmsh.library.photos import ImageFile
from rmsh.library.verify import verify
from rmsh.model import Model

PLACES = {"a/1.png": "images/a/1.png", "2.png": "images/2.png", "disk/3.png": "media/disk/3.png", "4.png": "one/4.png"}


@pytest.fixture
def photos(tmp_path: Path, model: Model, code: Callable[..., Codes]) -> Iterator[Library]:
    """A library of four images in two folders and a place of its own."""
    known = {}
    for number, (name, place) in enumerate(PLACES.items()):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (number, 0, 0)).save(path)
        path.with_suffix(".txt").write_text(f"text of {name}")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        known[name] = ImageFile(path.stat().st_size, path.stat().st_mtime_ns, digest, read_photo(path))
    library = Library.create(tmp_path / "library", model, source=tmp_path / "images")
    items = [Item(name, picture=name) for name in PLACES]
    library.add(items, {"image": code([*PLACES], "image")}, model=model.fingerprint, files=known)
    with library.transaction() as connection:
        set_folder(connection, library.folder, "disk", tmp_path / "media" / "disk")
        set_folder(connection, library.folder, "4.png", tmp_path / "one" / "4.png")
    yield library
    library.close()


def _paths(folder: Path) -> set[Path]:
    with Library.open(folder) as library:
        items = [item for name in PLACES if (item := library.get(name)) is not None]
        return {path for item in items if (path := library.picture_path(item)) is not None and path.is_file()}


def test_image_files_are_checked_only_if_asked_for(photos: Library, tmp_path: Path) -> None:
    assert verify(photos.folder, images=True).problems == ()
    (tmp_path / "images" / "2.png").unlink()
    Image.new("RGB", (8, 8), "blue").save(tmp_path / "media" / "disk" / "3.png")
    (tmp_path / "one" / "4.png").write_bytes(b"half a file")
    assert verify(photos.folder).problems == ()
    found = verify(photos.folder, images=True)
    assert found.images == {"missing": ["2.png"], "changed": ["disk/3.png"], "unreadable": ["4.png"]}
    assert (len(found.problems), found.checked[-1]) == (3, "images")


def test_a_link_that_leads_out_of_the_folder_is_not_read(photos: Library, tmp_path: Path) -> None:
    (tmp_path / "images" / "2.png").rename(tmp_path / "outside.png")
    (tmp_path / "images" / "2.png").symlink_to(tmp_path / "outside.png")
    assert verify(photos.folder, images=True).images["unreadable"] == ["2.png"]


def test_a_backup_leaves_images_where_they_are(photos: Library, tmp_path: Path) -> None:
    assert backup(photos, tmp_path / "copy") == 0
    assert not (tmp_path / "copy" / "images").exists()
    assert _paths(tmp_path / "copy") == {tmp_path / place for place in PLACES.values()}


def test_a_backup_with_images_needs_nothing_else(photos: Library, tmp_path: Path) -> None:
    (tmp_path / "images" / "2.png").unlink()
    assert backup(photos, tmp_path / "copy", with_images=True) == 1
    photos.close()
    for place in ("images", "media", "one", "library"):
        shutil.rmtree(tmp_path / place)
    found = _paths(tmp_path / "copy")
    assert len(found) == 3
    assert all(path.is_relative_to(tmp_path / "copy") for path in found)
    assert {path.with_suffix(".txt").read_text() for path in found} == {
        f"text of {name}" for name in PLACES if name != "2.png"
    }
    assert verify(tmp_path / "copy", images=True).images["missing"] == ["2.png"]

    assert restore(tmp_path / "copy", tmp_path / "restored").items == 4
    shutil.rmtree(tmp_path / "copy")
    assert all(path.is_relative_to(tmp_path / "restored") for path in _paths(tmp_path / "restored"))
    assert verify(tmp_path / "restored", images=True).images == {"missing": ["2.png"], "changed": [], "unreadable": []}
    with Library.open(tmp_path / "restored") as library:
        backup(library, tmp_path / "again")  # images inside a library are always copied
    assert len(_paths(tmp_path / "again")) == 3


def test_folders_that_are_where_they_were_are_not_restored(photos: Library, tmp_path: Path) -> None:
    backup(photos, tmp_path / "copy", with_images=True)
    shutil.rmtree(tmp_path / "media")
    photos.close()
    restore(tmp_path / "copy", tmp_path / "library")
    with Library.open(tmp_path / "library") as library, library.reading() as connection:
        folders = image_folders(connection, library.folder)
    assert folders[""] == tmp_path / "images"
    assert folders["disk"].is_relative_to(tmp_path / "library")
    assert len(_paths(tmp_path / "library")) == 4
    assert verify(tmp_path / "library", images=True).problems == ()


def test_a_backup_for_which_there_is_no_space_is_refused(
    photos: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    backup(photos, tmp_path / "small")
    with pytest.raises(RmshError, match="0 MB free"):
        backup(photos, tmp_path / "copy", with_images=True)
    assert sorted(path.name for path in tmp_path.iterdir() if "copy" in path.name) == []
