"""Matrices in .npy and .npz files, with scipy's sparse .npz among them; pickles are never loaded."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from rmsh.core.errors import DataError

SPARSE_MEMBERS = {"format", "shape", "data"}  # what scipy.sparse.save_npz writes for every format


def contents(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each array, from the headers alone; a file of one nameless matrix calls it by the file's stem."""
    if path.suffix.lower() == ".npy":
        with path.open("rb") as file:
            return {path.stem: _header(file)[0]}
    with zipfile.ZipFile(path) as archive:
        members = _members(archive)
        if members.keys() >= SPARSE_MEMBERS:
            with np.load(path, allow_pickle=False) as arrays:
                return {path.stem: tuple(int(size) for size in arrays["shape"])}
        return {key: _header_of(archive, name)[0] for key, name in members.items()}


def read(path: Path, key: str) -> Any:
    """One array; an .npy file stays on the disk and is mapped into memory."""
    if path.suffix.lower() == ".npy":
        with path.open("rb") as file:
            _refuse_objects(_header(file)[1], path, key)
        return np.load(path, mmap_mode="r", allow_pickle=False)
    with zipfile.ZipFile(path) as archive:
        members = _members(archive)
        if members.keys() >= SPARSE_MEMBERS:
            return sparse.csr_array(sparse.load_npz(path))
        _refuse_objects(_header_of(archive, members[key])[1], path, key)
    with np.load(path, allow_pickle=False) as arrays:
        return arrays[key]


def _members(archive: zipfile.ZipFile) -> dict[str, str]:
    """Key -> member of the archive; other files in it are no arrays."""
    return {name.removesuffix(".npy"): name for name in archive.namelist() if name.endswith(".npy")}


def _header_of(archive: zipfile.ZipFile, member: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    with archive.open(member) as file:
        return _header(file)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    return shape, dtype


def _refuse_objects(dtype: np.dtype[Any], path: Path, key: str) -> None:
    if dtype.hasobject:
        raise DataError(
            f"{path}, key {key!r} is an array of Python objects, which is a pickle and is never loaded; save numbers "
            "or strings of a fixed dtype instead."
        )
