"""Codes and labels in files of other programs: which array is which is guessed from its key, and told.

A key names a part (query, database, or neither: all items) and a kind (codes, codes of images, codes of texts,
labels), in the spellings the community uses: ``qB``/``rB``, ``query``/``database``, ``qBX``/``rBY``, ``L_te``.

What an array from another program means: codes may be packed, 0/1, ±1 or real; labels multi-hot or class numbers.

Each reading is told in words, so that the user sees what was understood; what can be read in two ways is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from scipy import sparse

from rmsh.codes import MAX_BITS, Codes, pack
from rmsh.core.errors import CodesError, DataError
from rmsh.data.labels import unpack_labels
from rmsh.data.pairs import checked_labels
from rmsh.data.readers.matrices import Place, matrix_files, places_in, read_matrix
from rmsh.data.readers.matrix_roles import meaning

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, IdArray, LabelArray

_MOST_CLASSES = 1 << 16  # a larger class number is an id, not a class


def interpret_codes(values: Any, bits: int | None = None, *, source: str = "codes") -> tuple[BitArray, str]:
    """Codes as booleans (n, bits), and how the values were read.

    Args:
        values: (n, bits) of 0/1, of ±1 or of real numbers; or packed uint8 (n, ceil(bits / 8)).
        bits: the length of a code; needed where bytes are all 0 or 1, and for packed codes that do not fill a byte.
        source: what an error message calls the values.

    Raises:
        CodesError: the values are none of these, or could be two of them.

    Example:
        >>> interpret_codes(np.array([[0.3, -2.0]]))
        (array([[ True, False]]), 'real numbers, of which the sign was taken')
    """
    array = _dense(values)
    if array.ndim != 2 or not array.size or array.dtype.kind not in "fiub":
        raise CodesError(
            f"{source}: {array.dtype} of shape {array.shape} was found; codes are numbers of shape (items, bits), or "
            "packed uint8 of shape (items, bytes)."
        )
    if array.dtype == np.uint8 and _may_be_packed(array, bits):
        return _unpacked(array, bits, source)
    if array.shape[1] != (bits or array.shape[1]) or array.shape[1] > MAX_BITS:
        raise CodesError(
            f"{source}: there are {array.shape[1]} columns, one a bit; {bits or f'at most {MAX_BITS}'} were expected. "
            "Check the number of bits, and that each row is an item."
        )
    return _signs(array, source)


def _may_be_packed(array: NDArray[np.uint8], bits: int | None) -> bool:
    """Whether bytes are more than one bit each, or could be: all 0 or 1, and not as wide as the code is said to be."""
    width = array.shape[1]
    return bool(array.max() > 1) or (bits != width and 8 * width <= MAX_BITS)


def _unpacked(array: NDArray[np.uint8], bits: int | None, source: str) -> tuple[BitArray, str]:
    width = array.shape[1]
    if bits is None and array.max() <= 1:
        raise CodesError(
            f"{source}: bytes of 0 and 1 in {width} columns are {width} bits, or {8 * width} packed bits; say which by "
            "the number of bits (--bits)."
        )
    length = bits or 8 * width
    if -(-length // 8) != width:
        raise CodesError(
            f"{source}: {width} columns of bytes hold up to {8 * width} packed bits, and {length} were expected; give "
            "the number of bits that were packed."
        )
    for order in ("little", "big"):  # distances are the same in both; the padding tells which it was
        unpacked = np.unpackbits(array, axis=1, bitorder=order).astype(np.bool_)
        if not unpacked[:, length:].any():
            return unpacked[:, :length], f"{length} bits packed into bytes"
    raise CodesError(f"{source}: bytes have bits set behind the last of {length}; give the number of bits packed.")


def _signs(array: NDArray[Any], source: str) -> tuple[BitArray, str]:
    if ((array == 0) | (array == 1)).all():
        return array == 1, "0 and 1"
    if np.isin(array, (-1, 0, 1)).all():
        return array >= 0, "-1 and +1" + ("; 0 counts as +1" if (array == 0).any() else "")
    if array.dtype.kind != "f":
        raise CodesError(
            f"{source}: whole numbers from {array.min()} to {array.max()} were found; give 0/1, -1/+1, real numbers, "
            "or packed uint8."
        )
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise CodesError(f"{source}: the values of row {row} are not finite; a sign is taken of numbers only.")
    if array.min() >= 0:
        raise CodesError(
            f"{source}: real numbers from {array.min():.3g} to {array.max():.3g} were found, none of them negative, so "
            "all signs would be the same; subtract the threshold first (0.5 for probabilities)."
        )
    return array >= 0, "real numbers, of which the sign was taken"


def class_count(values: Any) -> int | None:
    """How many classes an array of class numbers needs, or None where the array is not a list of class numbers.

    Example:
        >>> class_count(np.array([0, 3, 1])), class_count(np.array([[0, 1], [1, 0]]))
        (4, None)
    """
    array = _dense(values)
    if array.dtype.kind not in "fiu" or array.ndim == 0 or not array.size or array.size != len(array):
        return None
    if array.ndim > 1 and array.max() <= 1:  # one class, which an item has or has not
        return None
    return int(array.max()) + 1


def interpret_labels(
    values: Any, classes: int | None = None, *, at_least: int = 0, source: str = "labels"
) -> tuple[LabelArray, str]:
    """Labels as 0/1 (n, classes), and how the values were read.

    Args:
        values: 0/1 (n, classes), dense or sparse; the same packed by ``np.packbits`` along axis 1; or class numbers
            (n,).
        classes: how many classes there are, where it is known; needed for packed labels.
        at_least: how many columns class numbers become, or more where they need it.
        source: what an error message calls the values.

    Raises:
        DataError: the values are none of these.

    Example:
        >>> interpret_labels(np.array([1, 0]))
        (array([[0, 1], [1, 0]], dtype=uint8), 'class numbers')
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
            f"{source}: a list of numbers from {numbers.min()} to {numbers.max()} was found; class numbers are whole, "
            f"from 0 to {_MOST_CLASSES - 1}. Give those, or 0/1 with one column a class."
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
    """The part and the kind a key stands for, or None.

    Example:
        >>> key_meaning("qB"), key_meaning("rBY"), key_meaning("retrieval_L"), key_meaning("epoch")
        (('query', 'codes'), ('database', 'text'), ('database', 'labels'), None)
    """
    return _KNOWN_KEYS.get(re.sub(r"[^a-z0-9]", "", key.lower()))


@dataclass(frozen=True, eq=False)
class FoundCodes:
    """The codes of a file by part and kind, and how they were understood."""

    codes: Mapping[tuple[Part, Kind], Codes]
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class FoundLabels:
    """The labels of a file by part, the ids of their rows where the file has them, and how they were understood."""

    labels: Mapping[Part, LabelArray]
    ids: IdArray | None
    notes: tuple[str, ...]

    def of(self, *parts: Part) -> LabelArray:
        """The labels of the first of these parts that there is.

        Raises:
            DataError: there is none of them.
        """
        for part in parts:
            if part in self.labels:
                return self.labels[part]
        raise DataError(
            f"There are labels for {' and '.join(sorted(self.labels))}, and none for {parts[0]}; give labels in the "
            "same parts as the codes (keys 'labels', or 'query_labels' and 'database_labels')."
        )


def find_codes(path: Path, *, bits: int | None = None) -> FoundCodes:
    """Read the codes of a file of matrices (npz, npy, mat, h5).

    Raises:
        DataError: the file cannot be read, or no key says which array holds codes.
        CodesError: the values are no codes, or ambiguous.
    """
    places = _places(path)
    found = {meant: place for meant, place in _by_meaning(places).items() if meant[1] != "labels"}
    found = found or _only_one(places, "codes", path)
    codes, notes = {}, []
    for meant, place in found.items():
        values, reading = interpret_codes(read_matrix(place), bits, source=place.where)
        codes[meant] = Codes(pack(values), values.shape[1], np.arange(len(values)).astype(np.str_))
        notes.append(f"{_called(meant)} were taken from {place}: {reading}")
    return FoundCodes(codes, tuple(notes))


def find_labels(path: Path) -> FoundLabels:
    """Read the labels of a file of matrices; class numbers become one column a class, the same for all parts.

    Raises:
        DataError: the file cannot be read, no key says which array holds labels, or the values are no labels.
    """
    places = _places(path)
    named = _by_meaning(places)
    found = {meant: place for meant, place in named.items() if meant[1] == "labels"}
    if not found:  # a file of labels alone may call them "query" and "database"
        found = {meant: place for meant, place in named.items() if meant[0] != "all" and meant[1] == "codes"}
    found = found or _only_one(places, "labels", path)
    arrays = {meant: read_matrix(place) for meant, place in found.items()}
    classes, columns = _class_names(places), max(class_count(array) or 0 for array in arrays.values())
    labels, notes = {}, []
    for meant, array in arrays.items():
        part, place = meant[0], found[meant]
        labels[part], reading = interpret_labels(array, classes, at_least=columns, source=place.where)
        notes.append(f"{_called((part, 'labels'))} were taken from {place}: {reading}")
    return FoundLabels(labels, _ids(places), tuple(notes))


def _places(path: Path) -> list[Place]:
    files = matrix_files(path)
    if files != [path]:
        raise DataError(f"{path} is a folder; give one file of matrices.")
    return places_in(path)


def _by_meaning(places: list[Place]) -> dict[tuple[Part, Kind], Place]:
    found: dict[tuple[Part, Kind], Place] = {}
    for place in places:
        meant = key_meaning(place.key)
        if meant is None:
            continue
        if meant in found:
            raise DataError(f"Two keys stand for {_called(meant)}: {found[meant]} and {place}; remove one.")
        found[meant] = place
    return found


def _only_one(places: list[Place], kind: Kind, path: Path) -> dict[tuple[Part, Kind], Place]:
    """The only array of a file that can be of a kind, whatever its key; labels may be a list of class numbers."""
    matrices = [place for place in places if len(place.shape) == 2 or (kind == "labels" and len(place.shape) == 1)]
    matrices = [place for place in matrices if meaning(place.key) not in (("ids", "all"), ("class_names", "all"))]
    if len(matrices) != 1:
        there = ", ".join(str(place) for place in places) or "nothing"
        raise DataError(
            f"{path} has no key that stands for {kind}; it holds {there}. Call the array {kind!r}, or two of them "
            f"'query_{kind}' and 'database_{kind}'."
        )
    return {("all", kind): matrices[0]}


def _called(meant: tuple[Part, Kind]) -> str:
    part, kind = meant
    what = {"image": "image codes", "text": "text codes"}.get(kind, kind)
    return what if part == "all" else f"{part} {what}"


def _class_names(places: list[Place]) -> int | None:
    named = [place for place in places if meaning(place.key) == ("class_names", "all") and len(place.shape) == 1]
    return named[0].shape[0] if named else None


def _ids(places: list[Place]) -> IdArray | None:
    named = [place for place in places if meaning(place.key) == ("ids", "all") and len(place.shape) == 1]
    return np.asarray(read_matrix(named[0]), dtype=np.str_) if named else None
