"""Filters: conditions on the label, id, text and image file of items, joined by and, or, not.

A filter states what is meant, not how it is looked up: each engine compiles it to a mask, an SQL query or an
expression, or refuses it. Values are data: quotes, %, search operators, HTML and newlines have no special meaning.

A filter is written as in ``label=dog and not (text="two dogs" or id=17)``. The rules of the language, stated only here:

- A condition is ``label=``, ``id=`` or ``text=`` and a value, or compares metadata of an image file: ``date>=2024-06``,
  ``camera~fuji``, ``keyword=beach``, ``rating>3``, ``latitude<50``, ``longitude>=-3``, with ``=``, ``~`` (contains),
  ``<``, ``<=``, ``>`` or ``>=``. A date is compared as far as it is given, so ``date<=2024-06`` includes all of June.
- ``not`` binds tightest, then ``and``, then ``or``; parentheses group. The three words may be written in capitals, and
  spaces are allowed around ``=`` and the other signs.
- A value without quotes ends at the next white space or parenthesis and contains no quotes or backslashes. Any other
  value is enclosed in double or single quotes; inside, a backslash precedes literal quotes and backslashes, and nothing
  else. All other characters, including newlines, are allowed there.
- ``parse(str(f)) == f`` for every filter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NoReturn, cast

import numpy as np

from rmsh.core.errors import InputError
from rmsh.core.types import BitArray

BARE = re.compile(r"""[^\s()"'\\]+""")  # a value written without quotes


class Filter:
    """A condition on items; combine them with ``&``, ``|`` and ``~``.

    Example:
        >>> str(Label("dog") & ~Text("two dogs") | Id("a 1"))
        'label=dog and not text="two dogs" or id="a 1"'
    """

    def __and__(self, other: Filter) -> Filter:
        return And((self, other))

    def __or__(self, other: Filter) -> Filter:
        return Or((self, other))

    def __invert__(self) -> Filter:
        return Not(self)


@dataclass(frozen=True)
class Leaf(Filter):
    """A condition ``field=value``; InputError if the value is empty or not a string."""

    value: str
    field: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.value, str) or not self.value.strip():
            raise InputError(f"Got the filter {self.field}={self.value!r}; give a string that is not empty.")
        try:
            self.value.encode()
        except UnicodeEncodeError:
            raise InputError(f"Got the filter {self.field}={self.value!r}; give valid Unicode.") from None

    def __str__(self) -> str:
        if BARE.fullmatch(self.value):
            return f"{self.field}={self.value}"
        escaped = self.value.replace("\\", r"\\").replace('"', r"\"")
        return f'{self.field}="{escaped}"'


class Label(Leaf):
    """Items with this label."""

    field = "label"


class Id(Leaf):
    """The item with this id."""

    field = "id"


class Text(Leaf):
    """Items whose text contains all of these words, in any order."""

    field = "text"


FACTS = ("date", "camera", "keyword", "rating", "latitude", "longitude")
_SIGNS = ("<=", ">=", "<", ">", "~", "=")
_WORDS, _NUMBERS = ("camera", "keyword"), ("rating", "latitude", "longitude")
_PARTIAL_DATE = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d)?)?)?)?)?")


@dataclass(frozen=True)
class Fact(Leaf):
    """A condition on metadata of image files, such as ``Fact("2024-06", "date", ">=")``; InputError if invalid."""

    name: str
    sign: str = "="

    def __post_init__(self) -> None:
        if self.name not in FACTS or self.sign not in _SIGNS:
            raise InputError(f"Got the filter {self.name}{self.sign}; give one of {', '.join(FACTS)} with {_SIGNS}.")
        object.__setattr__(self, "field", self.name)
        super().__post_init__()
        allowed = None
        if self.name in _WORDS and self.sign not in "=~":
            allowed = "= or ~"
        elif self.name == "date" and (self.sign == "~" or not _PARTIAL_DATE.fullmatch(self.value)):
            allowed = "a date such as 2024, 2024-06 or 2024-06-30, after =, <, <=, > or >="
        elif self.name in _NUMBERS and (self.sign == "~" or not re.fullmatch(r"-?\d+(\.\d+)?", self.value)):
            allowed = "a number, after =, <, <=, > or >="
        if allowed:
            raise InputError(f"Got the filter {self}; {self.name} takes {allowed}.")

    def __str__(self) -> str:
        return super().__str__().replace("=", self.sign, 1)


class Phrase(Text):
    """Items whose text contains these words next to each other, in this order; not part of the language."""


@dataclass(frozen=True)
class _Joined(Filter):
    """Two or more filters joined by one word; nested ones with the same word are flattened."""

    parts: tuple[Filter, ...]
    word: ClassVar[str]

    def __post_init__(self) -> None:
        if len(self.parts) < 2:
            raise InputError(f'Got {len(self.parts)} conditions to join by "{self.word}"; give at least two.')
        for part in self.parts:
            _check_filter(part)
        parts = [inner for part in self.parts for inner in (part.parts if isinstance(part, type(self)) else (part,))]
        object.__setattr__(self, "parts", tuple(parts))

    def __str__(self) -> str:
        return f" {self.word} ".join(_enclosed(part, binding=self) for part in self.parts)


class And(_Joined):
    """Items that satisfy all parts."""

    word = "and"


class Or(_Joined):
    """Items that satisfy at least one part."""

    word = "or"


@dataclass(frozen=True)
class Not(Filter):
    """Items that do not satisfy the part."""

    part: Filter

    def __post_init__(self) -> None:
        _check_filter(self.part)

    def __str__(self) -> str:
        return f"not {_enclosed(self.part, binding=self)}"


def _check_filter(part: object) -> None:
    if not isinstance(part, Filter):
        raise InputError(f"{part!r} is not a filter; give Label, Id or Text, joined by &, | and ~.")


def _enclosed(part: Filter, *, binding: Filter) -> str:
    """A part as text, in parentheses if it binds less tightly than the filter around it."""
    loose = isinstance(part, Or) or (isinstance(part, And) and isinstance(binding, Not))
    return f"({part})" if loose else str(part)


def to_mask(condition: Filter, leaf: Callable[[Leaf], BitArray]) -> BitArray:
    """Compile a filter to a mask over rows, given the mask of each leaf.

    Example:
        >>> to_mask(~Label("dog"), lambda leaf: np.array([True, False]))
        array([False,  True])
    """
    if isinstance(condition, Not):
        return ~to_mask(condition.part, leaf)
    if isinstance(condition, (And, Or)):
        join = np.logical_and if isinstance(condition, And) else np.logical_or
        mask: BitArray = join.reduce([to_mask(part, leaf) for part in condition.parts])
        return mask
    _check_filter(condition)
    return leaf(cast("Leaf", condition))


_FIELDS: dict[str, type[Leaf]] = {leaf.field: leaf for leaf in (Label, Id, Text)}
_WORD = re.compile(r"""[^\s()"'\\=<>~]+""")
_FIELD = re.compile(rf"({_WORD.pattern})\s*({'|'.join(_SIGNS)})\s*")
_QUOTED = {quote: re.compile(rf"{quote}((?:[^{quote}\\]|\\[\\\"'])*){quote}") for quote in "\"'"}
_MAX_DEPTH = 50


def parse(text: str) -> Filter:
    """Parse a filter; if it is invalid, InputError names the character and what is allowed there.

    Example:
        >>> parse("label=dog and not text='two dogs'")
        And(parts=(Label(value='dog'), Not(part=Text(value='two dogs'))))
    """
    parser = _Parser(text)
    found = parser.joined((Or, And))
    if parser.at < len(text):
        parser.refuse('"and", "or" or the end, and a value with spaces must be in quotes')
    return found


class _Parser:
    """Recursive descent; ``at`` is the position of the next character."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._depth = 0
        self._advance(0)

    def joined(self, joins: tuple[type[_Joined], ...]) -> Filter:
        """Filters joined by the first word; their parts are joined by the others, which bind more tightly."""
        if not joins:
            return self._single()
        parts = [self.joined(joins[1:])]
        while self._take(joins[0].word):
            parts.append(self.joined(joins[1:]))
        return parts[0] if len(parts) == 1 else joins[0](tuple(parts))

    def _single(self) -> Filter:
        if self._depth > _MAX_DEPTH:
            raise InputError(f"The filter is nested deeper than {_MAX_DEPTH} levels; give a flatter one.")
        self._depth += 1
        if self._take("not"):
            found: Filter = Not(self._single())
        elif self._text.startswith("(", self.at):
            self._advance(self.at + 1)
            found = self.joined((Or, And))
            if not self._text.startswith(")", self.at):
                self.refuse('"and", "or" or ")"')
            self._advance(self.at + 1)
        else:
            found = self._condition()
        self._depth -= 1
        return found

    def _condition(self) -> Leaf:
        begin, named = self.at, _FIELD.match(self._text, self.at)
        if named is None or not (named[1] in FACTS or (named[1] in _FIELDS and named[2] == "=")):
            self.refuse(", ".join(f"{field}=" for field in (*_FIELDS, *FACTS)) + ', "not" or "("')
        self._advance(named.end())
        quoted = _QUOTED.get(self._text[self.at : self.at + 1])
        found = (quoted or BARE).match(self._text, self.at)
        if found is None:
            self.refuse(
                "a closing quote, and a backslash only before quotes and backslashes"
                if quoted
                else 'a value: a word, or anything in quotes, such as "two dogs"'
            )
        self._advance(found.end())
        value = re.sub(r"\\(.)", r"\1", found[1]) if quoted else found[0]
        try:
            return Fact(value, named[1], named[2]) if named[1] in FACTS else _FIELDS[named[1]](value)
        except InputError as error:
            raise InputError(f"{error} See character {begin + 1} of the filter.") from None

    def _take(self, word: str) -> bool:
        """Consume a keyword if it is next."""
        found = _WORD.match(self._text, self.at)
        if found is None or found[0].lower() != word or _FIELD.match(self._text, self.at):
            return False
        self._advance(found.end())
        return True

    def _advance(self, at: int) -> None:
        """Move to a position and past the white space there."""
        self.at = at
        while self._text[self.at : self.at + 1].isspace():
            self.at += 1

    def refuse(self, allowed: str) -> NoReturn:
        rest = self._text[self.at : self.at + 20]
        where = f"at character {self.at + 1}, {rest!r}" if rest else f"at its end, after character {self.at}"
        raise InputError(f"The filter cannot be read {where}; allowed here: {allowed}.")
