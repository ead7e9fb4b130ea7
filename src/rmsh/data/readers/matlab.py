"""Matrices in MATLAB files up to version 7.2; version 7.3 is HDF5 and goes to hdf5.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import io, sparse

from rmsh.core.errors import DataError
from rmsh.data.readers import hdf5

HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
USER_BLOCK = 512  # MATLAB's own header lies in front of the HDF5 part of a version 7.3 file


def contents(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each variable, without reading its values."""
    if _is_hdf5(path):
        return hdf5.contents(path)
    return {name: tuple(shape) for name, shape, _ in io.whosmat(path)}


def read(path: Path, key: str) -> Any:
    """One variable: an array, a CSR matrix, or strings (from a cell array of strings, or rows of characters)."""
    if _is_hdf5(path):
        return hdf5.read(path, key)
    value = io.loadmat(path, variable_names=[key])[key]
    if sparse.issparse(value):
        return sparse.csr_array(value)
    if value.dtype.kind == "O":
        return _strings_of_cells(value, path, key)
    if value.dtype.names is not None:
        raise DataError(f"{path}, key {key!r} is a MATLAB struct; save the matrix inside it as a variable of its own.")
    # MATLAB pads the rows of a character matrix with blanks to one length.
    return np.strings.rstrip(value) if value.dtype.kind == "U" else value


def _is_hdf5(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(USER_BLOCK + len(HDF5_SIGNATURE))
    return head.startswith(HDF5_SIGNATURE) or head.endswith(HDF5_SIGNATURE)


def _strings_of_cells(cells: Any, path: Path, key: str) -> Any:
    flat = [np.asarray(cell) for cell in cells.flat]
    if not all(cell.dtype.kind == "U" and cell.size <= 1 for cell in flat):
        raise DataError(
            f"{path}, key {key!r} is a MATLAB cell array of other things than strings; save a numeric matrix instead."
        )
    return np.array([str(cell.item()) if cell.size else "" for cell in flat], dtype=np.str_).reshape(cells.shape)
