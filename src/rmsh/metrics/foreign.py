"""Codes and labels in files of other programs: which array is which is guessed from its key, and told.

A key names a part (query, database, or neither: all items) and a kind (codes, codes of images, codes of texts,
labels), in the spellings the community uses: ``qB``/``rB``, ``query``/``database``, ``qBX``/``rBY``, ``L_te``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from rmsh.codes import Codes, pack
from rmsh.data.keys import meaning
from rmsh.data.matrices import Place, matrix_files, places_in, read_matrix
from rmsh.errors import DataError
from rmsh.metrics.interpret import class_count, interpret_codes, interpret_labels

if TYPE_CHECKING:
    from pathlib import Path

    from rmsh.types import IdArray, LabelArray

__all__ = ["FoundCodes", "FoundLabels", "Kind", "Part", "find_codes", "find_labels", "key_meaning"]

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
