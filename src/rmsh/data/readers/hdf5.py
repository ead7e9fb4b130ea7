"""Matrices in HDF5 files, with MATLAB's version 7.3 among them.

MATLAB marks what it writes by the attribute ``MATLAB_class``. Its dense matrices are stored column by column, so that
HDF5 sees them transposed; its sparse matrices are groups of ``data``, ``ir`` (rows) and ``jc`` (column starts) with the
number of rows in the attribute ``MATLAB_sparse``; its characters are numbers, and its cells point to other datasets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from rmsh.core.errors import DataError, require


def contents(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each dataset, as its writer saw it; a dataset in a group is called "group/dataset"."""
    found: dict[str, tuple[int, ...]] = {}

    def visit(name: str, node: Any) -> None:
        # Names with "#" are MATLAB's own bookkeeping; the parts of a sparse matrix are no matrices themselves.
        if name.startswith("#") or "MATLAB_sparse" in node.parent.attrs:
            return
        if "MATLAB_sparse" in node.attrs:
            found[name] = _sparse_shape(node)
        elif hasattr(node, "shape"):
            found[name] = tuple(reversed(node.shape)) if _matlab_class(node) else tuple(node.shape)

    with require("h5py", "hdf5").File(path, "r") as file:
        file.visititems(visit)
    return found


def read(path: Path, key: str) -> Any:
    """One dataset: an array, a CSR matrix, or strings."""
    with require("h5py", "hdf5").File(path, "r") as file:
        node = file[key]
        if "MATLAB_sparse" in node.attrs:
            return _sparse(node)
        matlab_class = _matlab_class(node)
        if matlab_class == "cell":
            return _strings_of_cells(node, file, f"{path}, key {key!r}")
        if matlab_class == "char":
            return np.array(["".join(map(chr, row)).rstrip() for row in node[()].T], dtype=np.str_)
        if node.dtype.kind == "O":
            return _strings(node, f"{path}, key {key!r}")
        return node[()].T if matlab_class else node[()]


def _matlab_class(node: Any) -> str:
    value = node.attrs.get("MATLAB_class", "")
    return value.decode() if isinstance(value, bytes) else str(value)


def _sparse_shape(group: Any) -> tuple[int, int]:
    return int(group.attrs["MATLAB_sparse"]), len(group["jc"]) - 1


def _sparse(group: Any) -> Any:
    starts = group["jc"][()].astype(np.int64)
    empty = "data" not in group  # MATLAB leaves both out where nothing is stored
    rows = np.empty(0, dtype=np.int64) if empty else group["ir"][()].astype(np.int64)
    values = np.empty(0, dtype=np.float32) if empty else group["data"][()]
    return sparse.csr_array(sparse.csc_array((values, rows, starts), shape=_sparse_shape(group)))


def _strings_of_cells(node: Any, file: Any, source: str) -> Any:
    cells = [file[reference] for reference in node[()].T.flat]
    if any(_matlab_class(cell) != "char" for cell in cells):
        raise DataError(f"{source} is a MATLAB cell array of other things than strings; save a numeric matrix instead.")
    # MATLAB stores an empty string as its size, marked by an attribute.
    texts = ["" if "MATLAB_empty" in cell.attrs else "".join(map(chr, cell[()].T.flat)) for cell in cells]
    return np.array(texts, dtype=np.str_).reshape(node.shape[::-1])


def _strings(node: Any, source: str) -> Any:
    if require("h5py", "hdf5").check_string_dtype(node.dtype) is None:
        raise DataError(f"{source} holds objects of dtype {node.dtype}; store numbers or strings.")
    return np.array(node.asstr()[()], dtype=np.str_)
