"""Queries: a text taken apart, what is compared with items, and the sum of several queries.

A text may have several parts: ``dog + beach - people`` adds up *dog* and *beach* and subtracts *people*; a sign stands
alone, between spaces. ``"a phrase"`` must occur in the text of a hit as it is, and ``-word`` must not occur at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import and_
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rmsh.codes import Codes, unpack
from rmsh.core.errors import CodesError
from rmsh.features.bag_of_words import words_of
from rmsh.index.filters import Label, Phrase, Text
from rmsh.search.scoring import MINUS

if TYPE_CHECKING:
    from rmsh.core.types import FloatArray, Modality
    from rmsh.index.filters import Filter

_SYNTAX = re.compile(r'(?:^|(?<=\s))(?:-(?P<without>[^\s"-]\S*)|(?P<sign>[-+])(?=\s|$))|"(?P<phrase>[^"]*)"')


class Words(NamedTuple):
    """A text taken apart: texts to add up and to subtract, exact phrases, and words that must not occur."""

    plus: tuple[str, ...] = ()
    minus: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @classmethod
    def parse(cls, query: str) -> Words:
        """Take a text apart.

        Example:
            >>> Words.parse('dog "on the beach" -cat + t-shirt - people')
            Words(plus=('dog on the beach', 't-shirt'), minus=('people',), phrases=('on the beach',), without=('cat',))
        """
        query = " ".join(query.split())  # from here on, a newline is before each sign
        marks = list(_SYNTAX.finditer(query))
        phrases = tuple(mark["phrase"] for mark in marks if mark["phrase"] and words_of(mark["phrase"]))
        without = tuple(mark["without"] for mark in marks if mark["without"] and words_of(mark["without"]))
        plain = _SYNTAX.sub(lambda mark: f"\n{mark['sign']}" if mark["sign"] else mark["phrase"] or "", query)
        parts = [(part[0], " ".join(part[1:].split())) for part in f"+{plain}".split("\n")]
        plus, minus = (tuple(text for sign, text in parts if sign == wanted and text) for wanted in "+-")
        return cls(plus, minus, phrases, without)

    @property
    def text(self) -> str:
        """The texts that are added up, as one."""
        return " ".join(self.plus)

    def condition(self) -> Filter | None:
        """The filter that phrases and excluded words stand for."""
        parts: list[Filter] = [Phrase(phrase) for phrase in self.phrases]
        parts += [~(Text(word) | Label(word)) for word in self.without]
        return reduce(and_, parts) if parts else None


_NO_WORDS = Words()


@dataclass(frozen=True, eq=False)
class Query:
    """A code to search with, and what a finer score needs; if only the code is known, hits are ranked by distance."""

    codes: Codes  # the code of one query
    model: str  # fingerprint of the model that made it
    origins: tuple[str, ...] = ()  # IDs of the items it was made of, which are excluded from the hits
    modality: Modality | None = None  # None if only the code is known
    values: FloatArray | None = None  # relaxed code (bits,) of length 1, or a weighted sum of such
    vector: FloatArray | None = None  # (dimensions,), as stored for items of this modality; None for a sum
    joint: FloatArray | None = None  # vector of length 1 in the joint space, or a weighted sum of such
    weights: tuple[float, ...] = (1.0,)  # of the parts of a sum
    words: Words = _NO_WORDS  # of a text

    def __post_init__(self) -> None:
        if len(self.codes) != 1:
            raise CodesError(f"A query has one code; got {len(self.codes)}.")


def signs(codes: Codes) -> FloatArray:
    """The bits of one code as relaxed values of length 1.

    Example:
        >>> signs(Codes.from_values([[3.0, -2.0, 1.0, -1.0]]))
        array([ 0.5, -0.5,  0.5, -0.5], dtype=float32)
    """
    return np.where(unpack(codes.packed, codes.bits)[0], 1, -1).astype(np.float32) / np.float32(np.sqrt(codes.bits))


def compose(plus: Sequence[Query], minus: Sequence[Query] = ()) -> Query:
    """The sum of some queries, less 0.7 times others; its code is the signs of the same sum of relaxed values.

    A single query is returned as it is. If a part has no vector, the sum has none and is compared with bits. Queries
    of different models raise CodesError.
    """
    weighted = [(query, 1.0) for query in plus] + [(query, -MINUS) for query in minus]
    first, *others = (query for query, _ in weighted)
    if not others:
        return first
    if other := next((query.model for query in others if query.model != first.model), None):
        raise CodesError(f"Parts of a query belong to the models {first.model} and {other}; encode all with one model.")
    values = sum(w * (signs(query.codes) if query.values is None else query.values) for query, w in weighted)
    joints = [w * query.joint for query, w in weighted if query.joint is not None]
    words = [query.words for query in plus] + [Words(query.words.minus, query.words.plus) for query in minus]
    return Query(
        Codes.from_values(np.asarray(values)[None]),
        first.model,
        origins=tuple(chain.from_iterable(query.origins for query, _ in weighted)),
        modality="image" if all(query.modality == "image" for query, _ in weighted) else "text",
        values=np.asarray(values),
        joint=np.sum(joints, axis=0) if len(joints) == len(weighted) else None,
        weights=tuple(w * each for query, w in weighted for each in query.weights),
        words=Words(*(tuple(chain.from_iterable(column)) for column in zip(*words, strict=True))),
    )
