"""NUS-WIDE in its owner's layout, with the quirks of its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from lab.benchmarks.declarations import Protocol
from lab.benchmarks.prepare import prepare
from lab.benchmarks.published import read_nuswide as read
from lab.datacard import make_card
from rmsh.core.errors import DataError
from rmsh.data.open import open_pairs


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


@pytest.fixture
def real_root(nuswide_root: Path, tmp_path: Path) -> Path:
    """The real labels of all images in their owner's layout, with a vocabulary of one tag that no image has."""
    with np.load(nuswide_root / "labels.npz") as file:
        labels, names = np.unpackbits(file["labels"], axis=1, count=81), file["names"].tolist()
    (tmp_path / "Groundtruth" / "AllLabels").mkdir(parents=True)
    for name, column in zip(names, labels.T, strict=True):
        lines = np.stack([column + ord("0"), np.full_like(column, ord("\n"))], axis=1)
        (tmp_path / "Groundtruth" / "AllLabels" / f"Labels_{name}.txt").write_bytes(lines.tobytes())
    (tmp_path / "Concepts81.txt").write_text("\n".join(names))
    (tmp_path / "Imagelist.txt").write_text("\n".join(f"a\\{row}.jpg" for row in range(len(labels))))
    (tmp_path / "TagList1k.txt").write_text("word\n")
    (tmp_path / "AllTags1k.txt").write_text("0\n" * len(labels))
    return tmp_path


@pytest.mark.slow
def test_the_real_labels_alone_give_the_papers_186577_pairs_its_split_and_its_chance(
    real_root: Path, tmp_path: Path
) -> None:
    manifest = prepare("nuswide", real_root, out=tmp_path / "out", without_images=True)
    assert 269_648 - 186_577 == 83_071
    assert "83,071 of 269,648 pairs have no label, 269,648 no word; 83,071 were removed" in manifest["notes"]
    assert manifest["class_names"] == [
        *("animal", "buildings", "clouds", "grass", "lake", "person", "plants", "sky", "water", "window")
    ]
    opened = open_pairs(tmp_path / "out")
    card = make_card(opened)
    assert (card.counts["database"], card.counts["query"], card.counts["train"]) == (80_000, 2_000, 5_000)
    assert card.labels_per_item == pytest.approx(1.78, abs=0.01)
    assert card.dissimilar == pytest.approx(0.66, abs=0.01)
    assert card.chance["NDCG@500"] == pytest.approx(0.205, abs=0.01)
    assert card.chance["mAP@all"] == pytest.approx(0.340, abs=0.01)


@pytest.mark.parametrize(("classes", "items"), [(10, 186_577), (21, 195_834), (81, 209_347)])
def test_published_counts_follow_from_the_real_labels(nuswide_root: Path, classes: int, items: int) -> None:
    with np.load(nuswide_root / "labels.npz") as file:
        labels = np.unpackbits(file["labels"], axis=1, count=81)
    frequent = np.argsort(-labels.sum(axis=0, dtype=np.int64), kind="stable")[:classes]
    assert int(labels[:, frequent].any(axis=1).sum()) == items
