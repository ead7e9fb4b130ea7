"""The community's matrices: every spelling of their files gives the same pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import io, sparse

from rmsh.core.errors import DataError
from rmsh.data.benchmarks.community import files_in, read
from rmsh.data.benchmarks.mirflickr25k import TOPICS

LABELS = np.eye(24, dtype=np.uint8)[:6]
TAGS = np.eye(30, dtype=np.uint8)[:6]
FEATURES = np.arange(24.0).reshape(6, 4)


def test_one_file_a_matrix_is_read_from_the_folders_it_lies_in(tmp_path: Path):
    for key, name, matrix in (("XAll", "iall-vgg", FEATURES), ("YAll", "yall", TAGS), ("LAll", "lall", LABELS)):
        (tmp_path / key).mkdir()
        io.savemat(tmp_path / key / f"mirflickr25k-{name}.mat", {key: matrix})
    source = read(tmp_path)
    assert len(source.inputs) == 3
    assert source.pairs.images.tolist() == FEATURES.tolist()
    assert sparse.issparse(source.pairs.texts)
    assert source.pairs.class_names == TOPICS


def test_pixels_are_passed_over_and_names_of_pictures_become_ids(tmp_path: Path, write_matlab73):
    names = [f"im{n}.jpg" for n in range(1, 7)]
    write_matlab73(tmp_path / "FLICKR-25K.mat", images=np.ones((6, 3, 2, 2)), YAll=TAGS, LAll=LABELS, FAll=names)
    source = read(tmp_path)
    assert source.pairs.images is None
    assert source.pairs.ids.tolist() == [f"im{n}" for n in range(1, 7)]
    assert any("has 4 dimensions, as pixels have" in note for note in source.notes)


def test_an_h5_file_of_images_texts_and_labels_is_read(tmp_path: Path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "coco.h5", "w") as file:
        file["images"], file["texts"], file["labels"] = FEATURES, TAGS * 0.5, LABELS[:, :5]
    pairs = read(tmp_path).pairs
    assert pairs.texts.shape == (6, 30)
    assert pairs.class_names[0] == "class 0"


def test_parts_are_joined_and_it_is_said(tmp_path: Path):
    parts = {f"{key}_{part}": matrix for key, matrix in (("I", FEATURES), ("L", LABELS)) for part in ("tr", "te")}
    io.savemat(tmp_path / "nus-wide-tc10.mat", parts)
    source = read(tmp_path)
    assert len(source.pairs) == 12
    assert source.notes[-1] == "the files come in parts; these were joined, and the split is drawn anew"


def test_matrices_without_labels_are_refused(tmp_path: Path):
    np.savez(tmp_path / "a.npz", XAll=FEATURES)
    with pytest.raises(DataError, match="the matrices have no labels; a benchmark needs them"):
        read(tmp_path)


def test_the_real_files_are_found(mirflickr_root: Path):
    assert [path.name for path in files_in(mirflickr_root)] == ["mirflickr25k-lall.mat", "mirflickr25k-yall.mat"]
