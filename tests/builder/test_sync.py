"""Sync: a library follows its folder; only what changed is encoded, and nothing is lost by a missing disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from rmsh.builder import BuildConfig, build
from rmsh.builder.add import Added, add
from rmsh.builder.sync import Synced, folders_of, sync
from rmsh.core.errors import DataError, FormatError, InputError
from rmsh.features.images import ImageEncoder
from rmsh.library import Library
from rmsh.library.folder import image_folders
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


@pytest.fixture
def trip(library: Library, images: Path) -> Path:
    """A second folder of the library, with a captioned image and one without a text, named as one of the first."""
    folder = images.parent / "disk" / "holiday"
    for number in (200, 201):
        _draw(folder / f"{number}.png", number)
    (folder / "200.txt").write_text("circle 200 on blue")
    assert add(library, folder) == Added(2, 0, ())
    return folder


def test_a_sync_follows_every_folder(library: Library, images: Path, trip: Path, encoded: list[str]) -> None:
    item = library.get("holiday/200.png")
    assert item is not None
    assert (item.text, library.picture_path(item)) == ("circle 200 on blue", trip / "200.png")
    assert sync(library) == Synced()
    _draw(trip / "late" / "203.png", 203)
    _draw(images / "204.png", 204)
    assert (sync(library), sorted(encoded)) == (Synced(added=2), ["203.png", "204.png"])
    assert library.get("holiday/late/203.png") is not None
    assert (library.count(), sync(library)) == (40, Synced())


def test_a_file_keeps_its_codes_from_one_folder_to_another(library: Library, images: Path, trip: Path) -> None:
    codes = library.codes(["holiday/201.png"], "image").packed.tolist()
    (trip / "201.png").rename(images / "here.png")
    assert sync(library) == Synced(moved=1)
    assert library.codes(["here.png"], "image").packed.tolist() == codes


@pytest.mark.parametrize("prune", [True, False])
def test_nothing_is_forgotten_while_a_folder_is_missing(
    library: Library, images: Path, trip: Path, *, prune: bool
) -> None:
    for name in ("8.png", "8.txt"):
        (images / name).unlink()
    trip.parent.rename(images.parent / "unmounted")
    _draw(images / "new.png", 205)
    for added in (1, 0, 0):
        found = sync(library, prune=prune)
        assert (found.added, found.removed, [one.file for one in found.skipped]) == (added, 0, [str(trip)])
    assert library.count() == 39
    (images.parent / "unmounted").rename(trip.parent)
    (trip / "201.png").unlink()
    gone = ("8.png", "holiday/201.png")
    assert sync(library, prune=prune) == (Synced(removed=2) if prune else Synced(missing=gone))
    assert sync(library) == (Synced() if prune else Synced(removed=2))
    assert library.get("holiday/200.png") is not None


def test_the_first_folder_may_be_the_one_that_is_missing(library: Library, images: Path, trip: Path) -> None:
    images.rename(images.parent / "unmounted")
    _draw(trip / "202.png", 202)
    found = sync(library, prune=True)
    assert (found.added, found.removed, library.count()) == (1, 0, 39)
    assert relocate(library, images.parent / "unmounted") == (36, 36)
    assert sync(library) == Synced()


def test_relocate_finds_out_which_folder_it_is(library: Library, images: Path, trip: Path) -> None:
    assert relocate(library, trip.rename(images.parent / "moved")) == (2, 2)
    item = library.get("holiday/200.png")
    assert item is not None
    assert library.picture_path(item) == images.parent / "moved" / "200.png"
    assert sync(library) == Synced()


def test_single_images_are_followed_where_they_are(library: Library, images: Path, tmp_path: Path) -> None:
    for number, name in enumerate(("a/one.png", "a/other.png", "b/one.png", "images/trip/in.png")):
        _draw(tmp_path / name, 300 + number)
    (tmp_path / "a" / "one.txt").write_text("circle one")
    chosen = [tmp_path / name for name in ("a/one.png", "b/one.png", "images/trip/in.png")]
    assert add(library, *chosen) == Added(3, 0, ())
    assert add(library, *chosen) == Added(0, 3, ())
    texts = {name: item.text for name in ("one.png", "one-2.png", "trip/in.png") if (item := library.get(name))}
    assert texts == {"one.png": "circle one", "one-2.png": None, "trip/in.png": None}
    assert (sync(library), library.count()) == (Synced(), 39)
    (tmp_path / "a" / "one.txt").write_text("circle two")
    (tmp_path / "b" / "one.png").unlink()
    assert sync(library) == Synced(changed=1, missing=("one-2.png",))
    assert sync(library) == Synced(removed=1)
    with library.reading() as connection:
        assert [*image_folders(connection, library.folder)] == ["", "one.png"]


def test_rows_of_a_further_metadata_file_stay(library: Library, images: Path) -> None:
    (images / "more.jsonl").write_text('{"id": "w", "text": "circle"}\n{"file_name": "5.png", "text": "the fifth"}\n')
    assert add(library, images / "more.jsonl").added == 2
    item = library.get("more.jsonl/5.png")
    assert item is not None
    assert (sync(library), library.picture_path(item)) == (Synced(), images / "5.png")
    assert library.get("w") is not None


def test_a_folder_around_or_with_the_name_of_another_is_explained(library: Library, images: Path, trip: Path) -> None:
    with pytest.raises(InputError, match="contains"):
        add(library, images.parent)
    _draw(images / "holiday" / "1.png", 400)
    (skipped,) = sync(library).skipped
    assert (skipped.id, skipped.left_out) == ("holiday/1.png", "item")
    assert str(trip) in skipped.reason


def test_a_library_and_its_folders_can_be_moved_together(library: Library, images: Path, trip: Path) -> None:
    together = images.parent / "elsewhere"
    together.mkdir()
    library.close()
    for name in ("library", "images", "disk"):
        (images.parent / name).rename(together / name)
    with Library.open(together / "library", writable=True) as moved:
        for name, place in (("5.png", "images/5.png"), ("holiday/200.png", "disk/holiday/200.png")):
            item = moved.get(name)
            assert item is not None
            assert moved.picture_path(item) == together / place
        assert sync(moved) == Synced()
    (together / "library").rename(images.parent / "alone")
    with Library.open(images.parent / "alone") as alone, pytest.raises(InputError, match="missing or empty"):
        folders_of(alone)


def test_a_library_moved_alone_finds_its_folder(images: Path, tmp_path: Path) -> None:
    shutil.copytree(images.parent / "library", tmp_path / "deep" / "library")
    with Library.open(tmp_path / "deep" / "library") as library:
        assert folders_of(library) == {"": images}


def test_a_damaged_list_of_folders_is_refused(library: Library, trip: Path) -> None:
    with library.transaction() as connection:
        connection.execute("UPDATE folders SET path = '/nowhere' WHERE name = 'holiday'")
    with pytest.raises(FormatError, match="list of image folders"):
        sync(library)
