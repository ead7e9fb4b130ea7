"""Arrays in .npy and .npz files, sparse ones among them, and no pickle."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from rmsh.core.errors import DataError
from rmsh.data.readers import numpy_files


def test_an_archive_tells_its_shapes_and_gives_its_arrays(tmp_path: Path):
    path = tmp_path / "data.npz"
    np.savez_compressed(path, images=np.ones((3, 2)), names=np.array(["dog", "cat"]))
    assert numpy_files.contents(path) == {"images": (3, 2), "names": (2,)}
    assert numpy_files.read(path, "names").tolist() == ["dog", "cat"]


def test_a_single_array_is_called_by_its_file_and_mapped_into_memory(tmp_path: Path):
    path = tmp_path / "images.npy"
    np.save(path, np.ones((3, 2), dtype=np.float32))
    assert numpy_files.contents(path) == {"images": (3, 2)}
    assert isinstance(numpy_files.read(path, "images"), np.memmap)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_a_sparse_archive_is_one_matrix_and_stays_sparse(tmp_path: Path, form):
    path, dense = tmp_path / "tags.npz", np.array([[0, 1, 0], [2, 0, 0]])
    sparse.save_npz(path, sparse.coo_array(dense).asformat(form))
    assert numpy_files.contents(path) == {"tags": (2, 3)}
    matrix = numpy_files.read(path, "tags")
    assert isinstance(matrix, sparse.csr_array)
    np.testing.assert_array_equal(matrix.toarray(), dense)


def test_a_long_header_of_the_second_version_is_read(tmp_path: Path):
    path = tmp_path / "images.npy"
    with path.open("wb") as file:
        np.lib.format.write_array(file, np.ones((2, 5)), version=(2, 0))
    assert numpy_files.contents(path) == {"images": (2, 5)}


@pytest.mark.parametrize("name", ["labels.npy", "data.npz"])
def test_objects_are_never_unpickled(tmp_path: Path, name):
    path, objects = tmp_path / name, np.array([{"a": 1}], dtype=object)
    np.save(path, objects, allow_pickle=True) if name.endswith("npy") else np.savez(path, labels=objects)
    with pytest.raises(
        DataError, match=r"key 'labels' is an array of Python objects, which is a pickle .* never loaded"
    ):
        numpy_files.read(path, "labels")


def test_other_files_in_an_archive_are_passed_over(tmp_path: Path):
    path = tmp_path / "data.npz"
    np.savez(path, labels=np.eye(2))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("README.txt", "two items")
    assert numpy_files.contents(path) == {"labels": (2, 2)}
