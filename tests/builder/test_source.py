"""The items of a build: where labels and texts come from, and data that nothing can be learned from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from rmsh.builder.source import BuildConfig, Source, read_source
from rmsh.core.errors import DataError


def _folder(folder: Path, rows: list[str], header: str = "file_name,text,labels") -> Path:
    for number in range(len(rows)):
        (folder / f"{number}.jpg").write_bytes(b"")
    (folder / "metadata.csv").write_text("\n".join([header, *(f"{n}.jpg,{row}" for n, row in enumerate(rows))]) + "\n")
    return folder


def _read(folder: Path, **options: Any) -> Source:
    return read_source(folder, BuildConfig.parse({"method": "rmsh", **options}), work=folder / "work")


UNLABELLED = ["a dog,", "two dogs,", "a cat,", "cats,", "the sea,"]


def test_labels_of_the_data_come_first(tmp_path: Path) -> None:
    source = _read(_folder(tmp_path, ["dog,x", "cat,y", "dog,x"]))
    assert source.pairs.class_names == ("x", "y")


def test_without_labels_they_are_mined(tmp_path: Path) -> None:
    source = _read(_folder(tmp_path, UNLABELLED))
    assert source.pairs.class_names == ("cat", "dog")
    assert source.pairs.labelled.tolist() == [True] * 4 + [False]
    assert "classes: cat, dog" in source.notes[-1]
    assert source.classes == {"cat": ["cat", "cats"], "dog": ["dog", "dogs"]}


def test_labels_may_be_mined_though_there_are_some(tmp_path: Path) -> None:
    source = _read(_folder(tmp_path, [row + "given" for row in UNLABELLED]), labels_from="text")
    assert source.pairs.class_names == ("cat", "dog")


def test_labels_are_the_texts_where_there_are_none(tmp_path: Path) -> None:
    source = _read(_folder(tmp_path, ["dog;park", "cat", "dog"], header="file_name,labels"))
    assert np.asarray(source.pairs.texts).tolist() == ["dog, park", "cat", "dog"]
    assert source.origin.records[0].text == "dog, park"
    assert "label names" in source.notes[-1]


@pytest.mark.parametrize(
    ("rows", "header", "options", "said"),
    [
        (["", ""], "file_name,text", {}, "no item has a label or a text"),
        (["dog,", "cat,"], "file_name,text,labels", {"labels_from": "data"}, "mine them with --labels-from text"),
        (["dog,x", "cat,x", "sea,x"], "file_name,text,labels", {}, r"all 3 items have the same labels \(x\)"),
        (
            ["dog,x", "cat,y"],
            "file_name,text,labels",
            {},
            "2 of 2 items have an image and a text and labels; rmsh needs at least 3",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_refused(
    tmp_path: Path, rows: list[str], header: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(DataError, match=said):
        _read(_folder(tmp_path, rows, header), **options)


def test_features_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", np.eye(3))
    with pytest.raises(DataError, match="contains features"):
        _read(tmp_path)


def test_strict_fails_on_a_missing_image(tmp_path: Path) -> None:
    _folder(tmp_path, ["dog,x", "cat,y", "dog,x"])
    (tmp_path / "1.jpg").unlink()
    with pytest.raises(DataError, match=r"row 3 \(picture"):
        _read(tmp_path, strict=True)


def test_the_key_follows_every_image_text_and_label(tmp_path: Path) -> None:
    rows = ["dog,x", "cat,y", "dog,x"]
    first = _read(_folder(tmp_path, rows)).key()
    assert _read(tmp_path).key() == first
    (tmp_path / "0.jpg").write_bytes(b"other")
    changed = _read(tmp_path).key()
    assert len({first, changed, _read(_folder(tmp_path, ["dog,y", "cat,y", "dog,x"])).key()}) == 3


def _holidays(folder: Path, *, captions: bool) -> Path:
    """Forty images in nested folders of holidays, most of them with a caption."""
    for number in range(40):
        path = folder / f"{2019 + number % 2}" / ("Italy", "Norway")[number % 2] / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        if captions and number > 3:
            path.with_suffix(".txt").write_text(("a dog", "a cat", "the sea")[number % 3])
    return folder


@pytest.mark.parametrize(("captions", "learned"), [(True, "pairs"), (False, "nothing")])
def test_names_of_folders_are_filters_unless_they_are_asked_for(tmp_path: Path, captions: bool, learned: str) -> None:
    _holidays(tmp_path, captions=captions)
    source = _read(tmp_path, method="nest")
    assert (source.pairs.class_names, source.learn_from, source.judged) == (("Italy", "Norway"), learned, False)
    assert "--labels-from folders" in " ".join(source.notes)
    assert (source.pairs.texts is not None) == captions  # "Italy" is not what an image shows
    asked = _read(tmp_path, method="nest", labels_from="folders")
    assert (asked.pairs.class_names, asked.learn_from, asked.judged) == (("Italy", "Norway"), "labels", True)
    assert _read(tmp_path).learn_from == "labels"  # RMSH cannot do without


def test_labels_that_are_not_folders_are_not_taken_for_them(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="--labels-from data"):
        _read(_folder(tmp_path, ["dog,x", "cat,y", "dog,x"]), labels_from="folders")


def test_captions_of_image_files_are_texts_where_there_are_none(tmp_path: Path) -> None:
    for name, caption in (("a", "two dogs"), ("b", None), ("c", "a cat")):
        exif = Image.Exif()
        if caption:
            exif[270] = caption
        Image.new("RGB", (8, 8), "red").save(tmp_path / f"{name}.jpg", exif=exif)
    (tmp_path / "c.txt").write_text("the sea")
    source = _read(tmp_path, method="nest")
    assert [record.text for record in source.origin.records] == ["two dogs", None, "the sea"]
    assert source.pairs.has_text.tolist() == [True, False, True]
    assert (tmp_path / "work" / "files.json").is_file()
    assert _read(tmp_path, method="nest").files == source.files
