"""Multi-hot labels: packing, class frequencies, unit vectors; and classes mined from texts.

Mining makes the most frequent tags or content words classes.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from rmsh.core.errors import DataError
from rmsh.core.types import LabelArray, PackedArray, ScoreArray


def pack_labels(labels: LabelArray) -> PackedArray:
    """Pack 0/1 labels (n, classes) into bytes (n, ceil(classes / 8)), class 0 in the most significant bit."""
    return np.packbits(labels, axis=1, bitorder="big")


def unpack_labels(packed: PackedArray, classes: int) -> LabelArray:
    """Undo :func:`pack_labels`."""
    if packed.dtype != np.uint8 or packed.ndim != 2 or packed.shape[1] != -(-classes // 8):
        found = f"packed labels of dtype {packed.dtype} and shape {packed.shape}"
        raise DataError(f"Got {found}; {classes} classes need uint8 of shape (n, {-(-classes // 8)}).")
    return np.unpackbits(packed, axis=1, count=classes, bitorder="big")


def class_frequency(labels: LabelArray) -> ScoreArray:
    """The share of items that have each class, float64 (classes,); zeros if there are no items."""
    counts: ScoreArray = labels.sum(axis=0, dtype=np.float64)
    return counts / max(len(labels), 1)


def unit_labels(labels: LabelArray) -> ScoreArray:
    """Labels as vectors of length 1, float64 (n, C); rows without labels stay zero."""
    lengths = np.sqrt(np.maximum(labels.sum(axis=1, keepdims=True), 1))
    return np.asarray(labels / lengths)


def multi_hot(labels: Sequence[Iterable[str]], names: Sequence[str]) -> LabelArray:
    """The label names of each item as 0/1 (n, classes)."""
    column = {name: i for i, name in enumerate(names)}
    array = np.zeros((len(labels), len(names)), dtype=np.uint8)
    for row, item_labels in enumerate(labels):
        array[row, [column[name] for name in item_labels]] = 1
    return array


Classes: TypeAlias = Mapping[str, Sequence[str]]  # class name -> its tags or words

MOST_CLASSES = 80
_LARGEST_SHARE = 0.5  # a term in more than half of the texts hardly distinguishes them
_TAG_MARKS = re.compile(r"[,;|\n]")
_RESERVED = re.compile("[:#]")  # special characters of the class file
_WORD = re.compile(r"[^\W\d_]{3,}")
_LONGEST_TAG = 3  # words; longer pieces between commas belong to sentences


def mine_classes(texts: Sequence[str], *, most: int = MOST_CLASSES) -> Classes:
    """The most frequent tags or content words that occur in at most half of the texts.

    If most texts are short pieces between commas, they are lists of tags; otherwise their words count, without English
    stop words and with plurals counted as their singular.

    Example:
        >>> mine_classes(["two dogs play", "a dog runs", "a cat sleeps", "cats play", "the sea"])
        {'cat': ['cat', 'cats'], 'dog': ['dog', 'dogs'], 'play': ['play']}
    """
    terms = _terms(texts)
    known = {term for found in terms for term in found}
    singular = {}  # a plural counts as its singular if that occurs too
    for term in known:
        bases = (term.removesuffix(ending) for ending in ("s", "es"))
        singular[term] = next((base for base in bases if base != term and len(base) > 2 and base in known), term)
    words_of: defaultdict[str, set[str]] = defaultdict(set)
    for term in known:
        words_of[singular[term]].add(term)
    counts = Counter(name for found in terms for name in {singular[term] for term in found})
    least, largest = max(2, len(texts) // 500), max(2, _LARGEST_SHARE * len(texts))
    frequent = sorted((c for c, n in counts.items() if least <= n <= largest), key=lambda name: (-counts[name], name))
    if not frequent:
        raise DataError(f"No word or tag recurs in the {len(texts)} texts; give labels in a column or as folders.")
    return {name: sorted(words_of[name]) for name in frequent[:most]}


def _terms(texts: Sequence[str]) -> list[set[str]]:
    """The tags of each text if most texts are lists of tags, otherwise its content words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    def is_tag_list(text: str) -> bool:
        pieces = [piece.casefold().split() for piece in _TAG_MARKS.split(text)]
        short = all(len(words) <= _LONGEST_TAG and ENGLISH_STOP_WORDS.isdisjoint(words) for words in pieces)
        return len(pieces) > 1 and short

    if sum(map(is_tag_list, texts)) > len(texts) / 2:
        pieces = ([" ".join(_RESERVED.sub(" ", tag).split()) for tag in _TAG_MARKS.split(t.casefold())] for t in texts)
        return [{tag for tag in tags if tag} for tags in pieces]
    return [{word for word in _WORD.findall(text.casefold()) if word not in ENGLISH_STOP_WORDS} for text in texts]


def label_texts(texts: Iterable[str], classes: Classes) -> LabelArray:
    """The classes of each text, 0/1 (n, classes): a text has a class if it contains one of its words or phrases."""
    patterns = {}
    for name, words in classes.items():
        longest_first = sorted(words, key=len, reverse=True)
        options = "|".join(r"\s+".join(map(re.escape, word.casefold().split())) for word in longest_first)
        patterns[name] = re.compile(rf"(?<!\w)(?:{options})(?!\w)")
    lowered = (text.casefold() for text in texts)
    found = [[name for name, pattern in patterns.items() if pattern.search(text)] for text in lowered]
    return multi_hot(found, [*classes])
