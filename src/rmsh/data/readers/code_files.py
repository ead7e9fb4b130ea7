"""Codes and labels in matrix files of other programs: the key says which array is which, the values how it is coded.

A key names a part (query, database, or neither: all items) and a kind (codes, image codes, text codes, labels) in the
usual spellings: ``qB``/``rB``, ``query``/``database``, ``qBX``/``rBY``, ``L_te``. Codes may be packed, 0/1, ±1 or real;
labels may be multi-hot or class numbers. Notes say how each array was read; ambiguous values are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from rmsh.codes import MAX_BITS, Codes, pack
from rmsh.core.errors import CodesError, DataError
from rmsh.data.labels import unpack_labels
from rmsh.data.pairs import checked_labels
from rmsh.data.readers.feature_files import role_of_key
from rmsh.data.readers.matrix_files import MatrixKey, list_matrices, matrix_files, read_matrix

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, IdArray, LabelArray

_MOST_CLASSES = 1 << 16  # a larger class number is an id, not a class


def decode_codes(values: Any, bits: int | None = None, *, source: str = "codes") -> tuple[BitArray, str]:
    """Codes as booleans (n, bits), and how the values were read.

    ``values`` are 0/1, ±1 or real numbers (n, bits), or packed uint8 (n, ceil(bits / 8)). ``bits`` is needed if all
    bytes are 0 or 1, and for packed codes that do not fill the last byte.
    """
    array = _dense(values)
    if array.ndim != 2 or not array.size or array.dtype.kind not in "fiub":
        raise CodesError(
            f"{source}: got {array.dtype} of shape {array.shape}; codes are numbers (n, bits) or bytes (n, bits / 8)."
        )
    width = array.shape[1]
    if array.dtype == np.uint8 and (array.max() > 1 or (bits != width and 8 * width <= MAX_BITS)):
        return _unpacked(array, bits, source)
    if width != (bits or width) or width > MAX_BITS:
        raise CodesError(
            f"{source}: got {width} columns, one per bit; expected {bits or f'at most {MAX_BITS}'}. Check the "
            "number of bits, and that each row is an item."
        )
    return _signs(array, source)


def _unpacked(array: NDArray[np.uint8], bits: int | None, source: str) -> tuple[BitArray, str]:
    width = array.shape[1]
    if bits is None and array.max() <= 1:
        raise CodesError(
            f"{source}: bytes of 0 and 1 may be {width} bits or {8 * width} packed bits; give the number (--bits)."
        )
    length = bits or 8 * width
    if -(-length // 8) != width:
        raise CodesError(
            f"{source}: {width} columns of bytes have up to {8 * width} packed bits, but {length} were expected; give "
            "the number of bits before packing."
        )
    for order in ("little", "big"):  # distances are the same in both; the padding shows which one it is
        unpacked = np.unpackbits(array, axis=1, bitorder=order).astype(np.bool_)
        if not unpacked[:, length:].any():
            return unpacked[:, :length], f"{length} bits packed into bytes"
    raise CodesError(f"{source}: bits are set after the last of {length}; give the number before packing.")


def _signs(array: NDArray[Any], source: str) -> tuple[BitArray, str]:
    if ((array == 0) | (array == 1)).all():
        return array == 1, "0 and 1"
    if np.isin(array, (-1, 0, 1)).all():
        return array >= 0, "-1 and +1" + ("; 0 counts as +1" if (array == 0).any() else "")
    if array.dtype.kind != "f":
        raise CodesError(
            f"{source}: got integers from {array.min()} to {array.max()}; give 0/1, ±1, real numbers or packed uint8."
        )
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise CodesError(f"{source}: the values of row {row} are not finite; only finite numbers have a sign.")
    if array.min() >= 0:
        raise CodesError(
            f"{source}: got real numbers from {array.min():.3g} to {array.max():.3g}, none of them negative, so all "
            "signs would be equal; subtract the threshold first (0.5 for probabilities)."
        )
    return array >= 0, "signs of real numbers"


def class_count(values: Any) -> int | None:
    """The number of classes that a list of class numbers needs, or None if the array is not such a list."""
    array = _dense(values)
    if array.dtype.kind not in "fiu" or array.ndim == 0 or not array.size or array.size != len(array):
        return None
    if array.ndim > 1 and array.max() <= 1:  # 0/1 for a single class
        return None
    return int(array.max()) + 1


def decode_labels(
    values: Any, classes: int | None = None, *, at_least: int = 0, source: str = "labels"
) -> tuple[LabelArray, str]:
    """Labels as 0/1 (n, classes), and how the values were read.

    ``values`` are 0/1 (n, classes), dense or sparse; the same packed by ``np.packbits`` along axis 1, which requires
    ``classes``; or class numbers (n,), which become ``at_least`` columns or more.
    """
    array = _dense(values)
    if classes is not None and array.ndim == 2 and array.dtype == np.uint8 and array.shape[1] != classes:
        return unpack_labels(array, classes), f"{classes} classes packed into bytes"
    needed = class_count(array)
    if needed is not None:
        return _one_hot(array.ravel(), max(needed, classes or 0, at_least), source), "class numbers"
    return checked_labels(array, len(array) if array.ndim else 0, source), "0 and 1"


def _one_hot(numbers: NDArray[Any], classes: int, source: str) -> LabelArray:
    whole = numbers.astype(np.int64)
    if (whole != numbers).any() or whole.min() < 0 or classes > _MOST_CLASSES:
        raise DataError(
            f"{source}: got a list of numbers from {numbers.min()} to {numbers.max()}; class numbers are integers "
            f"from 0 to {_MOST_CLASSES - 1}. Give those, or 0/1 with one column per class."
        )
    labels = np.zeros((len(whole), classes), dtype=np.uint8)
    labels[np.arange(len(whole)), whole] = 1
    return labels


def _dense(values: Any) -> NDArray[Any]:
    return values.toarray() if sparse.issparse(values) else np.asarray(values)


Part: TypeAlias = Literal["all", "query", "database"]
Kind: TypeAlias = Literal["codes", "image", "text", "labels"]

_PARTS: dict[Part, tuple[str, ...]] = {
    "query": ("query", "queries", "q", "qu", "test", "te"),
    "database": ("database", "retrieval", "gallery", "db", "re", "r"),
}
_KINDS: dict[Kind, tuple[str, ...]] = {
    "codes": ("b", "code", "codes", "bits", "binary", "hash", "hashes", "hashcodes"),
    "image": ("image", "images", "img", "i", "bi", "bx", "imagecodes", "imgcodes"),
    "text": ("text", "texts", "txt", "t", "bt", "by", "textcodes", "txtcodes"),
    "labels": ("l", "label", "labels", "target", "targets"),
}


def _known_keys() -> dict[str, tuple[Part, Kind]]:
    known: dict[str, tuple[Part, Kind]] = {word: ("all", kind) for kind, words in _KINDS.items() for word in words}
    for part, names in _PARTS.items():
        known |= dict.fromkeys(names, (part, "codes"))
        for kind, words in _KINDS.items():
            known |= {key: (part, kind) for name in names for word in words for key in (name + word, word + name)}
    return known


_KNOWN_KEYS = _known_keys()


def key_meaning(key: str) -> tuple[Part, Kind] | None:
    """The part and the kind that a key implies, or None."""
    return _KNOWN_KEYS.get(re.sub(r"[^a-z0-9]", "", key.lower()))


class FoundCodes(NamedTuple):
    """The codes of a file by part and kind, and notes on how they were read."""

    codes: Mapping[tuple[Part, Kind], Codes]
    notes: tuple[str, ...]


class FoundLabels(NamedTuple):
    """The labels of a file by part, the IDs of their rows if the file has them, and notes on how they were read."""

    labels: Mapping[Part, LabelArray]
    ids: IdArray | None
    notes: tuple[str, ...]

    def of(self, *parts: Part) -> LabelArray:
        """The labels of the first of these parts that the file has."""
        for part in parts:
            if part in self.labels:
                return self.labels[part]
        raise DataError(
            f"There are labels for {' and '.join(sorted(self.labels))}, but none for {parts[0]}; give labels in the "
            "same parts as the codes (keys 'labels', or 'query_labels' and 'database_labels')."
        )


def find_codes(path: Path, *, bits: int | None = None) -> FoundCodes:
    """Read the codes of a matrix file."""
    matrices = _matrices(path)
    found = {meaning: matrix for meaning, matrix in _by_meaning(matrices).items() if meaning[1] != "labels"}
    found = found or _only_one(matrices, "codes", path)
    codes, notes = {}, []
    for meaning, matrix in found.items():
        values, reading = decode_codes(read_matrix(matrix), bits, source=matrix.where)
        codes[meaning] = Codes(pack(values), values.shape[1], np.arange(len(values)).astype(np.str_))
        notes.append(f"{_described(meaning)} were taken from {matrix}: {reading}")
    return FoundCodes(codes, tuple(notes))


def find_labels(path: Path) -> FoundLabels:
    """Read the labels of a matrix file; class numbers become one column per class, the same for all parts."""
    matrices = _matrices(path)
    named = _by_meaning(matrices)
    found = {meaning: matrix for meaning, matrix in named.items() if meaning[1] == "labels"}
    if not found:  # a file of labels alone may call them "query" and "database"
        found = {meaning: matrix for meaning, matrix in named.items() if meaning[0] != "all" and meaning[1] == "codes"}
    found = found or _only_one(matrices, "labels", path)
    arrays = {meaning: read_matrix(matrix) for meaning, matrix in found.items()}
    lists = {role_of_key(matrix.key): matrix for matrix in reversed(matrices) if len(matrix.shape) == 1}
    names, ids = lists.get(("class_names", "all")), lists.get(("ids", "all"))
    classes = None if names is None else names.shape[0]
    columns = max(class_count(array) or 0 for array in arrays.values())
    labels, notes = {}, []
    for meaning, array in arrays.items():
        part, matrix = meaning[0], found[meaning]
        labels[part], reading = decode_labels(array, classes, at_least=columns, source=matrix.where)
        notes.append(f"{_described((part, 'labels'))} were taken from {matrix}: {reading}")
    return FoundLabels(labels, None if ids is None else np.asarray(read_matrix(ids), dtype=np.str_), tuple(notes))


def _matrices(path: Path) -> list[MatrixKey]:
    if path.is_dir():
        raise DataError(f"{path} is a folder; give a single matrix file.")
    return list_matrices(*matrix_files(path))


def _by_meaning(matrices: list[MatrixKey]) -> dict[tuple[Part, Kind], MatrixKey]:
    found: dict[tuple[Part, Kind], MatrixKey] = {}
    for matrix in matrices:
        meaning = key_meaning(matrix.key)
        if meaning is None:
            continue
        if meaning in found:
            raise DataError(f"Two keys match {_described(meaning)}: {found[meaning]} and {matrix}; remove one.")
        found[meaning] = matrix
    return found


def _only_one(matrices: list[MatrixKey], kind: Kind, path: Path) -> dict[tuple[Part, Kind], MatrixKey]:
    """The only array of a file that can be of a kind, whatever its key; labels may be class numbers."""
    dimensions, lists = (1, 2) if kind == "labels" else (2,), (("ids", "all"), ("class_names", "all"))
    fitting = [m for m in matrices if len(m.shape) in dimensions and role_of_key(m.key) not in lists]
    if len(fitting) != 1:
        there = ", ".join(str(matrix) for matrix in matrices) or "none"
        raise DataError(
            f"{path} has no key for {kind}; its keys are {there}. Name the array {kind!r}, or two arrays "
            f"'query_{kind}' and 'database_{kind}'."
        )
    return {("all", kind): fitting[0]}


def _described(meaning: tuple[Part, Kind]) -> str:
    part, kind = meaning
    what = {"image": "image codes", "text": "text codes"}.get(kind, kind)
    return what if part == "all" else f"{part} {what}"
