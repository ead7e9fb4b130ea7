"""Features of published items from matrix files: by name, by ID, in order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import io

from lab.benchmarks.matrices import locate, read_features
from rmsh.core.errors import DataError


def test_a_file_of_one_matrix_needs_no_key(tmp_path: Path) -> None:
    np.save(tmp_path / "resnet.npy", np.ones((2, 3)))
    assert locate(str(tmp_path / "resnet.npy"), "images").key == "resnet"


def test_a_key_is_named_after_a_colon(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", one=np.ones((2, 3)), two=np.ones((2, 4)))
    assert locate(f"{tmp_path / 'a.npz'}:two", "images").shape == (2, 4)
    with pytest.raises(DataError, match=r"there is no key 'three'.* key 'one' \(2 x 3\) of a.npz"):
        locate(f"{tmp_path / 'a.npz'}:three", "images")


def test_a_key_in_two_spellings_is_taken_only_as_it_is_spelt(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", one=np.ones((2, 3)), ONE=np.ones((2, 4)))
    assert locate(f"{tmp_path / 'a.npz'}:one", "labels").shape == (2, 3)
    with pytest.raises(DataError, match="several keys match 'One'"):
        locate(f"{tmp_path / 'a.npz'}:One", "labels")


def test_a_drive_letter_is_not_a_file_with_a_key() -> None:
    with pytest.raises(DataError, match=r"Q:.nothing.npy does not exist"):
        locate("Q:/nothing.npy", "images")


def test_the_fitting_name_is_taken_among_several(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.ones((2, 3)), labels=np.ones((2, 4)))
    assert locate(str(tmp_path / "a.npz"), "labels").key == "labels"


def test_several_matrices_without_a_fitting_name_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", one=np.ones((2, 3)), two=np.ones((2, 4)))
    with pytest.raises(DataError, match=r"texts: .*'one'.*'two'.* Write '.*a.npz:KEY'"):
        locate(str(tmp_path / "a.npz"), "texts")


IDS = np.array(["im1", "im2", "im3", "im4"])


WANTED = np.array([3, 1])


def features(path: Path | str) -> tuple[list[list[float]], str]:
    column, note = read_features(str(path), "images", IDS, wanted=WANTED, canonical_id=lambda name: f"im{int(name)}")
    return column.tolist(), note


def test_rows_are_found_by_ids_in_any_order_and_spelling(tmp_path: Path) -> None:
    np.savez(tmp_path / "resnet.npz", images=[[40.0], [20.0], [90.0]], ids=[4, 2, 9])
    column, note = features(tmp_path / "resnet.npz")
    assert column == [[40.0], [20.0]]
    assert note == "images are features from key 'images' (3 x 1) of resnet.npz, rows by id"


def test_ids_of_matlab_and_a_named_key_work_too(tmp_path: Path) -> None:
    io.savemat(tmp_path / "a.mat", {"pool5": np.array([[40.0], [20.0]]), "ids": np.array(["0004", "0002"])})
    assert features(f"{tmp_path / 'a.mat'}:pool5")[0] == [[40.0], [20.0]]


def test_without_ids_rows_are_taken_in_order(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(4.0)[:, None])
    column, note = features(tmp_path / "a.npy")
    assert column == [[3.0], [1.0]]
    assert note.endswith("rows in the published order")


def test_items_without_a_row_are_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=[[1.0]], ids=[2])
    with pytest.raises(DataError, match=r"1 of 2 items .*im4"):
        features(tmp_path / "a.npz")


def test_ids_and_features_of_different_lengths_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=[[1.0]], ids=[4, 2])
    with pytest.raises(DataError, match=r"1 of images .*, 2 of ids"):
        features(tmp_path / "a.npz")


def test_a_wrong_number_of_rows_without_ids_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((3, 1)))
    with pytest.raises(DataError, match=r"has 3 rows .* 4 items; add the key 'ids'"):
        features(tmp_path / "a.npy")
