"""Features made elsewhere: rows by id, in order, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import io

from rmsh.core.errors import DataError
from rmsh.data.readers.feature_files import read_features

IDS = np.array(["im1", "im2", "im3", "im4"])
WANTED = np.array([3, 1])


def features(path: Path | str) -> tuple[list[list[float]], str]:
    column, note = read_features(str(path), "images", IDS, wanted=WANTED, canonical_id=lambda name: f"im{int(name)}")
    return column.tolist(), note


def test_rows_are_found_by_ids_in_any_order_and_spelling(tmp_path: Path):
    np.savez(tmp_path / "resnet.npz", images=[[40.0], [20.0], [90.0]], ids=[4, 2, 9])
    column, note = features(tmp_path / "resnet.npz")
    assert column == [[40.0], [20.0]]
    assert note == "images are features from key 'images' (3 x 1) of resnet.npz, rows by id"


def test_ids_of_matlab_and_a_named_key_serve_as_well(tmp_path: Path):
    io.savemat(tmp_path / "a.mat", {"pool5": np.array([[40.0], [20.0]]), "ids": np.array(["0004", "0002"])})
    assert features(f"{tmp_path / 'a.mat'}:pool5")[0] == [[40.0], [20.0]]


def test_without_ids_one_row_an_item_is_taken_in_order(tmp_path: Path):
    np.save(tmp_path / "a.npy", np.arange(4.0)[:, None])
    column, note = features(tmp_path / "a.npy")
    assert column == [[3.0], [1.0]]
    assert note.endswith("rows in the owner's order")


def test_items_without_a_row_are_named(tmp_path: Path):
    np.savez(tmp_path / "a.npz", images=[[1.0]], ids=[2])
    with pytest.raises(DataError, match="1 of 2 items have no row there, such as im4; give features of all"):
        features(tmp_path / "a.npz")


def test_rows_of_nobody_are_refused(tmp_path: Path):
    np.save(tmp_path / "a.npy", np.ones((3, 1)))
    with pytest.raises(DataError, match="has 3 rows and no ids beside it, and there are 4 items; add the key 'ids'"):
        features(tmp_path / "a.npy")
