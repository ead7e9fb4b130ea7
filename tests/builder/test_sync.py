"""Sync: a library follows its folder; only what changed is encoded, and nothing is lost by a missing disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from rmsh.builder import BuildConfig, build
from rmsh.builder.sync import Synced, sync
from rmsh.core.errors import DataError, InputError
from rmsh.features.images import ImageEncoder
from rmsh.library import Library
from rmsh.library.maintenance import relocate
from rmsh.library.photos import read_photos

SMALL = {"bits": 16, "text_encoder": "bag-of-words", "options": {"epochs": 3, "hidden": 16}}


def _draw(path: Path, number: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new("RGB", (40, 30), ("red", "green", "blue")[number % 3])
    ImageDraw.Draw(image).ellipse((number % 20, 3, 10 + number % 20, 20), fill=("white", "black")[number % 2])
    ImageDraw.Draw(image).point((number % 40, number // 40), fill="yellow")  # no two are the same
    image.save(path)


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 36 captioned images, two of them in a subfolder, and its library."""
    folder = tmp_path_factory.mktemp("sync")
    for number in range(36):
        name = folder / "images" / ("trip" if number < 2 else "") / f"{number}.png"
        _draw(name, number)
        name.with_suffix(".txt").write_text(f"circle {number} on {('red', 'green', 'blue')[number % 3]}")
    build(folder / "images", folder / "library", config=BuildConfig.parse(SMALL))
    return folder


@pytest.fixture
def images(_made: Path, tmp_path: Path) -> Path:
    """The folder of images of a test; its library is next to it."""
    shutil.copytree(_made, tmp_path, dirs_exist_ok=True)
    for path in (tmp_path / "images").rglob("*.png"):  # copies have the times of their originals
        assert path.stat().st_mtime_ns == (_made / path.relative_to(tmp_path)).stat().st_mtime_ns
    with Library.open(tmp_path / "library", writable=True) as library:
        assert relocate(library, tmp_path / "images") == (36, 36)
        sync(library)
    return tmp_path / "images"


@pytest.fixture
def library(images: Path) -> Iterator[Library]:
    with Library.open(images.parent / "library", writable=True) as opened:
        assert sync(opened) == Synced()
        yield opened


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the images that are encoded."""
    names: list[str] = []
    whole = ImageEncoder.encode_readable

    def count(self: ImageEncoder, items: list[str], **options: object) -> object:
        names.extend(Path(item).name for item in items)
        return whole(self, items, **options)

    monkeypatch.setattr(ImageEncoder, "encode_readable", count)
    return names


def test_new_files_are_added_and_nothing_else_is_encoded(library: Library, images: Path, encoded: list[str]) -> None:
    _draw(images / "new" / "100.png", 100)
    assert sync(library) == Synced(added=1)
    assert encoded == ["100.png"]
    assert library.get("new/100.png") is not None
    assert (library.count(), sync(library), encoded) == (37, Synced(), ["100.png"])


def test_changed_images_and_captions_are_encoded_again(library: Library, images: Path, encoded: list[str]) -> None:
    before = library.codes(["5.png"], "text").packed.tolist()
    _draw(images / "4.png", 77)
    (images / "5.txt").write_text("circle 35 on red")
    assert sync(library) == Synced(changed=2)
    assert "4.png" in encoded
    item = library.get("5.png")
    assert item is not None
    assert item.text == "circle 35 on red"
    assert library.codes(["5.png"], "text").packed.tolist() != before


def test_a_file_that_was_only_touched_is_not_encoded(library: Library, images: Path, encoded: list[str]) -> None:
    os.utime(images / "4.png", (1, 1))
    assert (sync(library), encoded) == (Synced(), [])
    with library.reading() as connection:
        assert {file.modified for _, file in read_photos(connection)} >= {10**9}


def test_a_metadata_file_with_a_name_of_its_own_is_read_again(images: Path) -> None:
    rows = [f"{number}.png,text {number}" for number in range(2, 36)]
    (images / "mine.csv").write_text("\n".join(["file_name,text", *rows]))
    build(images / "mine.csv", images.parent / "own", config=BuildConfig.parse(SMALL))
    with Library.open(images.parent / "own", writable=True) as library:
        assert sync(library) == Synced()
        (images / "mine.csv").write_text("\n".join(["file_name,text", *rows]).replace("text 5", "circle"))
        assert sync(library) == Synced(changed=1)
        (images / "mine.csv").rename(images / "other.csv")
        with pytest.raises(DataError, match=r"mine\.csv"):
            sync(library)
        assert library.count() == 34


def test_facts_that_a_repair_deleted_are_read_again(library: Library) -> None:
    with library.transaction() as connection:
        connection.execute("DELETE FROM photos WHERE row = 3")
    assert sync(library) == Synced()
    with library.reading() as connection:
        assert len(dict(read_photos(connection))) == 36


def test_a_moved_file_keeps_its_codes(library: Library, images: Path, encoded: list[str]) -> None:
    codes = library.codes(["7.png"], "image").packed.tolist()
    for suffix in (".png", ".txt"):
        (images / "7").with_suffix(suffix).rename(images / "trip" / f"seven{suffix}")
    assert (sync(library), encoded) == (Synced(moved=1), [])
    assert (library.get("7.png"), library.count()) == (None, 36)
    assert library.codes(["trip/seven.png"], "image").packed.tolist() == codes


def test_a_deleted_file_is_forgotten_when_it_is_missed_again(library: Library, images: Path) -> None:
    (images / "8.png").unlink()
    (images / "8.txt").unlink()
    assert sync(library) == Synced(missing=("8.png",))
    assert library.count() == 36
    assert sync(library) == Synced(removed=1)
    assert (library.count(), sync(library)) == (35, Synced())


def test_a_file_that_comes_back_stays(library: Library, images: Path) -> None:
    for name in ("8.png", "8.txt"):
        (images / name).rename(images.parent / name)
    assert sync(library).missing == ("8.png",)
    for name in ("8.png", "8.txt"):
        (images.parent / name).rename(images / name)
    assert sync(library) == Synced()
    assert library.get("8.png") is not None


def test_prune_forgets_at_once(library: Library, images: Path) -> None:
    for name in ("9.png", "9.txt"):
        (images / name).unlink()
    assert sync(library, prune=True) == Synced(removed=1)


@pytest.mark.parametrize("empty", [True, False])
@pytest.mark.parametrize("prune", [True, False])
def test_a_disk_that_is_not_mounted_never_empties_a_library(
    library: Library, images: Path, empty: bool, prune: bool
) -> None:
    shutil.rmtree(images)
    if empty:
        images.mkdir()
    with pytest.raises(InputError, match="nothing was changed"):
        sync(library, prune=prune)
    assert library.count() == 36


def test_an_image_that_became_unreadable_keeps_its_item_and_is_reported(library: Library, images: Path) -> None:
    for name in ("3.png", "new.png"):
        (images / name).write_bytes(b"half a file")
    found = sync(library)
    assert ([one.id for one in found.skipped], found.added, found.changed) == (["3.png", "new.png"], 0, 0)
    assert len(library.codes(["3.png"], "image")) == 1


def test_a_folder_without_the_images_is_not_their_new_place(library: Library, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(InputError, match="none of the 36 images"):
        relocate(library, tmp_path / "elsewhere")


def test_a_library_that_keeps_its_images_is_refused(images: Path) -> None:
    with Library.open(images.parent / "library") as opened:
        model = opened.model()
    with Library.create(images.parent / "own", model) as own, pytest.raises(InputError, match="rmsh add"):
        sync(own)
