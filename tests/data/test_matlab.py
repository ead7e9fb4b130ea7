"""MATLAB files of both kinds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import io, sparse

from rmsh.core.errors import DataError
from rmsh.data.readers import matlab


def save(path: Path, **variables: object) -> Path:
    io.savemat(path, variables)
    return path


def test_a_matrix_keeps_its_rows(tmp_path: Path):
    path = save(tmp_path / "a.mat", LAll=np.arange(6).reshape(3, 2))
    assert matlab.contents(path) == {"LAll": (3, 2)}
    assert matlab.read(path, "LAll").tolist() == [[0, 1], [2, 3], [4, 5]]


def test_a_sparse_matrix_stays_sparse(tmp_path: Path):
    path = save(tmp_path / "a.mat", YAll=sparse.csc_matrix([[0, 1.0], [0, 0], [2, 0]]))
    assert matlab.contents(path) == {"YAll": (3, 2)}
    matrix = matlab.read(path, "YAll")
    assert isinstance(matrix, sparse.csr_array)
    assert matrix.toarray().tolist() == [[0, 1], [0, 0], [2, 0]]


def test_the_newer_format_is_recognised_by_its_content(tmp_path: Path, write_matlab73):
    path = write_matlab73(tmp_path / "a.mat", LAll=np.eye(2))
    assert matlab.contents(path) == {"LAll": (2, 2)}
    assert matlab.read(path, "LAll").tolist() == [[1, 0], [0, 1]]


def test_cells_of_strings_and_rows_of_characters_are_strings(tmp_path: Path):
    cells = np.array(["dog", "", "bird"], dtype=object)
    path = save(tmp_path / "a.mat", cells=cells, rows=np.array(["dog ", "bird"]))
    assert matlab.read(path, "cells").ravel().tolist() == ["dog", "", "bird"]
    assert matlab.read(path, "rows").tolist() == ["dog", "bird"]


def test_cells_of_matrices_are_refused(tmp_path: Path):
    cells = np.empty(2, dtype=object)
    cells[:] = [np.ones(2), np.ones(3)]
    with pytest.raises(DataError, match="key 'cells' is a MATLAB cell array of other things than strings"):
        matlab.read(save(tmp_path / "a.mat", cells=cells), "cells")


def test_a_struct_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match="key 'param' is a MATLAB struct; save the matrix inside it"):
        matlab.read(save(tmp_path / "a.mat", param={"x": 1.0}), "param")
