"""Records: what is left out of an item and why, and the pairs that result."""

from __future__ import annotations

import csv
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rmsh.core.errors import DataError
from rmsh.data.records import (
    LONGEST_TEXT,
    Record,
    Skipped,
    check_records,
    count_skipped,
    refuse_skipped,
    to_pairs,
    write_skipped,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two images, and one outside."""
    (tmp_path / "secret.jpg").write_bytes(b"")
    photos = tmp_path / "photos"
    photos.mkdir()
    for name in ("a.jpg", "b.jpg"):
        (photos / name).write_bytes(b"")
    return photos


def _record(row: int = 2, **fields: object) -> Record:
    return replace(Record("metadata.csv", row, "a", picture="a.jpg", text="a dog"), **fields)


@pytest.mark.parametrize(
    ("fields", "left_out", "reason"),
    [
        ({"picture": "gone.jpg"}, "picture", "does not exist"),
        ({"picture": "../secret.jpg"}, "picture", "leads out"),
        ({"picture": "x/../../secret.jpg"}, "picture", "leads out"),
        ({"picture": "/etc/hostname"}, "picture", "leads out"),
        ({"picture": "C:/secret.jpg"}, "picture", "leads out"),
        ({"picture": "."}, "picture", "not a regular file"),
        ({"picture": "a\0.jpg"}, "picture", "not a valid file name"),
        ({"picture": "x" * 5000}, "picture", "cannot be accessed"),
        ({"text": " \n"}, "text", "empty"),
        ({"text": "a\udc80b"}, "text", "not valid Unicode"),
        ({"text": "x" * (LONGEST_TEXT + 1)}, "text", "2,001 characters"),
        ({"id": " "}, "item", "blank"),
        ({"id": "a\nb"}, "item", "control character"),
        ({"id": "x" * 501}, "item", "longer than 500"),
        ({"labels": ("x" * 501,)}, "item", "too long"),
        ({"picture": None, "text": None}, "item", "neither"),
        ({"picture": "gone.jpg", "text": ""}, "item", "'gone.jpg' does not exist; the text is empty"),
    ],
)
def test_invalid_parts_are_left_out_and_listed(
    folder: Path, fields: dict[str, object], left_out: str, reason: str
) -> None:
    kept, (skipped,) = check_records([_record(7, **fields)], folder)
    assert (skipped.row, skipped.left_out) == (7, left_out)
    assert reason in skipped.reason
    assert len(kept) == (left_out != "item")


@pytest.mark.skipif(os.name == "nt", reason="making links takes rights on Windows")
def test_a_link_may_lead_within_the_folder_but_not_out(folder: Path) -> None:
    (folder / "inside.jpg").symlink_to(folder / "a.jpg")
    (folder / "outside.jpg").symlink_to(folder.parent / "secret.jpg")
    (folder / "loop.jpg").symlink_to(folder / "loop.jpg")
    names = ("inside.jpg", "outside.jpg", "loop.jpg")
    kept, skipped = check_records([_record(id=name, picture=name) for name in names], folder)
    assert [record.picture for record in kept] == ["inside.jpg", None, None]
    assert "leads out" in skipped[0].reason


def test_of_two_items_with_one_id_the_first_is_kept(folder: Path) -> None:
    kept, (skipped,) = check_records([_record(2), _record(3, text="another")], folder)
    assert [record.text for record in kept] == ["a dog"]
    assert "metadata.csv, row 2" in skipped.reason


def test_a_text_that_is_too_long_is_cut(folder: Path) -> None:
    (record,), _ = check_records([_record(text="y" * 3000)], folder)
    assert record.text == "y" * LONGEST_TEXT


def test_names_of_real_files_are_accepted(folder: Path) -> None:
    name = "Bildschirmfoto um 10.30\u202fUhr (größer).jpg"  # macOS puts a narrow space before AM
    (folder / name).write_bytes(b"")
    kept, skipped = check_records([_record(id=name, picture=name)], folder)
    assert (len(kept), skipped) == (1, [])


def test_labels_are_stripped_and_each_counts_once(folder: Path) -> None:
    (record,), _ = check_records([_record(labels=(" dog ", "", "dog", "cat"))], folder)
    assert record.labels == ("dog", "cat")


def test_pairs_have_masks_of_images_and_texts(folder: Path) -> None:
    records = [
        _record(id="both", labels=("dog",)),
        _record(id="text", picture=None),
        _record(id="picture", text=None, labels=("cat", "dog")),
    ]
    pairs = to_pairs(records, folder=folder, source="photos")
    assert pairs.has_image.tolist() == [True, False, True]
    assert pairs.has_text.tolist() == [True, True, False]
    assert (pairs.class_names, np.asarray(pairs.labels).tolist()) == (("cat", "dog"), [[0, 1], [0, 0], [1, 1]])
    assert Path(str(np.asarray(pairs.images)[0])) == folder / "a.jpg"


def test_without_images_or_labels_the_columns_are_absent(folder: Path) -> None:
    pairs = to_pairs([_record(picture=None)], folder=folder, source="texts")
    assert pairs.images is None
    assert pairs.labels is None


def test_data_without_usable_records_is_refused(folder: Path) -> None:
    with pytest.raises(DataError, match="photos contains no items"):
        to_pairs([], folder=folder, source="photos")


LIST = [Skipped("metadata.csv", row, f"i{row}", "item", 'a "reason", with\nmarks') for row in range(2, 14)]


def test_the_file_has_one_row_per_skipped_part(tmp_path: Path) -> None:
    write_skipped(tmp_path / "skipped.csv", LIST)
    with (tmp_path / "skipped.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert rows[0] == {
        "file": "metadata.csv",
        "row": "2",
        "id": "i2",
        "left_out": "item",
        "reason": 'a "reason", with\nmarks',
    }


def test_each_kind_is_counted_with_an_example() -> None:
    more = Skipped("x.txt", None, "x", "text", "empty")
    assert count_skipped([*LIST, more])[1] == "1 text was left out, such as x.txt (text: empty)"
    assert count_skipped([*LIST, more])[0].startswith("12 items were left out, such as metadata.csv, row 2")
    assert count_skipped([]) == []


def test_strict_names_the_first_ten() -> None:
    refuse_skipped([], "photos")
    with pytest.raises(DataError, match=r"photos: 12 .*would be left out.*row 11.*and 2 more"):
        refuse_skipped([Skipped("m.csv", row, "", "item", "no") for row in range(2, 14)], "photos")
