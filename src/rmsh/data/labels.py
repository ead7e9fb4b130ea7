"""Multi-hot labels: their packed form in files, how often each class occurs, and labels as vectors of length 1.

Labels mined from texts: the most frequent tags or content words become classes, in a file that a person may edit.

The file has one class a line: its name, a colon, and the words that stand for it, separated by commas. Lines may be
deleted, renamed, joined and added; what follows a "#" is not read.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rmsh.core.errors import DataError
from rmsh.core.files import write_text
from rmsh.data.records import multi_hot

if TYPE_CHECKING:
    from rmsh.core.types import LabelArray, PackedArray, ScoreArray


def pack_labels(labels: LabelArray) -> PackedArray:
    """Pack 0/1 labels (n, classes) into bytes (n, ceil(classes / 8)), class 0 in the most significant bit.

    Example:
        >>> pack_labels(np.array([[1, 0, 1]], dtype=np.uint8))
        array([[160]], dtype=uint8)
    """
    return np.packbits(labels, axis=1, bitorder="big")


def unpack_labels(packed: PackedArray, classes: int) -> LabelArray:
    """Undo :func:`pack_labels`.

    Raises:
        DataError: the bytes are not as wide as this number of classes needs.

    Example:
        >>> unpack_labels(np.array([[160]], dtype=np.uint8), 3)
        array([[1, 0, 1]], dtype=uint8)
    """
    if packed.dtype != np.uint8 or packed.ndim != 2 or packed.shape[1] != -(-classes // 8):
        raise DataError(
            f"Packed labels of dtype {packed.dtype} and shape {packed.shape} were given; {classes} classes need uint8 "
            f"of shape (n, {-(-classes // 8)})."
        )
    return np.unpackbits(packed, axis=1, count=classes, bitorder="big")


def class_frequency(labels: LabelArray) -> ScoreArray:
    """The part of all items that has each class, float64 (classes,); zeros where there are no items.

    Example:
        >>> class_frequency(np.array([[1, 0], [1, 1]], dtype=np.uint8))
        array([1. , 0.5])
    """
    counts: ScoreArray = labels.sum(axis=0, dtype=np.float64)
    return counts / max(len(labels), 1)


def unit_labels(labels: LabelArray) -> ScoreArray:
    """Labels as vectors of length 1, float64 (n, C); none stay zero.

    Example:
        >>> unit_labels(np.array([[1, 1, 1, 1], [0, 0, 0, 0]], dtype=np.uint8)).tolist()
        [[0.5, 0.5, 0.5, 0.5], [0.0, 0.0, 0.0, 0.0]]
    """
    lengths = np.sqrt(np.maximum(labels.sum(axis=1, keepdims=True), 1))
    return np.asarray(labels / lengths)


Classes: TypeAlias = Mapping[str, Sequence[str]]  # name of a class -> the tags or words that stand for it

MOST_CLASSES = 80
_LARGEST_SHARE = 0.5  # what stands in more than half of the texts tells them apart badly
_TAG_MARKS = re.compile(r"[,;|\n]")
_RESERVED = re.compile("[:#]")  # marks of the file of classes
_WORD = re.compile(r"[^\W\d_]{3,}")
_LONGEST_TAG = 3  # words; longer pieces between commas are parts of sentences

_HEADER = """# Classes mined from the texts: name: words that stand for it, separated by commas.
# Delete, rename, join or add lines, then build again, with --overwrite where the library is there already.
"""


def mine_classes(texts: Sequence[str], *, most: int = MOST_CLASSES) -> Classes:
    """The tags or content words that occur in most texts, but in no more than half of them.

    Texts are lists of tags where most of them are short pieces between commas; otherwise their words count, without
    words such as "the" (of English), and with plurals under the singular.

    Args:
        texts: one an item.
        most: how many classes at most.

    Raises:
        DataError: nothing recurs.

    Example:
        >>> mine_classes(["two dogs play", "a dog runs", "a cat sleeps", "cats play", "the sea"])
        {'cat': ['cat', 'cats'], 'dog': ['dog', 'dogs'], 'play': ['play']}
    """
    terms = _terms(texts)
    singular = _singulars({term for found in terms for term in found})
    words_of: defaultdict[str, set[str]] = defaultdict(set)
    counts: Counter[str] = Counter()
    for found in terms:
        counts.update({singular[term] for term in found})
        for term in found:
            words_of[singular[term]].add(term)
    least, largest = max(2, len(texts) // 500), max(2, _LARGEST_SHARE * len(texts))
    frequent = sorted((c for c, n in counts.items() if least <= n <= largest), key=lambda name: (-counts[name], name))
    if not frequent:
        raise DataError(
            f"No word or tag recurs in the {len(texts)} texts, so that no labels can be mined; give labels, in a "
            "column 'labels' or as one folder a class."
        )
    return {name: sorted(words_of[name]) for name in frequent[:most]}


def _terms(texts: Sequence[str]) -> list[set[str]]:
    """The tags of each text, or its content words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    if _are_tags(texts):
        return [_tags(text) for text in texts]
    return [{word for word in _WORD.findall(text.casefold()) if word not in ENGLISH_STOP_WORDS} for text in texts]


def _are_tags(texts: Sequence[str]) -> bool:
    """Whether most texts are several short pieces between marks, without the small words of sentences."""
    return sum(map(_is_list, texts)) > len(texts) / 2


def _is_list(text: str) -> bool:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    pieces = [piece.casefold().split() for piece in _TAG_MARKS.split(text)]
    short = all(len(words) <= _LONGEST_TAG and ENGLISH_STOP_WORDS.isdisjoint(words) for words in pieces)
    return len(pieces) > 1 and short


def _tags(text: str) -> set[str]:
    return {tag for piece in _TAG_MARKS.split(text.casefold()) if (tag := " ".join(_RESERVED.sub(" ", piece).split()))}


def _singulars(terms: set[str]) -> dict[str, str]:
    """Each term to the one it is a plural of by its ending, where that one occurs too."""
    found = {term: term for term in terms}
    for term in terms:
        for ending in ("s", "es"):
            base = term.removesuffix(ending)
            if base != term and len(base) > 2 and base in terms:
                found[term] = base
                break
    return found


def label_texts(texts: Iterable[str], classes: Classes) -> LabelArray:
    """Which classes each text has, 0/1 (n, classes): those of which it contains a word, or a run of words.

    Example:
        >>> label_texts(["Two dogs", "a hot dog stand"], {"dog": ["dog", "dogs"], "food": ["hot dog"]})
        array([[1, 0],
               [1, 1]], dtype=uint8)
    """
    patterns = {name: _pattern(words) for name, words in classes.items()}
    lowered = (text.casefold() for text in texts)
    found = [[name for name, pattern in patterns.items() if pattern.search(text)] for text in lowered]
    return multi_hot(found, [*classes])


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    """Any of some words, whole."""
    longest_first = sorted(words, key=len, reverse=True)
    options = "|".join(r"\s+".join(map(re.escape, word.casefold().split())) for word in longest_first)
    return re.compile(rf"(?<!\w)(?:{options})(?!\w)")


def write_classes(path: Path, classes: Classes, labels: LabelArray) -> None:
    """Write classes for a person to read and edit, each with the number of items that have it."""
    counts = np.asarray(labels.sum(axis=0, dtype=np.int64)).tolist()
    lines = [
        f"{name}: {', '.join(words)}  # {count}" for (name, words), count in zip(classes.items(), counts, strict=True)
    ]
    write_text(path, _HEADER + "\n".join(lines) + "\n")


def read_classes(path: Path) -> Classes:
    """Read classes that :func:`write_classes` or a person wrote; a name without words stands for itself.

    Raises:
        DataError: the file cannot be read, a name occurs twice, or there is no class.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as a text in UTF-8 ({error}); give a file of classes.") from error
    classes: dict[str, list[str]] = {}
    for number, line in enumerate(lines, start=1):
        name, _, words = line.partition("#")[0].partition(":")
        name = name.strip()
        if not name and not words.strip():
            continue
        if not name or name in classes:
            raise DataError(
                f"{path}, line {number} has {'no name' if not name else f'{name!r} again'}; give each class once."
            )
        classes[name] = [word for piece in words.split(",") if (word := " ".join(piece.split()))] or [name]
    if not classes:
        raise DataError(f"{path} has no class; write one a line, as in 'dog: dog, dogs, puppy'.")
    return classes
