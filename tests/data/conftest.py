"""Fixtures that write small files the way other programs do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from rmsh.core.errors import require

MATLAB73_HEADER = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"


@pytest.fixture
def write_matlab73() -> Callable[..., Path]:
    """A writer of MATLAB 7.3 files: arrays transposed, sparse matrices as groups, lists as cells."""
    return _write_matlab73


def _write_matlab73(path: Path, **variables: Any) -> Path:
    h5py = require("h5py", "hdf5")
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in variables.items():
            if sparse.issparse(value):
                _write_sparse(file.create_group(name), sparse.csc_array(value))
            elif isinstance(value, list):
                _write_cells(file, name, value, h5py.ref_dtype)
            else:
                _write_dense(file, name, np.asarray(value))
    with path.open("r+b") as raw:
        raw.write(MATLAB73_HEADER)
    return path


def _write_dense(file: Any, name: str, value: Any) -> None:
    text = value.dtype.kind == "U"  # rows of characters of one length
    file[name] = np.array([[ord(c) for c in row] for row in value], dtype=np.uint16).T if text else value.T
    file[name].attrs["MATLAB_class"] = np.bytes_("char" if text else "double")


def _write_sparse(group: Any, matrix: Any) -> None:
    group.attrs["MATLAB_class"] = np.bytes_("double")
    group.attrs["MATLAB_sparse"] = np.uint64(matrix.shape[0])
    group["jc"] = matrix.indptr.astype(np.uint64)
    if matrix.nnz:
        group["ir"], group["data"] = matrix.indices.astype(np.uint64), matrix.data


def _write_cells(file: Any, name: str, values: list[Any], ref_dtype: Any) -> None:
    cells = [f"#refs#/{name}{position}" for position in range(len(values))]
    for cell, value in zip(cells, values, strict=True):
        if value == "":  # stored as its size, 0 x 0
            file[cell] = np.zeros(2, dtype=np.uint64)
            file[cell].attrs["MATLAB_empty"] = np.uint8(1)
            file[cell].attrs["MATLAB_class"] = np.bytes_("char")
        else:
            _write_dense(file, cell, np.array([value]))
    file.create_dataset(name, data=np.array([[file[cell].ref for cell in cells]], dtype=ref_dtype))
    file[name].attrs["MATLAB_class"] = np.bytes_("cell")
