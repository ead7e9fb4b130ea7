"""MS COCO 2014 in its published layout, with the quirks of its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.benchmarks.declarations import BENCHMARKS
from lab.benchmarks.prepare import prepare
from lab.benchmarks.published import read_mscoco as read
from lab.benchmarks.published import stream_elements
from rmsh.core.errors import DataError
from rmsh.data.open import open_pairs

CATEGORIES = [{"id": 90, "name": "toothbrush"}, {"id": 1, "name": "person"}, {"id": 18, "name": "dog"}]


CROWD = {"iscrowd": 1, "segmentation": {"counts": [3, 4], "size": [7, 1]}}


def image(number: int, part: str) -> dict[str, Any]:
    return {"id": number, "file_name": f"COCO_{part}2014_{number:012}.jpg"}


def thing(picture: int, category: int, **more: Any) -> dict[str, Any]:
    return {"id": 7, "image_id": picture, "category_id": category, "segmentation": [[1.5, 2.0]]} | more


def caption(picture: int, text: str) -> dict[str, Any]:
    return {"id": 8, "image_id": picture, "caption": text}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three training images (the last without annotation) and two for validation."""
    write(tmp_path, "instances", "train", images=[30, 9, 25], categories=CATEGORIES, annotations=[
        thing(9, 18), thing(9, 18), thing(30, 90), thing(9, 1, **CROWD),
    ])  # fmt: skip
    write(tmp_path, "captions", "train", images=[30, 9, 25], annotations=[
        caption(9, " \n"), caption(9, "A dog  at a café.\r\n"), caption(9, "Another."), caption(30, "Brush."),
        caption(30, "Brush."), caption(25, "Nothing."),
    ])  # fmt: skip
    write(tmp_path, "instances", "val", images=[42, 5], categories=CATEGORIES, annotations=[thing(42, 1)])
    write(tmp_path, "captions", "val", images=[42, 5], annotations=[caption(42, "A man.")])
    return tmp_path


def write(root: Path, kind: str, part: str, *, images: list[int], **members: Any) -> None:
    (root / "annotations").mkdir(exist_ok=True)
    content = {"info": {"year": 2014}, "images": [image(n, part) for n in images], "licenses": [], **members}
    (root / "annotations" / f"{kind}_{part}2014.json").write_text(json.dumps(content), encoding="utf-8")


def test_images_are_ordered_by_part_and_number(root: Path) -> None:
    source = read(root)
    assert source.pairs.ids.tolist() == ["9", "25", "30", "5", "42"]
    assert source.part.tolist() == ["train"] * 3 + ["val"] * 2


def test_labels_are_the_categories_by_number_including_crowds(root: Path) -> None:
    pairs = read(root).pairs
    assert pairs.class_names == ("person", "dog", "toothbrush")
    assert pairs.labels.tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0]]


def test_the_first_caption_that_is_not_blank_is_taken_with_single_blanks(root: Path) -> None:
    pairs = read(root).pairs
    assert pairs.texts.tolist() == ["A dog at a café.", "Nothing.", "Brush.", "", "A man."]
    assert pairs.has_text.tolist() == [True, True, True, False, True]


def test_images_of_one_part_only_are_found(root: Path) -> None:
    assert read(root).pairs.images is None
    (root / "val2014").mkdir()
    (root / "val2014" / "COCO_val2014_000000000005.jpg").touch()
    pairs = read(root).pairs
    assert pairs.has_image.tolist() == [False, False, False, True, False]
    assert pairs.images[3].endswith("COCO_val2014_000000000005.jpg")


def test_annotations_of_images_that_are_not_listed_are_counted(root: Path) -> None:
    write(root, "instances", "val", images=[42, 5], categories=CATEGORIES, annotations=[thing(1000, 1), thing(5, 2)])
    assert read(root).notes == ("2 annotations of images that are not listed were skipped",)


def test_missing_files_are_named_with_the_owners_page(root: Path) -> None:
    (root / "annotations" / "captions_val2014.json").unlink()
    with pytest.raises(DataError, match=r"lacks annotations/captions_val2014.json\. .*cocodataset.org"):
        read(root)


def test_parts_of_different_categories_are_refused(root: Path) -> None:
    write(root, "instances", "val", images=[42, 5], categories=CATEGORIES[:2], annotations=[])
    with pytest.raises(DataError, match="the categories of train2014 and val2014 differ"):
        read(root)


@pytest.mark.parametrize("broken", [{"id": 1, "image_id": 9}, {"category_id": 1}, 7])
def test_an_annotation_without_image_or_category_is_refused(root: Path, broken: Any) -> None:
    write(root, "instances", "train", images=[9], categories=CATEGORIES, annotations=[broken])
    with pytest.raises(DataError, match=r"instances_train2014.json: annotations\[0\] lacks"):
        read(root)


@pytest.mark.parametrize(("name", "database"), [("paper", ["9", "25", "30"]), ("labelled", ["9", "30"])])
def test_the_papers_split_keeps_images_without_label_in_the_database_only(
    root: Path, tmp_path: Path, name: str, database: int
) -> None:
    prepare(
        "mscoco",
        root,
        out=tmp_path / "out",
        split=BENCHMARKS["mscoco"].protocol(name).model_copy(update={"queries": 1}),
        without_images=True,
    )
    opened = open_pairs(tmp_path / "out")
    assert opened.pairs.ids[opened.split.database].tolist() == database
    assert opened.pairs.ids[opened.split.query].tolist() == ["42"]
    assert opened.pairs.texts[0] == "A dog at a café."


def test_the_root_may_be_the_folder_of_the_annotations(root: Path) -> None:
    assert len(read(root / "annotations").pairs) == 5


@pytest.mark.parametrize("name", ["9", "000000000009", "COCO_train2014_000000000009.jpg"])
def test_spellings_of_an_id(root: Path, name: str) -> None:
    assert read(root).canonical_id(name) == "9"


NUMBERS = st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=st.dictionaries(st.sampled_from("abcd"), VALUES), indent=st.sampled_from([None, 2]))
def test_streamed_elements_equal_those_of_the_whole_file(tmp_path: Path, value: Any, indent: int | None) -> None:
    (tmp_path / "a.json").write_text(json.dumps(value, indent=indent), encoding="utf-8")
    expected = value.get("a") if isinstance(value.get("a"), list) else []
    assert list(stream_elements(tmp_path / "a.json", "a")) == expected


def test_windows_line_ends_and_a_byte_order_mark_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf{\r\n "a": [1,\r\n 2]\r\n}\r\n')
    assert list(stream_elements(tmp_path / "a.json", "a")) == [1, 2]


@pytest.mark.parametrize(
    "content", [b"", b"[1]", b'{"a": [1', b'{"a": [1 2]}', b'{"a" 1}', b'{"a": [{"b": "c', b'{"a": "\xff"}']
)
def test_what_is_not_a_whole_json_object_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.json"):
        list(stream_elements(tmp_path / "a.json", "a"))
