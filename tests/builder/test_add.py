"""Adding items to a library: only new ones, encoded with its model."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rmsh.builder import BuildConfig, Built, build
from rmsh.builder.add import Added, add
from rmsh.core.errors import DataError, InputError
from rmsh.library import Library
from rmsh.library.maintenance import describe
from rmsh.model import Model, load
from rmsh.search import Searcher

Draw = Callable[..., Path]


@pytest.fixture
def of_folder(drawings: Path, quick: BuildConfig, tmp_path: Path) -> Path:
    """A library that finds its pictures in the folder of drawings."""
    return build(drawings, tmp_path / "own", config=quick).library


def test_new_items_of_the_folder_are_added_and_found(of_folder: Path, drawings: Path, draw: Draw) -> None:
    draw(drawings, 2, first=40)
    with Library.open(of_folder, writable=True) as library:
        found = add(library, drawings)
        assert (found.added, found.existing, found.skipped) == (2, 40, ())
        codes = library.codes(["40.png"], "image")
        hits = library.search(codes, 42, to="image", model=library.generation().fingerprint)[0]
        assert {"40.png", "41.png"} <= {hit.item.id for hit in hits}
        assert len({hit.distance for hit in hits if hit.item.id in ("40.png", "10.png")}) == 1  # the same drawing
        assert add(library, drawings).added == 0


@pytest.mark.parametrize(("store", "vectors"), [("codes", None), ("codes+vectors", 42)])
def test_new_items_are_stored_as_those_of_the_build(
    store: str, vectors: int | None, *, drawings: Path, draw: Draw, quick: BuildConfig, tmp_path: Path
) -> None:
    built = build(drawings, tmp_path / "stored", config=quick.model_copy(update={"store": store}))
    draw(drawings, 2, first=40)
    with Library.open(built.library, writable=True) as library:
        assert (add(library, drawings).added, library.count()) == (2, 42)
        found = describe(library)
        assert (found.store, found.counts.get("image vectors")) == (store, vectors)
        assert found.bytes_per_item == built.report["bytes_per_item"]
    assert built.report["bytes_per_item"]["codes"] == 4
    assert (built.report["bytes_per_item"]["vectors"] > 0) == (store == "codes+vectors")
    with Searcher.open(built.library) as searcher:
        assert len(searcher.search(searcher.text("a red circle"), 5)) == 5


def test_a_library_that_was_emptied_stores_vectors_again(of_folder: Path, drawings: Path) -> None:
    with Library.open(of_folder, writable=True) as library:
        library.remove([f"{number}.png" for number in range(40)])
        add(library, drawings)
        assert describe(library).counts["image vectors"] == 40


def test_new_items_get_labels_from_their_texts_if_the_build_did(
    drawings: Path, quick: BuildConfig, tmp_path: Path
) -> None:
    mined = quick.model_copy(update={"labels_from": "text"})
    folder = build(drawings, tmp_path / "mined", config=mined).library
    (drawings / "words.jsonl").write_text('{"id": "w", "text": "one more red thing"}\n')
    with Library.open(folder, writable=True) as library:
        assert add(library, drawings / "words.jsonl").added == 1
        item = library.get("w")
        assert item is not None
        assert item.labels == ("red",)


def test_label_names_are_the_texts_of_new_items_if_they_were_at_the_build(
    drawings: Path, quick: BuildConfig, tmp_path: Path
) -> None:
    (drawings / "metadata.csv").unlink()
    for number in range(40):
        kind = drawings / ("even" if number % 2 == 0 else "odd")
        kind.mkdir(exist_ok=True)
        (drawings / f"{number}.png").rename(kind / f"{number}.png")
    folder = build(drawings, tmp_path / "classes", config=quick).library
    shutil.copy(drawings / "odd" / "1.png", drawings / "odd" / "41.png")
    with Library.open(folder, writable=True) as library:
        assert add(library, drawings).added == 1
        item = library.get("odd/41.png")
        assert item is not None
        assert (item.text, item.labels) == ("odd", ("odd",))
        assert len(library.codes(["odd/41.png"], "text")) == 1


def test_an_image_that_cannot_be_read_is_listed(of_folder: Path, drawings: Path, draw: Draw) -> None:
    draw(drawings, 1, first=40)
    (drawings / "40.png").write_bytes(b"no picture")
    with Library.open(of_folder, writable=True) as library:
        found = add(library, drawings)
        item = library.get("40.png")
    assert [one.row for one in found.skipped] == [42]
    assert item is not None
    assert item.picture is None


def test_strict_adds_nothing_where_an_image_cannot_be_read(of_folder: Path, drawings: Path, draw: Draw) -> None:
    draw(drawings, 2, first=40)
    (drawings / "40.png").write_bytes(b"no picture")
    with Library.open(of_folder, writable=True) as library:
        with pytest.raises(DataError, match="row 42"):
            add(library, drawings, strict=True)
        assert library.count() == 40


def test_a_folder_below_the_librarys_images_may_be_given(of_folder: Path, drawings: Path, draw: Draw) -> None:
    draw(drawings / "more", 1, first=40)
    with Library.open(of_folder, writable=True) as library:
        assert add(library, drawings / "more").added == 1
        item = library.get("more/40.png")  # as a sync reads it
        assert item is not None
        assert item.picture == "more/40.png"


def test_images_elsewhere_stay_there(of_folder: Path, tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "elsewhere", 2, first=40)
    with Library.open(of_folder, writable=True) as library:
        assert add(library, tmp_path / "elsewhere").added == 2
        item = library.get("elsewhere/41.png")
        assert item is not None
        assert library.picture_path(item) == tmp_path / "elsewhere" / "41.png"
        assert add(library, tmp_path / "elsewhere" / "41.png") == Added(0, 1, ())


def test_what_cannot_be_added_is_named(of_folder: Path, drawings: Path, tmp_path: Path) -> None:
    tarfile.open(tmp_path / "a.tar", "w").close()
    (drawings / "unlisted.png").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    with Library.open(of_folder, writable=True) as library:
        with pytest.raises(InputError, match=r"a\.tar has its images packed"):
            add(library, tmp_path / "a.tar")
        with pytest.raises(DataError, match=r"no row of metadata\.csv names it"):
            add(library, drawings / "unlisted.png")
        with pytest.raises(DataError, match=r"nowhere\.jpg"):
            add(library, tmp_path / "nowhere.jpg")
        with pytest.raises(DataError, match="no image or text"):
            add(library, tmp_path / "empty")
        assert library.count() == 40


def test_texts_alone_may_come_from_anywhere(built: Built, tmp_path: Path) -> None:
    (tmp_path / "words.jsonl").write_text('{"id": "w", "text": "a red circle"}\n')
    with Library.open(built.library, writable=True) as library:
        assert add(library, tmp_path / "words.jsonl").added == 1
        assert len(library.codes(["w"], "text")) == 1


@pytest.mark.parametrize("links", [True, False])
def test_images_of_shards_are_linked_or_copied_into_the_library(
    links: bool, *, drawings: Path, quick: BuildConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(source: Path, target: Path) -> None:
        raise OSError("this disk has no links")

    if not links:
        monkeypatch.setattr(os, "link", no_links)

    def shard(name: str, numbers: range) -> Path:
        with tarfile.open(tmp_path / name, "w") as archive:
            for i in numbers:
                archive.add(drawings / f"{i}.png", f"{i}.png")
                info = tarfile.TarInfo(f"{i}.json")
                cells = b'{"text": "a %d circle", "labels": "%d"}' % (i % 3, i % 3)
                info.size = len(cells)
                archive.addfile(info, io.BytesIO(cells))
        return tmp_path / name

    built = build(shard("a.tar", range(8)), tmp_path / "own", config=quick)
    with Library.open(built.library, writable=True) as library:
        assert add(library, shard("b.tar", range(6, 12))).added == 4
        item = library.get("11")
        assert item is not None
        assert library.picture_path(item) == (built.library / "pictures" / "11.png").resolve()
        assert (built.library / "pictures" / "11.png").is_file()
        images = [drawings / f"{number}.png" for number in (20, 21)]
        assert add(library, *images).added == 2
        assert (built.library / "pictures" / "21.png").is_file()
        with pytest.raises(InputError, match="same name"):
            add(library, images[0], tmp_path / "20.png")


def test_a_model_that_was_trained_on_features_cannot_encode_images(
    built: Built, drawings: Path, tmp_path: Path
) -> None:
    bare = Model(load(built.library / "model").functions, "test", {})
    with Library.create(tmp_path / "bare", bare, source=drawings) as library:
        with pytest.raises(InputError, match="images are raw"):
            add(library, drawings)
        assert library.count() == 0


def test_features_are_refused(built: Built, tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", np.eye(3))
    with (
        Library.open(built.library, writable=True) as library,
        pytest.raises(DataError, match=r"images\.npy contains features"),
    ):
        add(library, tmp_path / "images.npy")
