"""Codes and labels in matrix files of other programs: the key says which array is which, the values how it is coded.

Codes may be packed, 0/1, ±1 or real; labels may be multi-hot or class numbers. Notes say how each array was read;
ambiguous values are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from rmsh.codes import MAX_BITS, Codes, pack
from rmsh.core.errors import CodesError, DataError
from rmsh.data.labels import unpack_labels
from rmsh.data.pairs import checked_labels
from rmsh.data.readers.matrix_files import Kind, MatrixKey, Part, list_matrices, matrix_files, read_matrix

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, IdArray, LabelArray

_MOST_CLASSES = 1 << 16  # a larger class number is an id, not a class
_CLASS_NUMBERS = "class numbers"


def decode_codes(values: Any, bits: int | None = None, *, source: str = "codes") -> tuple[BitArray, str]:
    """Codes as booleans (n, bits), and how the values were read.

    ``values`` are 0/1, ±1 or real numbers (n, bits), or packed uint8 (n, ceil(bits / 8)). ``bits`` is needed if all
    bytes are 0 or 1, and for packed codes that do not fill the last byte.
    """
    array = _dense(values)
    if array.ndim != 2 or not array.size or array.dtype.kind not in "fiub":
        found = f"{array.dtype} of shape {array.shape}"
        raise CodesError(f"{source}: got {found}; codes are numbers (n, bits) or bytes (n, bits / 8).")
    width = array.shape[1]
    if array.dtype == np.uint8 and (array.max() > 1 or (bits != width and 8 * width <= MAX_BITS)):
        return _unpacked(array, bits, source)
    if width != (bits or width) or width > MAX_BITS:
        expected = bits or f"at most {MAX_BITS}"
        raise CodesError(f"{source}: got {width} columns, one per bit; expected {expected}, one row per item.")
    return _signs(array, source)


def _unpacked(array: NDArray[np.uint8], bits: int | None, source: str) -> tuple[BitArray, str]:
    width = array.shape[1]
    if bits is None and array.max() <= 1:
        raise CodesError(f"{source}: bytes of 0 and 1 may be {width} bits or {8 * width} packed bits; give --bits.")
    length = bits or 8 * width
    if -(-length // 8) != width:
        found = f"{width} columns of bytes have up to {8 * width} packed bits"
        raise CodesError(f"{source}: {found}, but {length} were expected; give the number of bits before packing.")
    for order in ("little", "big"):  # distances are the same in both; the padding shows which one it is
        unpacked = np.unpackbits(array, axis=1, bitorder=order).astype(np.bool_)
        if not unpacked[:, length:].any():
            return unpacked[:, :length], f"{length} bits packed into bytes"
    raise CodesError(f"{source}: padding after bit {length} is not zero; give the number of bits before packing.")


def _signs(array: NDArray[Any], source: str) -> tuple[BitArray, str]:
    if ((array == 0) | (array == 1)).all():
        return array == 1, "0 and 1"
    if np.isin(array, (-1, 0, 1)).all():
        return array >= 0, "-1 and +1" + ("; 0 counts as +1" if (array == 0).any() else "")
    if array.dtype.kind != "f":
        found = f"integers from {array.min()} to {array.max()}"
        raise CodesError(f"{source}: got {found}; give 0/1, ±1, real numbers or packed uint8.")
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise CodesError(f"{source}: the values of row {row} are not finite; only finite numbers have a sign.")
    if array.min() >= 0:
        found = f"real numbers from {array.min():.3g} to {array.max():.3g}, none of them negative"
        raise CodesError(f"{source}: got {found}; subtract the threshold first (0.5 for probabilities).")
    return array >= 0, "signs of real numbers"


def decode_labels(values: Any, classes: int | None = None, *, source: str = "labels") -> tuple[LabelArray, str]:
    """Labels as 0/1 (n, classes), and how the values were read.

    ``values`` are 0/1 (n, classes), dense or sparse; the same packed by ``np.packbits`` along axis 1, which requires
    ``classes``; or class numbers (n,), which become ``classes`` columns, or as many as the largest needs.
    """
    array = _dense(values)
    if classes is not None and array.ndim == 2 and array.dtype == np.uint8 and array.shape[1] != classes:
        return unpack_labels(array, classes), f"{classes} classes packed into bytes"
    one_per_item = array.ndim > 0 and array.size == len(array) > 0 and array.dtype.kind in "fiu"
    if not one_per_item or (array.ndim > 1 and array.max() <= 1):  # 0/1, perhaps for a single class
        return checked_labels(array, len(array) if array.ndim else 0, source), "0 and 1"
    numbers = array.ravel()
    whole = numbers.astype(np.int64)
    if (whole != numbers).any() or whole.min() < 0 or whole.max() >= _MOST_CLASSES:
        found = f"a list of numbers from {numbers.min()} to {numbers.max()}"
        allowed = f"class numbers are integers from 0 to {_MOST_CLASSES - 1}"
        raise DataError(f"{source}: got {found}; {allowed}. Give those, or 0/1 with one column per class.")
    labels = np.zeros((len(whole), max(int(whole.max()) + 1, classes or 0)), dtype=np.uint8)
    labels[np.arange(len(whole)), whole] = 1
    return labels, _CLASS_NUMBERS


def _dense(values: Any) -> NDArray[Any]:
    return values.toarray() if sparse.issparse(values) else np.asarray(values)


CodeKind: TypeAlias = Literal["codes", "image", "text", "labels"]
Meaning: TypeAlias = tuple[Part, CodeKind]

_KINDS: dict[Kind, CodeKind] = {
    "codes": "codes",
    "image codes": "image",
    "images": "image",
    "text codes": "text",
    "texts": "text",
    "labels": "labels",
}


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
        found = f"There are labels for {' and '.join(sorted(self.labels))}, but none for {parts[0]}"
        raise DataError(f"{found}; give labels as 'labels', or as 'query_labels' and 'database_labels'.")


def find_codes(path: Path, *, bits: int | None = None) -> tuple[dict[Meaning, Codes], tuple[str, ...]]:
    """The codes of a matrix file by part and kind, and notes on how they were read."""
    codes, notes = {}, []
    for meaning, matrix in _select(path, "codes")[0].items():
        values, reading = decode_codes(read_matrix(matrix), bits, source=matrix.where)
        codes[meaning] = Codes(pack(values), values.shape[1], np.arange(len(values)).astype(np.str_))
        notes.append(f"{_described(meaning)} were taken from {matrix}: {reading}")
    return codes, tuple(notes)


def find_labels(path: Path) -> FoundLabels:
    """Read the labels of a matrix file; class numbers become one column per class, the same for all parts."""
    found, matrices = _select(path, "labels")
    lists = {matrix.meaning: matrix for matrix in reversed(matrices) if len(matrix.shape) == 1}
    names, ids = lists.get(("all", "class_names")), lists.get(("all", "ids"))
    classes = None if names is None else names.shape[0]
    labels, readings, notes = {}, {}, []
    for (part, _), matrix in found.items():
        labels[part], readings[part] = decode_labels(read_matrix(matrix), classes, source=matrix.where)
        notes.append(f"{_described((part, 'labels'))} were taken from {matrix}: {readings[part]}")
    numbered = [part for part, reading in readings.items() if reading == _CLASS_NUMBERS]
    widest = max((labels[part].shape[1] for part in numbered), default=0)
    for part in numbered:
        labels[part] = np.pad(labels[part], ((0, 0), (0, widest - labels[part].shape[1])))
    return FoundLabels(labels, None if ids is None else np.asarray(read_matrix(ids), dtype=np.str_), tuple(notes))


def _select(path: Path, wanted: Literal["codes", "labels"]) -> tuple[dict[Meaning, MatrixKey], list[MatrixKey]]:
    """The arrays of a file that contain codes or labels, by meaning, and all its arrays."""
    if path.is_dir():
        raise DataError(f"{path} is a folder; give a single matrix file.")
    matrices = list_matrices(*matrix_files(path))
    named: dict[Meaning, MatrixKey] = {}
    for matrix in matrices:
        part, kind = matrix.meaning or ("all", "ids")
        if kind in _KINDS and part != "train":
            meaning = part, _KINDS[kind]
            if meaning in named:
                raise DataError(f"Two keys match {_described(meaning)}: {named[meaning]} and {matrix}; remove one.")
            named[meaning] = matrix
    found = {(part, kind): m for (part, kind), m in named.items() if (kind == "labels") == (wanted == "labels")}
    if not found and wanted == "labels":  # a file of labels alone may call them "query" and "database"
        found = {(part, kind): m for (part, kind), m in named.items() if part != "all" and kind == "codes"}
    if found:
        return found, matrices
    # The only array that can be meant, whatever its key; labels may be class numbers.
    dimensions, lists = (1, 2) if wanted == "labels" else (2,), (("all", "ids"), ("all", "class_names"))
    fitting = [m for m in matrices if len(m.shape) in dimensions and m.meaning not in lists]
    if len(fitting) != 1:
        keys = f"its keys are {', '.join(map(str, matrices)) or 'none'}"
        names = f"{wanted!r}, or two arrays 'query_{wanted}' and 'database_{wanted}'"
        raise DataError(f"{path} has no key for {wanted}; {keys}. Name the array {names}.")
    return {("all", wanted): fitting[0]}, matrices


def _described(meaning: Meaning) -> str:
    part, kind = meaning
    what = {"image": "image codes", "text": "text codes"}.get(kind, kind)
    return what if part == "all" else f"{part} {what}"
