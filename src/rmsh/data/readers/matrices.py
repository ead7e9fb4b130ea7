"""Files of matrices: what they hold by key and shape, and one matrix of them when it is wanted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from rmsh.core.errors import DataError, RmshError
from rmsh.data.readers import hdf5, matlab, numpy_files

_READERS: dict[str, ModuleType] = {
    ".npz": numpy_files,
    ".npy": numpy_files,
    ".mat": matlab,
    ".h5": hdf5,
    ".hdf5": hdf5,
}
SUFFIXES = tuple(_READERS)


@dataclass(frozen=True)
class Place:
    """Where a matrix lies: a file, a key in it, and the shape it has there."""

    path: Path
    key: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"key {self.key!r} ({self.size}) of {self.path.name}"

    @property
    def where(self) -> str:
        """The whole path and the key, for errors."""
        return f"{self.path}, key {self.key!r}"

    @property
    def size(self) -> str:
        """The shape as a person writes it.

        Example:
            >>> Place(Path("a.npy"), "a", (20015, 24)).size
            '20,015 x 24'
        """
        return " x ".join(f"{length:,}" for length in self.shape) or "a single value"


def matrix_files(path: Path) -> list[Path]:
    """The matrix files that a path names: itself, or those directly in a folder.

    Raises:
        DataError: there is no such path, or no file of a known suffix.
    """
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if file.suffix.lower() in _READERS)
        if not found:
            raise DataError(f"{path} is a folder without matrix files; put files of {_suffixes()} into it.")
        return found
    if not path.exists():
        raise DataError(
            f"{path} does not exist; give a file of {_suffixes()}, a folder of such files, or a known name."
        )
    if path.suffix.lower() not in _READERS:
        raise DataError(f"{path} has the suffix {path.suffix!r}; matrices are read from {_suffixes()}.")
    return [path]


def _suffixes() -> str:
    return ", ".join(SUFFIXES[:-1]) + f" or {SUFFIXES[-1]}"


def places_in(path: Path) -> list[Place]:
    """What a file holds.

    Raises:
        DataError: the file cannot be read.
    """
    with _foreign(path):
        shapes = _READERS[path.suffix.lower()].contents(path)
    return [Place(path, key, shape) for key, shape in shapes.items()]


def read_matrix(place: Place) -> Any:
    """A matrix: an array (mapped into memory where the format allows), a CSR matrix, or an array of strings.

    Raises:
        DataError: the file cannot be read, or holds objects instead of numbers or strings.
    """
    with _foreign(place.path):
        return _READERS[place.path.suffix.lower()].read(place.path, place.key)


@contextmanager
def _foreign(path: Path) -> Iterator[None]:
    """Turn whatever a parser raises over a damaged file into one sentence."""
    try:
        yield
    except RmshError:
        raise
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise DataError(
            f"{path} cannot be read as {path.suffix} ({reason}); check the file or write it anew."
        ) from error
