"""Preparing a benchmark: what is removed, whose labels count, features in the place of pictures, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from rmsh.core.errors import ConfigError, DataError, InputError
from rmsh.data.benchmarks.prepare import prepare
from rmsh.data.benchmarks.protocols import Protocol
from rmsh.data.open import open_pairs

N = 60
TINY = Protocol("tiny", "a test", queries=10, database=30, train=20)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Sixty items of three classes that grow rarer; the first five have no label, the last four no word."""
    labels = np.zeros((N, 3), dtype=np.uint8)
    labels[5:, 0], labels[20:, 1], labels[50:, 2] = 1, 1, 1
    labels[5:15] = [0, 0, 1]
    tags = np.eye(N, 40, dtype=np.uint8) + np.eye(N, 40, k=-30, dtype=np.uint8)
    tags[:, 0] = np.arange(N) < N - 4
    tags[N - 4 :] = 0
    (tmp_path / "root").mkdir()
    np.savez(tmp_path / "root" / "nus-wide.npz", XAll=np.arange(2.0 * N).reshape(N, 2), YAll=tags > 0, LAll=labels)
    return tmp_path / "root"


def test_the_counts_are_those_of_the_protocol_and_the_words_stay_sparse(root: Path, tmp_path: Path):
    manifest = prepare("nuswide", root, out=tmp_path / "out", split=TINY)
    opened = open_pairs(tmp_path / "out")
    assert manifest["split"] == {"name": "tiny", "database": 30, "query": 10, "train": 20}
    assert len(opened.pairs) == 40
    assert isinstance(opened.pairs.texts, sparse.csr_array)


def test_pairs_without_label_or_word_are_removed_and_counted(root: Path, tmp_path: Path):
    manifest = prepare("nuswide", root, out=tmp_path / "out", split=Protocol("all", "", queries=10))
    pairs = open_pairs(tmp_path / "out").pairs
    assert pairs.ids.astype(int).tolist() == list(range(5, N - 4))
    assert "5 of 60 pairs have no label, 4 no word; 9 were removed" in manifest["notes"]


def test_a_protocol_may_keep_what_has_no_label_or_no_word(root: Path, tmp_path: Path):
    keeping = Protocol("all", "", queries=10, labelled=False, worded=False)
    assert prepare("nuswide", root, out=tmp_path / "out", split=keeping)["items"] == N


def test_only_the_most_frequent_classes_count_and_keep_their_order(root: Path, tmp_path: Path):
    manifest = prepare("nuswide", root, out=tmp_path / "out", split=Protocol("two", "", queries=10, classes=2))
    assert manifest["class_names"] == ["class 0", "class 1"]
    assert manifest["items"] == N - 15 - 4  # the ten items of the rare class alone have no label now


def test_more_classes_than_there_are_cannot_be_chosen(root: Path, tmp_path: Path):
    with pytest.raises(DataError, match="has 3 classes, the split is of the 10 most frequent ones; take another split"):
        prepare("nuswide", root, out=tmp_path / "out")


def test_rows_keep_their_features_labels_and_part(root: Path, tmp_path: Path):
    prepare("nuswide", root, out=tmp_path / "out", split=TINY)
    opened = open_pairs(tmp_path / "out")
    number = opened.pairs.ids.astype(int)
    assert opened.pairs.images[:, 0].tolist() == (2 * number).tolist()
    assert opened.pairs.labels[:, 1].tolist() == (number >= 20).astype(int).tolist()
    ids = json.loads((tmp_path / "out" / "split.json").read_text())["query"]
    assert opened.pairs.ids[opened.split.query].tolist() == ids


def test_the_same_seed_prepares_the_same_split(root: Path, tmp_path: Path):
    splits = [
        prepare("nuswide", root, out=tmp_path / name, split=TINY, seed=seed)["splits"]
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert splits[0] == splits[1] != splits[2]


def test_features_by_id_take_the_place_of_images_and_texts(root: Path, tmp_path: Path):
    np.savez(tmp_path / "resnet152.npz", images=np.ones((N, 2048)), ids=np.arange(N)[::-1])
    np.save(tmp_path / "words.npy", np.full((N, 1000), 0.5))
    features = {"images": str(tmp_path / "resnet152.npz"), "texts": str(tmp_path / "words.npy")}
    manifest = prepare("nuswide", root, out=tmp_path / "out", split=TINY, paper_inputs=True, **features)
    pairs = open_pairs(tmp_path / "out").pairs
    assert (pairs.images.shape, pairs.texts.shape) == ((40, 2048), (40, 1000))
    assert not any("the paper's features" in note for note in manifest["notes"])


def test_widths_other_than_the_papers_are_noted_and_refused_on_demand(root: Path, tmp_path: Path):
    notes = prepare("nuswide", root, out=tmp_path / "out", split=TINY)["notes"]
    assert "the images are 2 wide; the paper's features are 2,048 wide" in notes
    with pytest.raises(
        DataError, match=r"the images are 2 wide; the paper's features are 2,048 wide\. Give such features"
    ):
        prepare("nuswide", root, out=tmp_path / "again", split=TINY, paper_inputs=True)


def test_without_pictures_features_or_consent_nothing_is_prepared(root: Path, tmp_path: Path):
    arrays = dict(np.load(root / "nus-wide.npz"))
    np.savez(root / "nus-wide.npz", YAll=arrays["YAll"], LAll=arrays["LAll"])
    with pytest.raises(DataError, match=r"has no pictures\. Give their features by --images, or --without-images"):
        prepare("nuswide", root, out=tmp_path / "out", split=TINY)
    prepare("nuswide", root, out=tmp_path / "out", split=TINY, without_images=True)
    assert open_pairs(tmp_path / "out").pairs.images is None


@pytest.mark.parametrize(
    ("name", "split", "sentence"),
    [
        ("coco", "paper", "no benchmark 'coco'; known are mirflickr25k"),
        ("nuswide", "x", "no split 'x' of nuswide; known"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(tmp_path: Path, name, split, sentence):
    with pytest.raises(ConfigError, match=sentence):
        prepare(name, tmp_path, out=tmp_path / "out", split=split)


def test_a_finished_folder_is_refused_before_anything_is_read(tmp_path: Path):
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match="holds prepared pairs already"):
        prepare("mscoco", tmp_path / "nowhere", out=tmp_path)


@pytest.mark.parametrize("name", ["mirflickr25k", "nuswide", "mscoco"])
def test_a_folder_that_does_not_exist_says_who_publishes_the_files(tmp_path: Path, name):
    with pytest.raises(DataError, match=r"nowhere lacks .* is published by its owner: .*https://.*downloads nothing"):
        prepare(name, tmp_path / "nowhere", out=tmp_path / "out")


def test_the_real_mirflickr_matrices_give_the_papers_counts(mirflickr_root: Path, tmp_path: Path):
    manifest = prepare("mirflickr25k", mirflickr_root, out=tmp_path / "out", without_images=True)
    assert manifest["split"] == {"name": "paper", "database": 18_006, "query": 2000, "train": 18_006}
    assert manifest["splits"]["split.json"].startswith("620eb172")
    assert "9 pairs are in no part of the split and were left out" in manifest["notes"]
