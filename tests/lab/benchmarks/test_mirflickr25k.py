"""MIRFLICKR-25K in its owner's layout, with the quirks of its files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from scipy import sparse

from lab.benchmarks.prepare import prepare
from lab.benchmarks.published import TOPICS
from lab.benchmarks.published import read_mirflickr25k as read
from rmsh.core.errors import DataError

# Windows line ends, trailing blanks, a doubled tag, a tag outside ASCII, an empty file, Latin-1 bytes
TAGS = {
    1: b"sky\r\nblue \r\nsky\r\n",
    2: "café\nsky\n".encode(),
    3: b"",
    4: "caf\u00e9\r\n".encode("latin-1"),
    10: b"unknown\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Five images: the third has no tags, the fourth no topic, and one image file is missing."""
    base, topics = tmp_path / "mirflickr", tmp_path / "mirflickr25k_annotations_v080"
    for folder in (base / "meta" / "tags", base / "doc", topics):
        folder.mkdir(parents=True)
    for number, content in TAGS.items():
        (base / "meta" / "tags" / f"tags{number}.txt").write_bytes(content)
    for number in (1, 2, 3, 4):
        (base / f"im{number}.jpg").touch()
    (base / "doc" / "common_tags.txt").write_bytes("sky 845\r\ncafé 20 \r\nblue 31\r\n".encode())
    for topic in TOPICS:
        (topics / f"{topic}.txt").write_bytes(b"")
        (topics / f"{topic}_r1.txt").write_text("4\n")  # the stricter annotations are not read
    (topics / "README.txt").write_text("about these files")
    (topics / "sky.txt").write_bytes(b"1\r\n2 \r\n\r\n")
    (topics / "water.txt").write_text("2\n3\n10\n")
    return tmp_path


def test_items_are_ordered_by_number_with_their_topics(root: Path) -> None:
    pairs = read(root).pairs
    assert pairs.ids.tolist() == ["im1", "im2", "im3", "im4", "im10"]
    assert [TOPICS[c] for c in pairs.labels[1].nonzero()[0]] == ["sky", "water"]
    assert pairs.labelled.tolist() == [True, True, True, False, True]


def test_tags_become_a_sparse_bag_of_the_owners_common_tags(root: Path) -> None:
    source = read(root)
    assert source.vocabulary == ("sky", "café", "blue")
    assert sparse.issparse(source.pairs.texts)
    assert source.pairs.texts.toarray().tolist() == [[1, 0, 1], [1, 1, 0], [0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert source.worded.tolist() == [True, True, False, True, False]


def test_images_are_found_and_the_missing_one_is_marked(root: Path) -> None:
    pairs = read(root).pairs
    assert pairs.has_image.tolist() == [True, True, True, True, False]
    assert Path(pairs.images[0]) == (root / "mirflickr" / "im1.jpg").resolve()


def test_without_image_files_there_is_no_image_column(root: Path) -> None:
    for picture in (root / "mirflickr").glob("*.jpg"):
        picture.unlink()
    assert read(root).pairs.images is None


def test_without_the_owners_list_the_vocabulary_is_counted(root: Path) -> None:
    (root / "mirflickr" / "doc" / "common_tags.txt").unlink()
    with pytest.raises(DataError, match=r"common_tags.txt is missing.* 20 of the 5 images"):
        read(root)
    for number in range(11, 40):
        text = "sky\nsea\n" if number < 31 else "sky\nrare\n"
        (root / "mirflickr" / "meta" / "tags" / f"tags{number}.txt").write_text(text)
    assert read(root).vocabulary == ("sky", "sea")


def test_a_missing_topic_is_named_with_the_owners_page(root: Path) -> None:
    (root / "mirflickr25k_annotations_v080" / "baby.txt").unlink()
    with pytest.raises(DataError, match=r"lacks mirflickr25k_annotations_v080/baby.txt\. .*press.liacs.nl/mirflickr"):
        read(root)


def test_an_empty_folder_says_what_is_missing_and_that_nothing_is_downloaded(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"lacks meta/tags, .*animals.txt, .* and 15 more\. .* rmsh downloads nothing"):
        read(tmp_path)


def test_a_line_that_is_not_a_number_is_refused(root: Path) -> None:
    (root / "mirflickr25k_annotations_v080" / "sky.txt").write_text("1\nim2\n")
    with pytest.raises(DataError, match=r"sky.txt: .*'im2'"):
        read(root)


def test_what_has_neither_tag_nor_topic_is_removed(root: Path, tmp_path: Path) -> None:
    (root / "mirflickr25k_annotations_v080" / "tree.txt").write_text("4\n")
    (root / "mirflickr" / "meta" / "tags" / "tags11.txt").write_text("sky\n")
    manifest = prepare("mirflickr25k", root, out=tmp_path / "out", split="tenth")
    assert (manifest["items"], manifest["vocabulary"]) == (3, ["sky", "café", "blue"])
    assert "1 of 6 pairs have no label, 2 no word; 3 were removed" in manifest["notes"]


def test_the_root_may_be_the_folder_of_the_images(root: Path) -> None:
    shutil.move(root / "mirflickr25k_annotations_v080", root / "mirflickr" / "mirflickr25k_annotations_v080")
    assert len(read(root / "mirflickr").pairs) == 5


@pytest.mark.parametrize("name", ["7", "im7", "im7.jpg", "mirflickr/im7.jpg", "0007"])
def test_spellings_of_an_id(root: Path, name: str) -> None:
    assert read(root).canonical_id(name) == "im7"
