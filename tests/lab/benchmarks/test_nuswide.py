"""NUS-WIDE in its owner's layout, with the quirks of its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scipy import sparse

from lab.benchmarks.declarations import Protocol
from lab.benchmarks.prepare import prepare
from lab.benchmarks.published import read_nuswide as read
from rmsh.core.errors import DataError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Four images, three concepts, three tags; one image file exists."""
    for folder in ("ImageList", "ConceptsList", "Groundtruth/AllLabels", "NUS_WID_Tags", "Flickr/actor"):
        (tmp_path / folder).mkdir(parents=True)
    names = [r"actor\0001_212.jpg", r"actor\0002_174.jpg", r"zoo\0001_31.jpg", r"zoo\0002_32.jpg"]
    (tmp_path / "ImageList" / "Imagelist.txt").write_text("".join(f"{name} \r\n" for name in names))
    (tmp_path / "ConceptsList" / "Concepts81.txt").write_bytes(b"airport\r\nsky \r\nzebra\r\n")
    for concept, column in {
        "sky": b"1\r\n1\r\n0\r\n0\r\n",
        "airport": b"0\n1\n0\n0\n",
        "zebra": b"0 \n0 \n0 \n1",
    }.items():
        (tmp_path / "Groundtruth" / "AllLabels" / f"Labels_{concept}.txt").write_bytes(column)
    (tmp_path / "NUS_WID_Tags" / "TagList1k.txt").write_bytes("nature\r\ncafé\r\nsky\r\n".encode())
    (tmp_path / "NUS_WID_Tags" / "AllTags1k.txt").write_bytes(b"1 0 1 \r\n0\t0\t0\t\r\n0 1 0 \r\n0 0 1\r\n")
    (tmp_path / "Flickr" / "actor" / "0002_174.jpg").touch()
    return tmp_path


def test_images_keep_the_order_of_the_list_and_labels_that_of_the_concepts(root: Path) -> None:
    pairs = read(root).pairs
    assert pairs.ids.tolist() == ["actor/0001_212", "actor/0002_174", "zoo/0001_31", "zoo/0002_32"]
    assert pairs.class_names == ("airport", "sky", "zebra")
    assert pairs.labels.tolist() == [[0, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1]]


def test_tags_become_a_sparse_bag_of_the_list(root: Path) -> None:
    source = read(root)
    assert source.vocabulary == ("nature", "café", "sky")
    assert sparse.issparse(source.pairs.texts)
    assert source.pairs.texts.toarray().tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert source.worded.tolist() == [True, False, True, True]


def test_existing_images_are_found(root: Path) -> None:
    pairs = read(root).pairs
    assert pairs.has_image.tolist() == [False, True, False, False]
    assert Path(pairs.images[1]) == (root / "Flickr" / "actor" / "0002_174.jpg").resolve()


def test_missing_files_are_named_with_the_owners_page(root: Path) -> None:
    (root / "ImageList" / "Imagelist.txt").unlink()
    (root / "NUS_WID_Tags" / "AllTags1k.txt").unlink()
    with pytest.raises(DataError, match=r"lacks ImageList/Imagelist.txt, NUS_WID_Tags/AllTags1k.txt\. .*lms.comp.nus"):
        read(root)


def test_a_missing_concept_is_named(root: Path) -> None:
    (root / "Groundtruth" / "AllLabels" / "Labels_zebra.txt").unlink()
    with pytest.raises(DataError, match=r"AllLabels lacks Labels_zebra.txt"):
        read(root)


@pytest.mark.parametrize("column", [b"0\n1\n0\n", b"0\n1\n0\n2\n", b"0\n1\nx\n1\n", b"0\n1\n0\n0\n1\n"])
def test_a_column_without_exactly_one_digit_per_image_is_refused(root: Path, column: Any) -> None:
    (root / "Groundtruth" / "AllLabels" / "Labels_sky.txt").write_bytes(column)
    with pytest.raises(DataError, match=r"Labels_sky.txt: .* 4 images"):
        read(root)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (b"1 0 1\n" * 3, "has 3 rows for the 4 images"),
        (b"1 0 1\n" * 5, "has 5 rows for the 4 images"),
        (b"1 0 1\n1 0\n1 0 1\n1 0 1\n", "row 2: one 0 or 1 for each of the 3 words"),
    ],
)
def test_tags_of_other_shape_are_refused(root: Path, rows: Any, sentence: str) -> None:
    (root / "NUS_WID_Tags" / "AllTags1k.txt").write_bytes(rows)
    with pytest.raises(DataError, match=sentence):
        read(root)


def test_images_without_a_frequent_concept_are_removed(root: Path, tmp_path: Path) -> None:
    (root / "Groundtruth" / "AllLabels" / "Labels_airport.txt").write_bytes(b"0\n1\n1\n0\n")
    two = Protocol(name="two", about="a test", queries=1, classes=2, worded=False)
    manifest = prepare("nuswide", root, out=tmp_path / "out", split=two)
    assert (manifest["items"], manifest["class_names"]) == (3, ["airport", "sky"])
    assert "2 images are missing; their texts are kept" in manifest["notes"]
    assert "the 2 most frequent of 3 classes are airport, sky" in manifest["notes"]


def test_the_owners_path_is_an_id_with_either_slash(root: Path) -> None:
    canonical = read(root).canonical_id
    assert canonical(r"actor\0001_212.jpg") == canonical("actor/0001_212") == "actor/0001_212"
