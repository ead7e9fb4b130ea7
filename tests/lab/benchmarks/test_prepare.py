"""Preparing a benchmark: matrices as a source, protocols, what is removed, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import io, sparse

from lab.benchmarks.declarations import Protocol
from lab.benchmarks.matrices import matrix_files_below, read_matrices
from lab.benchmarks.prepare import prepare
from lab.benchmarks.published import TOPICS
from lab.datacard import make_card
from rmsh.core.errors import ConfigError, DataError, InputError
from rmsh.data.open import open_pairs

TOPIC_LABELS = np.eye(24, dtype=np.uint8)[:6]


TAGS = np.eye(30, dtype=np.uint8)[:6]


FEATURES = np.arange(24.0).reshape(6, 4)


def test_matrices_in_separate_files_and_subfolders_are_read(tmp_path: Path) -> None:
    for key, name, matrix in (("XAll", "iall-vgg", FEATURES), ("YAll", "yall", TAGS), ("LAll", "lall", TOPIC_LABELS)):
        (tmp_path / key).mkdir()
        io.savemat(tmp_path / key / f"mirflickr25k-{name}.mat", {key: matrix})
    source = read_matrices(tmp_path)
    assert len(source.inputs) == 3
    assert source.pairs.images.tolist() == FEATURES.tolist()
    assert sparse.issparse(source.pairs.texts)
    assert source.pairs.class_names == TOPICS


def test_pixels_are_ignored_and_image_names_become_ids(tmp_path: Path) -> None:
    names = np.array([f"im{n}.jpg" for n in range(1, 7)], dtype=object)
    matrices = {"images": np.ones((6, 3, 2, 2)), "YAll": TAGS, "LAll": TOPIC_LABELS, "FAll": names}
    io.savemat(tmp_path / "FLICKR-25K.mat", matrices)
    source = read_matrices(tmp_path)
    assert source.pairs.images is None
    assert source.pairs.ids.tolist() == [f"im{n}" for n in range(1, 7)]
    assert any("has 4 dimensions" in note for note in source.notes)


def test_a_file_of_images_texts_and_labels_is_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "coco.npz", images=FEATURES, texts=TAGS * 0.5, labels=TOPIC_LABELS[:, :5])
    pairs = read_matrices(tmp_path).pairs
    assert pairs.texts.shape == (6, 30)
    assert pairs.class_names[0] == "class 0"


def test_parts_are_joined_and_noted(tmp_path: Path) -> None:
    parts = {f"{key}_{part}": matrix for key, matrix in (("I", FEATURES), ("L", TOPIC_LABELS)) for part in ("tr", "te")}
    io.savemat(tmp_path / "nus-wide-tc10.mat", parts)
    source = read_matrices(tmp_path)
    assert len(source.pairs) == 12
    assert source.notes[-1] == "the parts of the files were joined, and a new split is drawn"


def test_matrices_without_labels_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", XAll=FEATURES)
    with pytest.raises(DataError, match="no labels"):
        read_matrices(tmp_path)


def test_the_real_files_are_found(mirflickr_root: Path) -> None:
    assert [path.name for path in matrix_files_below(mirflickr_root)] == [
        "mirflickr25k-lall.mat",
        "mirflickr25k-yall.mat",
    ]


N = 60


TINY = Protocol(name="tiny", about="a test", queries=10, database=30, train=20)


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


def test_the_counts_are_those_of_the_protocol_and_the_words_stay_sparse(root: Path, tmp_path: Path) -> None:
    manifest = prepare("nuswide", root, out=tmp_path / "out", split=TINY)
    opened = open_pairs(tmp_path / "out")
    assert manifest["split"] == {"name": "tiny", "database": 30, "query": 10, "train": 20}
    assert len(opened.pairs) == 40
    assert isinstance(opened.pairs.texts, sparse.csr_array)


def test_pairs_without_label_or_word_are_removed_and_counted(root: Path, tmp_path: Path) -> None:
    manifest = prepare("nuswide", root, out=tmp_path / "out", split=Protocol(name="all", about="", queries=10))
    pairs = open_pairs(tmp_path / "out").pairs
    assert pairs.ids.astype(int).tolist() == list(range(5, N - 4))
    assert "5 of 60 pairs have no label, 4 no word; 9 were removed" in manifest["notes"]


def test_a_protocol_may_keep_pairs_without_labels_or_words(root: Path, tmp_path: Path) -> None:
    keeping = Protocol(name="all", about="", queries=10, labelled=False, worded=False)
    assert prepare("nuswide", root, out=tmp_path / "out", split=keeping)["items"] == N


def test_only_the_most_frequent_classes_count_and_keep_their_order(root: Path, tmp_path: Path) -> None:
    manifest = prepare(
        "nuswide", root, out=tmp_path / "out", split=Protocol(name="two", about="", queries=10, classes=2)
    )
    assert manifest["class_names"] == ["class 0", "class 1"]
    assert manifest["items"] == N - 15 - 4  # the ten items of the rare class alone have no label now


def test_more_classes_than_there_are_cannot_be_chosen(root: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"3 classes.* 10 most frequent"):
        prepare("nuswide", root, out=tmp_path / "out")


def test_rows_keep_their_features_labels_and_part(root: Path, tmp_path: Path) -> None:
    prepare("nuswide", root, out=tmp_path / "out", split=TINY)
    opened = open_pairs(tmp_path / "out")
    number = opened.pairs.ids.astype(int)
    assert opened.pairs.images[:, 0].tolist() == (2 * number).tolist()
    assert opened.pairs.labels[:, 1].tolist() == (number >= 20).astype(int).tolist()
    ids = json.loads((tmp_path / "out" / "split.json").read_text())["query"]
    assert opened.pairs.ids[opened.split.query].tolist() == ids


def test_the_same_seed_prepares_the_same_split(root: Path, tmp_path: Path) -> None:
    splits = [
        prepare("nuswide", root, out=tmp_path / name, split=TINY, seed=seed)["splits"]
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert splits[0] == splits[1] != splits[2]


def test_features_by_id_replace_images_and_texts(root: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "resnet152.npz", images=np.ones((N, 2048)), ids=np.arange(N)[::-1])
    np.save(tmp_path / "words.npy", np.full((N, 1000), 0.5))
    features = {"images": str(tmp_path / "resnet152.npz"), "texts": str(tmp_path / "words.npy")}
    manifest = prepare("nuswide", root, out=tmp_path / "out", split=TINY, paper_inputs=True, **features)
    pairs = open_pairs(tmp_path / "out").pairs
    assert (pairs.images.shape, pairs.texts.shape) == ((40, 2048), (40, 1000))
    assert not any("the paper's features" in note for note in manifest["notes"])


def test_widths_other_than_the_papers_are_noted_and_refused_on_demand(root: Path, tmp_path: Path) -> None:
    notes = prepare("nuswide", root, out=tmp_path / "out", split=TINY)["notes"]
    assert "the images are 2 wide; the paper's features are 2,048 wide" in notes
    with pytest.raises(
        DataError, match=r"the images are 2 wide; the paper's features are 2,048 wide\. Give such features"
    ):
        prepare("nuswide", root, out=tmp_path / "again", split=TINY, paper_inputs=True)


def test_missing_images_are_refused_unless_omitted_on_purpose(root: Path, tmp_path: Path) -> None:
    arrays = dict(np.load(root / "nus-wide.npz"))
    np.savez(root / "nus-wide.npz", YAll=arrays["YAll"], LAll=arrays["LAll"])
    with pytest.raises(DataError, match=r"has no images.*--images.*--without-images"):
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
def test_unknown_names_are_refused_with_the_known_ones(tmp_path: Path, name: str, split: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        prepare(name, tmp_path, out=tmp_path / "out", split=split)


def test_a_finished_folder_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match="prepared pairs"):
        prepare("mscoco", tmp_path / "nowhere", out=tmp_path)


@pytest.mark.parametrize("name", ["mirflickr25k", "nuswide", "mscoco"])
def test_the_error_for_a_missing_folder_names_the_publisher(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"nowhere lacks .*https://.*downloads nothing"):
        prepare(name, tmp_path / "nowhere", out=tmp_path / "out")


def test_the_real_mirflickr_matrices_give_the_papers_counts_and_chance(mirflickr_root: Path, tmp_path: Path) -> None:
    manifest = prepare("mirflickr25k", mirflickr_root, out=tmp_path / "out", without_images=True)
    assert manifest["split"] == {"name": "paper", "database": 18_006, "query": 2000, "train": 18_006}
    assert manifest["splits"]["split.json"].startswith("620eb172")
    assert "9 pairs are in no part of the split and were omitted" in manifest["notes"]
    chance = make_card(open_pairs(tmp_path / "out")).chance
    assert chance["NDCG@500"] == pytest.approx(0.178, abs=0.002)
    assert chance["mAP@all"] == pytest.approx(0.557, abs=0.01)
