"""Files of matrices: which are read, and one sentence for every file that cannot be."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from rmsh.core.errors import DataError, MissingExtraError
from rmsh.data.readers.matrices import Place, matrix_files, places_in, read_matrix


def test_a_folder_gives_its_matrix_files_in_order(tmp_path: Path):
    for name in ("b.npy", "a.NPZ", "notes.txt", "c.mat", "d.h5", "e.hdf5"):
        (tmp_path / name).touch()
    assert [file.name for file in matrix_files(tmp_path)] == ["a.NPZ", "b.npy", "c.mat", "d.h5", "e.hdf5"]


def test_a_folder_without_matrices_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match=r"folder without matrix files; put files of .npz, .npy, .mat, .h5 or .hdf5"):
        matrix_files(tmp_path)


def test_a_missing_file_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match=r"nothing.npz does not exist; give a file of .npz"):
        matrix_files(tmp_path / "nothing.npz")


def test_an_unknown_suffix_is_refused(tmp_path: Path):
    (tmp_path / "data.csv").touch()
    with pytest.raises(DataError, match=r"has the suffix '.csv'; matrices are read from .npz, .npy"):
        matrix_files(tmp_path / "data.csv")


@pytest.mark.parametrize("name", ["a.npz", "a.npy", "a.mat", "a.h5"])
@pytest.mark.parametrize("content", [b"", b"rubbish" * 100, pickle.dumps({"a": 1})])
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path: Path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name} cannot be read as {Path(name).suffix} \(.+\); check the file"):
        places_in(tmp_path / name)


def test_a_file_cut_short_is_refused_when_it_is_read(tmp_path: Path):
    path = tmp_path / "a.npy"
    np.save(path, np.ones((100, 10)))
    path.write_bytes(path.read_bytes()[:500])
    (place,) = places_in(path)
    with pytest.raises(DataError, match=r"cannot be read as .npy"):
        read_matrix(place)


def test_hdf5_without_its_library_says_which_extra_brings_it(tmp_path: Path, monkeypatch):
    (tmp_path / "a.h5").touch()
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtraError, match=r"\[hdf5\]"):
        places_in(tmp_path / "a.h5")


def test_a_place_reads_as_a_person_writes_it():
    place = Place(Path("some/labels.mat"), "LAll", (20015, 24))
    assert str(place) == "key 'LAll' (20,015 x 24) of labels.mat"
    assert Place(Path("a.npy"), "a", ()).size == "a single value"
