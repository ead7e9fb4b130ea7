"""Images of a library, in its own folder and in others: backed up and restored."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from rmsh.codes import Codes
from rmsh.core.errors import RmshError
from rmsh.features.images import read_photo
from rmsh.library import Item, Library
from rmsh.library.backup import backup, restore
from rmsh.library.image_folders import set_folder
from rmsh.library.photos import ImageFile
from rmsh.library.verify import verify
from rmsh.model import Model

PLACES = {"a/1.png": "images/a/1.png", "2.png": "images/2.png", "disk/3.png": "media/disk/3.png", "4.png": "one/4.png"}


@pytest.fixture
def photos(tmp_path: Path, model: Model, code: Callable[..., Codes]) -> Library:
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
    return library


def _paths(folder: Path) -> set[Path]:
    with Library.open(folder) as library:
        items = [item for name in PLACES if (item := library.get(name)) is not None]
        return {path for item in items if (path := library.picture_path(item)) is not None and path.is_file()}


def test_a_backup_leaves_images_where_they_are(photos: Library, tmp_path: Path) -> None:
    assert backup(photos, tmp_path / "copy") == 0
    assert not (tmp_path / "copy" / "images").exists()
    assert _paths(tmp_path / "copy") == {tmp_path / place for place in PLACES.values()}


def test_a_restored_library_knows_its_folders(photos: Library, tmp_path: Path) -> None:
    backup(photos, tmp_path / "copy")
    photos.close()
    for place in ("library", "restored"):
        restore(tmp_path / "copy", tmp_path / place)
        assert _paths(tmp_path / place) == {tmp_path / name for name in PLACES.values()}
        assert verify(tmp_path / place).problems == ()


def test_a_backup_for_which_there_is_no_space_is_refused(
    library: Library, folder: Path, tmp_path: Path, code: Callable[..., Codes], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.jpg").write_bytes(b"an image that the library keeps")
    library.add([Item("a", picture="a.jpg")], {"text": code(["a"])}, model=library.generation().fingerprint)
    full = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(RmshError, match="0 MB free"):
        backup(library, tmp_path / "copy")
    assert sorted(path.name for path in tmp_path.iterdir() if "copy" in path.name) == []
