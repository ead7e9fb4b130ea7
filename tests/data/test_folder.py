"""Folders of pictures: metadata files, texts beside pictures, folders as classes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rmsh.core.errors import DataError
from rmsh.data.open import open_pairs
from rmsh.data.readers.folder import is_picture_folder, read_folder


def _write(folder: Path, **files: str | bytes) -> Path:
    """Files by name, with two underscores for a slash and one for a dot."""
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_a_metadata_file_says_what_the_items_are(tmp_path: Path) -> None:
    (tmp_path / "metadata.csv").write_text("file_name,text\na.jpg,a dog\n")
    origin, notes = read_folder(_write(tmp_path, a_jpg="", b_jpg="", b_txt="not read"))
    assert [(record.id, record.text) for record in origin.records] == [("a.jpg", "a dog")]
    assert [(one.file, one.row, one.left_out) for one in origin.skipped] == [("b.jpg", None, "item")]
    assert notes == ["metadata.csv: 1 rows"]


def test_each_part_of_a_data_set_may_have_its_own(tmp_path: Path) -> None:
    _write(tmp_path, train__a_jpg="", test__a_jpg="")
    (tmp_path / "train" / "metadata.csv").write_text("file_name,text\na.jpg,one\n")
    (tmp_path / "test" / "metadata.jsonl").write_text('{"file_name": "a.jpg", "text": "two"}\n')
    origin, _ = read_folder(tmp_path)
    assert [(r.id, r.text) for r in origin.records] == [("test/a.jpg", "two"), ("train/a.jpg", "one")]


def test_two_metadata_files_in_one_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"metadata\.csv and metadata\.jsonl, and only one"):
        read_folder(_write(tmp_path, metadata_csv="file_name\n", metadata_jsonl=""))


def test_a_text_beside_a_picture_is_its_text(tmp_path: Path) -> None:
    _write(
        tmp_path, a_jpg="", a_txt="\ufeffa dog\n", b_PNG="", c_txt="words alone", d_jpg="", d_txt=b"\xff\xfe", x_pdf=""
    )
    origin, notes = read_folder(tmp_path)
    assert [(r.id, r.picture, r.text) for r in origin.records] == [
        ("a.jpg", "a.jpg", "a dog"),
        ("b.PNG", "b.PNG", None),
        ("d.jpg", "d.jpg", None),
        ("c.txt", None, "words alone"),
    ]
    (skipped,) = origin.skipped
    assert (skipped.file, skipped.left_out) == ("d.txt", "text")
    assert "passed over: 1 .pdf" in notes[-1]


def test_a_text_file_that_is_empty_or_huge_is_listed(tmp_path: Path) -> None:
    origin, _ = read_folder(_write(tmp_path, a_jpg="", a_txt=" ", b_jpg="", b_txt=b"x" * ((1 << 20) + 1)))
    assert {one.id: one.reason for one in origin.skipped} == {
        "a.jpg": "the text is empty",
        "b.jpg": "it is larger than 1 MB",
    }


def test_a_folder_a_class_gives_labels(tmp_path: Path) -> None:
    origin, notes = read_folder(_write(tmp_path, dog__a_jpg="", cat__b_jpg="", cat__c_jpg=""))
    assert [(r.id, r.labels) for r in origin.records][-1] == ("dog/a.jpg", ("dog",))
    assert "the folders' names are taken as labels, 2 classes" in notes


@pytest.mark.parametrize("files", [{"dog__a_jpg": "", "b_jpg": ""}, {"one__a_jpg": "", "one__b_jpg": ""}])
def test_other_folders_are_no_classes(tmp_path: Path, files: dict[str, str]) -> None:
    assert not any(record.labels for record in read_folder(_write(tmp_path, **files))[0].records)


def test_hidden_files_and_folders_are_passed_over(tmp_path: Path) -> None:
    _write(tmp_path, a_jpg="")
    for name in ("._a.jpg", ".thumbnails/b.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert [record.id for record in read_folder(tmp_path)[0].records] == ["a.jpg"]


def test_a_library_among_the_pictures_is_passed_over(tmp_path: Path) -> None:
    _write(tmp_path, a_jpg="", library__items_sqlite="", library__pictures__b_jpg="")
    _write(tmp_path, work__build_claim="", work__classes_txt="cat: cat")
    assert [record.id for record in read_folder(tmp_path)[0].records] == ["a.jpg"]


@pytest.mark.skipif(os.name == "nt", reason="making links takes rights on Windows")
def test_a_link_to_a_folder_outside_is_not_followed(tmp_path: Path) -> None:
    _write(tmp_path, other__b_jpg="", photos__a_jpg="")
    (tmp_path / "photos" / "more").symlink_to(tmp_path / "other", target_is_directory=True)
    assert [record.id for record in read_folder(tmp_path / "photos")[0].records] == ["a.jpg"]


def test_a_folder_without_pictures_is_none(tmp_path: Path) -> None:
    assert not is_picture_folder(_write(tmp_path, readme_txt=""))
    assert is_picture_folder(_write(tmp_path, deep__er__a_webp=""))


def test_open_pairs_opens_a_folder(tmp_path: Path) -> None:
    (tmp_path / "metadata.csv").write_text("file_name,text,labels\na.jpg,a dog,dog\ngone.jpg,a cat,cat\n")
    opened = open_pairs(_write(tmp_path, a_jpg=""))
    assert opened.pairs.has_image.tolist() == [True, False]
    assert opened.origin is not None
    assert opened.origin.folder == tmp_path
    assert "1 picture was left out, such as metadata.csv, row 3" in opened.notes[-1]


def test_open_pairs_opens_a_metadata_file(tmp_path: Path) -> None:
    _write(tmp_path, a_jpg="")
    (tmp_path / "items.jsonl").write_text('{"file_name": "a.jpg", "size": 3}\n')
    opened = open_pairs(tmp_path / "items.jsonl")
    assert (opened.pairs.ids.tolist(), opened.name) == (["a.jpg"], "items")
    assert "columns that were not used: size" in opened.notes


def test_strict_refuses_what_would_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "metadata.csv").write_text("file_name,text,labels\ngone.jpg,a dog,dog\n")
    with pytest.raises(DataError, match=r"row 2 \(picture: 'gone.jpg' does not exist\)"):
        open_pairs(tmp_path, strict=True)


def test_keys_are_refused_for_pictures(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no file of matrices"):
        open_pairs(_write(tmp_path, a_jpg=""), keys={"images": "X"})


def test_matrices_beside_pictures_stay_matrices(tmp_path: Path) -> None:
    import numpy as np

    np.save(_write(tmp_path, a_jpg="") / "images.npy", np.eye(3))
    assert open_pairs(tmp_path).origin is None
