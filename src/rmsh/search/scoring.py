"""The score that orders the candidates of a search: similarities of image and caption, and words found exactly.

A similarity is the cosine of two vectors, or, where an item has no vector, the agreement of the real-valued query with
the bits of its code. Each kind is standardised by constants, so a score has the same meaning in every library: 0 for an
unrelated item, about 1 per standard deviation of unrelated items. An item without image or caption is judged by the
other. The weights were chosen on the ``dev`` queries of lab/first_page.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rmsh.codes import unpack
from rmsh.features.bag_of_words import words_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.core.types import BitArray, FloatArray, PackedArray, ScoreArray
    from rmsh.library.items import Item

STOP_WORDS = frozenset(
    ["a", "an", "and", "at", "by", "for", "from", "his", "in", "is", "of", "on", "the", "to", "with"]
)


class Scale(NamedTuple):
    """Mean and standard deviation of the similarities of unrelated items."""

    mean: float
    deviation: float


TEXT_TO_TEXT, TEXT_TO_IMAGE, IMAGE_TO_IMAGE = Scale(0.08, 0.1), Scale(0.28, 0.12), Scale(0.23, 0.14)
BITS = Scale(0.1, 0.2)  # agreement of values and bits
# Scores below are typical of queries that nothing answers: with image and caption, and with one of them alone, among
# 3,000 items. Measured by `make lab ARGS="cut-off"`; the second was chosen there on dev queries over images alone. The
# best of more unrelated items is nearer: like the largest of n normal deviates, it grows with the root of 2 log n.
WEAK, WEAK_ALONE, WEAK_AMONG, WEAK_GROWTH = 5.5, 6.4, 3000, 1.1
MINUS = 0.7  # weight of what is subtracted from a query
OWN, OTHER = 1.0, 0.8  # weights of similarities: same modality as the query, the other one
WORDS, LABELS = 1.0, 3.0  # weights of the share of words found in an item with a caption, and in labels and name alone


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """Remove English plural endings, so that "dogs" matches the label "dog".

    Example:
        >>> [stem(word) for word in ("dogs", "cherries", "buses", "bus", "glass")]
        ['dog', 'cherry', 'bus', 'bus', 'glass']
    """
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


@lru_cache(maxsize=1 << 12)
def forms(word: str) -> tuple[str, ...]:
    """All words with this stem.

    Example:
        >>> forms("dog"), forms("cherry")
        (('dog', 'dogs'), ('cherry', 'cherrys', 'cherries'))
    """
    return tuple(form for form in (word, f"{word}s", f"{word}es", f"{word[:-1]}ies") if stem(form) == word)


@lru_cache(maxsize=1 << 8)
def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words_of(text))


def labels_in_text(labels: Collection[str], text: str) -> set[str]:
    """The labels whose words all occur in a text.

    Example:
        >>> sorted(labels_in_text(["dog", "traffic light", "cat"], "Two dogs at traffic lights"))
        ['dog', 'traffic light']
    """
    known = _stems(text)
    return {label for label in labels if (words := _stems(label)) and words <= known}


def keywords(text: str) -> list[str]:
    """The distinct words of a query that mean something, without endings.

    Example:
        >>> keywords("Two dogs on the beach, two!")
        ['two', 'dog', 'beach']
    """
    return list(dict.fromkeys(stem(word) for word in words_of(text) if word not in STOP_WORDS))


def label_names(text: str) -> list[str]:
    """Names of up to three words that a label in this text may have, as written and without endings.

    Example:
        >>> label_names("Red buses")
        ['red', 'buses', 'bus', 'red buses', 'red bus']
    """
    words = words_of(text)
    names = []
    for length in (1, 2, 3):
        for first in range(len(words) - length + 1):
            part = words[first : first + length]
            names += [" ".join(part), " ".join([*part[:-1], stem(part[-1])])]
    return list(dict.fromkeys(names))


def words_of_item(item: Item) -> set[str]:
    """The words in the text, the labels and the file name of an item.

    Example:
        >>> from rmsh.library.items import Item
        >>> sorted(words_of_item(Item("x", text="two dogs", picture="a/7.jpg", labels=("pet",))))
        ['7', 'dogs', 'pet', 'two']
    """
    name = (item.picture or "").rpartition("/")[2].rpartition(".")[0]
    return {*words_of(" ".join((item.text or "", *item.labels, name)))}


def words_found(words: Sequence[str], among: AbstractSet[str]) -> tuple[str, ...]:
    """Those words, without endings, of which a form is among others.

    Example:
        >>> words_found(["dog", "cat"], {"two", "dogs"})
        ('dog',)
    """
    return tuple(word for word in words if not among.isdisjoint(forms(word)))


def cosines(query: FloatArray, vectors: NDArray[np.int8] | FloatArray) -> ScoreArray:
    """Cosine of a query (dimensions,) and vectors (n, dimensions), NaN for a vector of zeros.

    Example:
        >>> cosines(np.array([3, 4], np.float32), np.array([[1, 0], [0, 0]], np.int8)).round(3)
        array([0.6, nan])
    """
    if not vectors.shape[1]:
        return np.full(len(vectors), np.nan)
    values = vectors.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", values, values)) * max(float(np.linalg.norm(query)), 1e-12)
    found: ScoreArray = np.full(len(values), np.nan)
    np.divide(values @ query, lengths, out=found, where=lengths > 0)
    return found


def agreement(values: FloatArray, packed: PackedArray) -> ScoreArray:
    """Agreement of relaxed values (bits,) with codes (n, bytes), from -1 to 1: the asymmetric distance, turned round.

    Example:
        >>> agreement(np.array([3, -1], np.float32), np.array([[0b01], [0b11]], np.uint8))
        array([1. , 0.5])
    """
    signs = np.where(unpack(packed, len(values)), 1.0, -1.0)
    return signs @ values.astype(np.float64) / max(float(np.abs(values).sum()), 1e-12)


def standardise(similarities: ScoreArray, scale: Scale) -> ScoreArray:
    """Deviations from unrelated items.

    Example:
        >>> standardise(np.array([0.3, np.nan]), Scale(0.1, 0.2))
        array([ 1., nan])
    """
    return (similarities - scale.mean) / scale.deviation


def summed(scale: Scale, weights: Sequence[float], length: float) -> Scale:
    """The scale of the cosines with a weighted sum of unit vectors that has this length, if its parts are unrelated.

    Example:
        >>> summed(Scale(0.2, 0.1), (1.0, -0.5), 1.0)
        Scale(mean=0.1, deviation=0.111...)
    """
    spread = float(np.linalg.norm(weights))
    return Scale(scale.mean * sum(weights) / max(length, 1e-12), scale.deviation * spread / max(length, 1e-12))


def combine(own: ScoreArray, other: ScoreArray) -> ScoreArray:
    """Scores without words, from standardised similarities, NaN where there is none.

    Example:
        >>> combine(np.array([2.0, 2.0, np.nan]), np.array([1.0, np.nan, np.nan]))
        array([2.8, 3.6, 0. ])
    """
    own, other = np.where(np.isnan(own), other, own), np.where(np.isnan(other), own, other)
    return np.nan_to_num(OWN * own + OTHER * other)


def weak_below(items: int, *, alone: bool) -> float:
    """The score below which a match is weak in a library of this size, with image and caption or one of them alone.

    Example:
        >>> [round(weak_below(items, alone=True), 2) for items in (0, 300, 3000, 100_000, 10_000_000)]
        [3.29, 5.71, 6.4, 7.28, 8.24]
    """
    few, many = (math.sqrt(2 * math.log(max(number, 2))) for number in (WEAK_AMONG, items))
    return (WEAK_ALONE if alone else WEAK) + WEAK_GROWTH * (many - few)


def is_weak(scores: ScoreArray, own: ScoreArray, other: ScoreArray, *, items: int) -> BitArray:
    """Which scores of words, with the similarities they consist of, are reached by unrelated items of a library.

    Example:
        >>> own, other = np.array([3.0, 3.3, 2.0]), np.array([3.0, np.nan, 2.0])
        >>> is_weak(np.array([6.0, 6.0, 5.0]), own, other, items=3000)
        array([False,  True,  True])
    """
    together, alone = (weak_below(items, alone=each) for each in (False, True))
    return scores < np.where(np.isnan(own) | np.isnan(other), alone, together)
