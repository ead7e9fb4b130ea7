"""Matrix files: every format gives the same arrays, and damaged files are refused."""

from __future__ import annotations

import os
import pickle
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import io, sparse

from rmsh.core.errors import DataError
from rmsh.data.readers.matrix_files import MatrixKey, list_matrices, matrix_files, read_matrix

HDF5 = b"\x89HDF\r\n\x1a\n"


def contents(path: Path) -> dict[str, tuple[int, ...]]:
    return {matrix.key: matrix.shape for matrix in list_matrices(path)}


def read(path: Path, key: str) -> Any:
    (matrix,) = (matrix for matrix in list_matrices(path) if matrix.key == key)
    return read_matrix(matrix)


def test_a_folder_gives_its_matrix_files_in_order(tmp_path: Path) -> None:
    for name in ("b.npy", "a.NPZ", "notes.txt", "c.mat"):
        (tmp_path / name).touch()
    assert [file.name for file in matrix_files(tmp_path)] == ["a.NPZ", "b.npy", "c.mat"]


def test_a_folder_without_matrices_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r".npz, .npy or .mat"):
        matrix_files(tmp_path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing.npz does not exist; .*.npz"):
        matrix_files(tmp_path / "nothing.npz")


def test_an_unknown_suffix_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.csv").touch()
    with pytest.raises(DataError, match=r"has the suffix '.csv'; .*.npz, .npy"):
        matrix_files(tmp_path / "data.csv")


@pytest.mark.parametrize("name", ["a.npz", "a.npy", "a.mat"])
@pytest.mark.parametrize("content", [b"", b"rubbish" * 100, pickle.dumps({"a": 1})])
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name} cannot be read as {Path(name).suffix} \(.+\); check the file"):
        list_matrices(tmp_path / name)


def test_a_file_cut_short_is_refused_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.ones((100, 10)))
    path.write_bytes(path.read_bytes()[:500])
    (place,) = list_matrices(path)
    with pytest.raises(DataError, match=r"cannot be read as .npy"):
        read_matrix(place)


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.h5", b""), ("b.hdf5", b""), ("c.mat", HDF5), ("d.mat", b"MATLAB 7.3 MAT-file".ljust(512) + HDF5)],
)
def test_hdf5_is_refused_with_what_to_write_instead(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name} is in HDF5.*numpy.savez.*-v7"):
        list_matrices(*matrix_files(tmp_path))


def test_a_matrix_is_described_by_key_shape_and_file() -> None:
    place = MatrixKey(Path("some/labels.mat"), "LAll", (20015, 24))
    assert str(place) == "key 'LAll' (20,015 x 24) of labels.mat"
    assert str(MatrixKey(Path("a.npy"), "a", ())) == "key 'a' (a single value) of a.npy"


def test_an_archive_is_listed_by_shape_and_read(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez_compressed(path, images=np.ones((3, 2)), names=np.array(["dog", "cat"]))
    assert contents(path) == {"images": (3, 2), "names": (2,)}
    assert read(path, "names").tolist() == ["dog", "cat"]


def test_a_single_array_has_the_name_of_its_file_and_is_memory_mapped(tmp_path: Path) -> None:
    path = tmp_path / "images.npy"
    np.save(path, np.ones((3, 2), dtype=np.float32))
    assert contents(path) == {"images": (3, 2)}
    assert isinstance(read(path, "images"), np.memmap)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_a_sparse_archive_is_one_matrix_and_stays_sparse(tmp_path: Path, form: Any) -> None:
    path, dense = tmp_path / "tags.npz", np.array([[0, 1, 0], [2, 0, 0]])
    sparse.save_npz(path, sparse.coo_array(dense).asformat(form))
    assert contents(path) == {"tags": (2, 3)}
    matrix = read(path, "tags")
    assert isinstance(matrix, sparse.csr_array)
    np.testing.assert_array_equal(matrix.toarray(), dense)


def test_a_long_header_of_the_second_version_is_read(tmp_path: Path) -> None:
    path = tmp_path / "images.npy"
    with path.open("wb") as file:
        np.lib.format.write_array(file, np.ones((2, 5)), version=(2, 0))
    assert contents(path) == {"images": (2, 5)}


@pytest.mark.parametrize("name", ["labels.npy", "data.npz"])
def test_objects_are_never_unpickled(tmp_path: Path, name: str) -> None:
    path, objects = tmp_path / name, np.array([{"a": 1}], dtype=object)
    np.save(path, objects, allow_pickle=True) if name.endswith("npy") else np.savez(path, labels=objects)
    with pytest.raises(DataError, match=r"key 'labels' .*([Oo]bject)"):
        read(path, "labels")


def test_other_files_in_an_archive_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, labels=np.eye(2))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("README.txt", "two items")
    assert contents(path) == {"labels": (2, 2)}


def save(path: Path, **variables: object) -> Path:
    io.savemat(path, variables)
    return path


def test_a_matrix_keeps_its_rows(tmp_path: Path) -> None:
    path = save(tmp_path / "a.mat", LAll=np.arange(6).reshape(3, 2))
    assert contents(path) == {"LAll": (3, 2)}
    assert read(path, "LAll").tolist() == [[0, 1], [2, 3], [4, 5]]


def test_a_sparse_matrix_stays_sparse(tmp_path: Path) -> None:
    path = save(tmp_path / "a.mat", YAll=sparse.csc_matrix([[0, 1.0], [0, 0], [2, 0]]))
    assert contents(path) == {"YAll": (3, 2)}
    matrix = read(path, "YAll")
    assert isinstance(matrix, sparse.csr_array)
    assert matrix.toarray().tolist() == [[0, 1], [0, 0], [2, 0]]


def test_cells_of_strings_and_rows_of_characters_are_strings(tmp_path: Path) -> None:
    cells = np.array(["dog", "", "bird"], dtype=object)
    path = save(tmp_path / "a.mat", cells=cells, rows=np.array(["dog ", "bird"]))
    assert read(path, "cells").ravel().tolist() == ["dog", "", "bird"]
    assert read(path, "rows").tolist() == ["dog", "bird"]


def test_cells_of_matrices_are_refused(tmp_path: Path) -> None:
    cells = np.empty(2, dtype=object)
    cells[:] = [np.ones(2), np.ones(3)]
    with pytest.raises(DataError, match=r"key 'cells' .*cell array"):
        read(save(tmp_path / "a.mat", cells=cells), "cells")


def test_a_struct_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"key 'param' .*struct"):
        read(save(tmp_path / "a.mat", param={"x": 1.0}), "param")


def _npz(path: Path, name: str, header_shape: tuple[int, ...], content: bytes) -> Path:
    head = BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": header_shape})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, head.getvalue() + content)
    return path


def test_an_archive_that_unpacks_to_too_much_is_refused_by_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _npz(tmp_path / "bomb.npz", "images.npy", (1000, 256), bytes(1000 * 256 * 4))
    assert path.stat().st_size < 10_000
    monkeypatch.setattr("rmsh.data.readers.matrix_files.MOST_UNPACKED", 1_000_000)
    with pytest.raises(DataError, match="1,000,000 are allowed"):
        list_matrices(path)


def test_an_array_with_fewer_values_than_its_header_says_is_refused(tmp_path: Path) -> None:
    path = _npz(tmp_path / "liar.npz", "images.npy", (10**12, 10), bytes(100))
    with pytest.raises(DataError, match="'images'"):
        list_matrices(path)


def test_a_sparse_matrix_with_absurdly_many_rows_is_refused(tmp_path: Path) -> None:
    empty = np.empty(0, dtype=np.int64)
    np.savez(tmp_path / "a.npz", format=b"coo", shape=[10**12, 1], data=np.empty(0), row=empty, col=empty)
    with pytest.raises(DataError, match="bytes when it is unpacked"):
        list_matrices(tmp_path / "a.npz")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes among its files")
def test_a_pipe_is_not_a_matrix_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.npz")
    for path in (tmp_path, tmp_path / "a.npz"):
        with pytest.raises(DataError, match="pipe"):
            matrix_files(path)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("codes", ("all", "codes")),
        ("B", ("all", "codes")),
        ("image", ("all", "images")),
        ("qB", ("query", "codes")),
        ("rB", ("database", "codes")),
        ("query", ("query", "codes")),
        ("database", ("database", "codes")),
        ("retrieval_codes", ("database", "codes")),
        ("B_te", ("query", "codes")),
        ("query_img", ("query", "images")),
        ("retrieval_txt", ("database", "texts")),
        ("q_i", ("query", "images")),
        ("r_t", ("database", "texts")),
        ("qL", ("query", "labels")),
        ("database_labels", ("database", "labels")),
        ("targets", ("all", "labels")),
        ("loss", None),
    ],
)
def test_a_key_names_a_part_and_a_kind(key: str, meant: tuple[str, str] | None) -> None:
    assert MatrixKey(Path("a.npz"), key, (1, 1)).meaning == meant
