"""Preparing a benchmark: matrices as a source, protocols, what is removed, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import io, sparse

from rmsh.core.errors import ConfigError, DataError, InputError
from rmsh.data.benchmarks.base import Protocol
from rmsh.data.benchmarks.prepare import (
    draw_split,
    matrix_files_below,
    prepare,
    read_matrices,
    stratified_rows,
)
from rmsh.data.benchmarks.published import TOPICS
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


def test_pixels_are_ignored_and_image_names_become_ids(tmp_path: Path, write_matlab73: Callable[..., Path]) -> None:
    names = [f"im{n}.jpg" for n in range(1, 7)]
    write_matlab73(tmp_path / "FLICKR-25K.mat", images=np.ones((6, 3, 2, 2)), YAll=TAGS, LAll=TOPIC_LABELS, FAll=names)
    source = read_matrices(tmp_path)
    assert source.pairs.images is None
    assert source.pairs.ids.tolist() == [f"im{n}" for n in range(1, 7)]
    assert any("has 4 dimensions" in note for note in source.notes)


def test_an_h5_file_of_images_texts_and_labels_is_read(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "coco.h5", "w") as file:
        file["images"], file["texts"], file["labels"] = FEATURES, TAGS * 0.5, TOPIC_LABELS[:, :5]
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


LABELS = np.tile(np.eye(4, dtype=np.uint8), (25, 1))  # a hundred rows, four classes


ALL = np.ones(100, dtype=np.bool_)


PAPER = Protocol(name="paper", about="ten ask, fifty are searched, five teach", queries=10, database=50, train=5)


def test_the_counts_are_those_of_the_protocol_and_the_parts_are_disjoint() -> None:
    split = draw_split(PAPER, LABELS, usable=ALL)
    assert (len(split.query), len(split.database), len(split.train)) == (10, 50, 5)
    assert np.isin(split.train, split.database).all()


def test_a_seed_draws_the_same_rows_and_another_seed_others() -> None:
    drawn = [draw_split(PAPER, LABELS, usable=ALL, seed=seed).sha256 for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_what_is_not_usable_is_in_no_part() -> None:
    split = draw_split(PAPER.model_copy(update={"database": None}), LABELS, usable=np.arange(100) >= 30)
    assert min(split.query.min(), split.database.min()) == 30
    assert len(split.database) == 60


def test_a_row_without_labels_is_in_the_database_and_never_a_query() -> None:
    labels = LABELS * (np.arange(100) >= 60)[:, None].astype(np.uint8)
    split = draw_split(Protocol(name="p", about="", queries=30), labels, usable=ALL)
    assert split.query.min() >= 60
    assert np.isin(np.arange(60), split.database).all()


def test_published_parts_are_kept_apart() -> None:
    part = np.repeat(["train", "val"], [70, 30])
    split = draw_split(Protocol(name="p", about="", queries=30, parts=("train", "val")), LABELS, usable=ALL, part=part)
    assert split.database.tolist() == list(range(70))
    assert split.query.tolist() == list(range(70, 100))


def test_in_order_takes_the_first_rows() -> None:
    split = draw_split(Protocol(name="rows", about="", queries=20, train=30, in_order=True), LABELS, usable=ALL)
    assert split.query.tolist() == list(range(20))
    assert split.train.tolist() == list(range(20, 50))


def test_by_default_a_tenth_are_queries() -> None:
    assert len(draw_split(Protocol(name="tenth", about=""), LABELS, usable=ALL).query) == 10


@pytest.mark.parametrize(
    "protocol",
    [
        PAPER.model_copy(update={"queries": 51}),
        PAPER.model_copy(update={"database": 91}),
        PAPER.model_copy(update={"queries": 100, "database": None}),
        PAPER.model_copy(update={"database": None, "train": 91}),
    ],
)
def test_too_few_pairs_are_refused_with_both_counts(protocol: Any) -> None:
    with pytest.raises(DataError, match=r"The split 'paper' needs .* 100 pairs to draw from; give the whole data set"):
        draw_split(protocol, LABELS, usable=ALL)


def test_parts_that_the_files_do_not_name_are_refused() -> None:
    with pytest.raises(DataError, match=r"parts \(train, val\)"):
        draw_split(PAPER.model_copy(update={"parts": ("train", "val")}), LABELS, usable=ALL)


def test_a_stratified_split_keeps_the_share_of_a_rare_class() -> None:
    labels = np.zeros((1000, 2), dtype=np.uint8)
    labels[:, 0], labels[:50, 1] = 1, 1
    split = draw_split(
        Protocol(name="p", about="", queries=100), labels, usable=np.ones(1000, dtype=np.bool_), stratified=True
    )
    assert split.name == "p-stratified"
    assert labels[split.query, 1].sum() == 5


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=5), data=st.data())
def test_a_stratified_draw_is_within_one_of_each_share(sizes: Any, data: Any) -> None:
    stratum = np.repeat(np.arange(len(sizes)), sizes)
    count = data.draw(st.integers(1, len(stratum)))
    labels = np.eye(len(sizes), dtype=np.uint8)[stratum]
    drawn = stratified_rows(np.arange(len(stratum)), count, labels=labels, rng=np.random.default_rng(0))
    assert len(set(drawn.tolist())) == count
    shares = np.array(sizes) * count / len(stratum)
    assert (np.abs(np.bincount(stratum[drawn], minlength=len(sizes)) - shares) < 1).all()


def test_the_stratum_is_the_rarest_label_not_the_first() -> None:
    labels = np.array([[1, 1], [1, 0], [1, 0], [1, 1]], dtype=np.uint8)  # strata of two rows each
    rng = np.random.default_rng(0)
    draws = [stratified_rows(np.arange(4), 2, labels=labels, rng=rng) for _ in range(20)]
    assert {int(labels[drawn, 1].sum()) for drawn in draws} == {1}


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


def test_the_real_mirflickr_matrices_give_the_papers_counts(mirflickr_root: Path, tmp_path: Path) -> None:
    manifest = prepare("mirflickr25k", mirflickr_root, out=tmp_path / "out", without_images=True)
    assert manifest["split"] == {"name": "paper", "database": 18_006, "query": 2000, "train": 18_006}
    assert manifest["splits"]["split.json"].startswith("620eb172")
    assert "9 pairs are in no part of the split and were omitted" in manifest["notes"]
