"""HDF5 files, as Python and as MATLAB 7.3 write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from rmsh.core.errors import DataError, require
from rmsh.data.readers import hdf5

h5py = require("h5py", "hdf5")


def test_python_writes_rows_and_matlab_writes_columns(tmp_path: Path, write_matlab73):
    matrix = np.arange(6.0).reshape(3, 2)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["group/images"] = matrix
    assert hdf5.contents(tmp_path / "a.h5") == {"group/images": (3, 2)}
    np.testing.assert_array_equal(hdf5.read(tmp_path / "a.h5", "group/images"), matrix)
    path = write_matlab73(tmp_path / "a.mat", images=matrix)
    assert hdf5.contents(path) == {"images": (3, 2)}
    np.testing.assert_array_equal(hdf5.read(path, "images"), matrix)


@pytest.mark.parametrize("dense", [np.array([[0, 1, 0], [2, 0, 3]]), np.zeros((2, 3))])
def test_a_sparse_matrix_of_matlab_stays_sparse(tmp_path: Path, write_matlab73, dense):
    path = write_matlab73(tmp_path / "a.mat", tags=sparse.csc_array(dense))
    assert hdf5.contents(path) == {"tags": (2, 3)}
    matrix = hdf5.read(path, "tags")
    assert isinstance(matrix, sparse.csr_array)
    np.testing.assert_array_equal(matrix.toarray(), dense)


def test_cells_of_strings_are_strings_and_hide_what_they_point_to(tmp_path: Path, write_matlab73):
    path = write_matlab73(tmp_path / "a.mat", names=["dog", "", "Känguru"])
    assert hdf5.contents(path) == {"names": (3, 1)}
    assert hdf5.read(path, "names").ravel().tolist() == ["dog", "", "Känguru"]


def test_rows_of_characters_are_strings_without_padding(tmp_path: Path, write_matlab73):
    path = write_matlab73(tmp_path / "a.mat", names=np.array(["dog ", "bird"]))
    assert hdf5.read(path, "names").tolist() == ["dog", "bird"]


def test_cells_of_numbers_are_refused(tmp_path: Path, write_matlab73):
    path = write_matlab73(tmp_path / "a.mat", names=["dog", 3.0])
    with pytest.raises(DataError, match="key 'names' is a MATLAB cell array of other things than strings"):
        hdf5.read(path, "names")


def test_strings_of_python_are_strings(tmp_path: Path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["captions"] = ["a dog", "ein Känguru"]
    assert hdf5.read(tmp_path / "a.h5", "captions").tolist() == ["a dog", "ein Känguru"]


def test_references_that_are_no_cells_are_refused(tmp_path: Path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.ones(2)
        file.create_dataset("links", data=np.array([file["x"].ref], dtype=h5py.ref_dtype))
    with pytest.raises(DataError, match="key 'links' holds objects of dtype object; store numbers or strings"):
        hdf5.read(tmp_path / "a.h5", "links")
