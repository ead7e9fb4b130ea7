"""Queries: a text taken apart, what is compared with items, the sum of several queries, and texts encoded together.

A text may have several parts: ``dog + beach - people`` adds up *dog* and *beach* and subtracts *people*; a sign stands
alone, between spaces. ``"a phrase"`` must occur in the text of a hit as it is, and ``-word`` must not occur at all.
"""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
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
    from rmsh.model import Model

_MOST_TOGETHER = 4  # requests whose texts are encoded together; more do not make it faster

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


@dataclass(eq=False)
class _Request:
    """Texts to encode, and what came of it."""

    model: Model
    texts: Sequence[str]
    queries: list[Query] | Exception | None = None

    @property
    def length(self) -> int:
        return max(map(len, self.texts))


class TextQueries:
    """Encodes texts: recent ones are remembered, and those of several threads are encoded together.

    Texts that arrive while others are encoded wait and are encoded as one batch, which takes less time for each of
    them; a text that comes alone never waits. The queries of the last ``remember`` texts are kept.
    """

    def __init__(self, encode: Callable[[Model, Sequence[str]], list[Query]], *, remember: int) -> None:
        self._encode = encode
        self._remember = remember
        self._recent: OrderedDict[tuple[str, str], Query] = OrderedDict()  # by model and text, the last used at the end
        self._waiting: list[_Request] = []
        self._idle = max((os.cpu_count() or 1) // 2, 1)  # threads that may begin to encode; the others search
        self._changed = threading.Condition()  # guards all of these

    def encode(self, model: Model, texts: Sequence[str]) -> list[Query]:
        """The query of each text."""
        keys = [(model.fingerprint, text) for text in texts]
        with self._changed:
            known = {key: self._recent[key] for key in keys if key in self._recent}
        if missing := [key for key in dict.fromkeys(keys) if key not in known]:
            new = self._encode_together(_Request(model, [text for _, text in missing]))
            known |= dict(zip(missing, new, strict=True))
        with self._changed:
            for key in keys:
                self._recent[key] = known[key]
                self._recent.move_to_end(key)
            while len(self._recent) > self._remember:
                self._recent.popitem(last=False)
        return [known[key] for key in keys]

    def _encode_together(self, request: _Request) -> list[Query]:
        """Wait until another thread has encoded a request, or encode it with those that wait for the same model."""
        if batch := self._next_batch(request):
            try:
                self._encode_batch(batch)
            finally:
                with self._changed:
                    self._idle += 1
                    self._waiting += [each for each in batch[1:] if each.queries is None]  # after an interruption
                    self._changed.notify_all()
        if isinstance(request.queries, Exception):
            raise request.queries
        return request.queries or []

    def _next_batch(self, request: _Request) -> list[_Request]:
        """The request that waits longest and some of similar length, if it is this one; none if it has been encoded."""
        with self._changed:
            self._waiting.append(request)
            self._changed.wait_for(
                lambda: request.queries is not None or (self._idle > 0 and self._waiting[:1] == [request])
            )
            if request.queries is not None:
                return []
            others = [each for each in self._waiting[1:] if each.model is request.model]
            others.sort(key=lambda each: abs(each.length - request.length))  # an encoder pads all to the longest one
            batch = [request, *others[: _MOST_TOGETHER - 1]]
            self._waiting = [each for each in self._waiting if each not in batch]
            self._idle -= 1
            self._changed.notify_all()  # another one waits longest now
            return batch

    def _encode_batch(self, batch: Sequence[_Request]) -> None:
        try:
            encoded = iter(self._encode(batch[0].model, [text for request in batch for text in request.texts]))
            for request in batch:
                request.queries = [next(encoded) for _ in request.texts]
        except Exception as error:
            if len(batch) == 1:
                batch[0].queries = error
                return
            for request in batch:  # one text is to blame; the others are encoded
                self._encode_batch([request])
