"""Filters: which items may be found, said by label, id and text, with and, or, not.

A filter says what is meant and nothing about how an engine looks it up. Each engine compiles it, to a mask over rows, a
query or an expression of its own, or refuses it in one sentence. What stands in a filter is data, whatever it holds:
quotes, %, operators of a text search, HTML and newlines mean themselves.

In writing, as at the command line, a filter reads ``label=dog and not text="two dogs"``: see ``filter_parser.py``.

Reading a filter from text, such as ``label=dog and not (text="two dogs" or id=17)``.

The rules, stated here and nowhere else:

- A condition is ``label=``, ``id=`` or ``text=`` and a value; ``not`` binds tightest, then ``and``, then ``or``;
  parentheses group. The three words may be written in capitals, and ``=`` may stand between spaces.
- A value without quotes goes up to the next white space or parenthesis, and holds no quote and no backslash. Any other
  value stands in double or single quotes, where a backslash precedes quotes and backslashes that belong to it, and
  nothing else. Newlines and every other character may stand there as they are.
- ``parse(str(f)) == f`` for every filter.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from rmsh.core.errors import InputError

if TYPE_CHECKING:
    from rmsh.core.types import BitArray

BARE = re.compile(r"""[^\s()"'\\]+""")  # a value that is written without quotes


class Filter(ABC):
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

    @abstractmethod
    def __str__(self) -> str: ...

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The filter as a value for JSON."""


@dataclass(frozen=True)
class Leaf(Filter):
    """A condition that names a value; ``field`` is how it is written.

    Raises:
        InputError: the value is empty, or not a text.
    """

    value: str
    field: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.value, str) or not self.value.strip():
            raise InputError(f"A filter asks for the {self.field} {self.value!r}; give a text that is not empty.")
        try:
            self.value.encode()
        except UnicodeEncodeError:
            raise InputError(f"A filter asks for the {self.field} {self.value!r}; give valid Unicode.") from None

    def __str__(self) -> str:
        if BARE.fullmatch(self.value):
            return f"{self.field}={self.value}"
        escaped = self.value.replace("\\", r"\\").replace('"', r"\"")
        return f'{self.field}="{escaped}"'

    def to_json(self) -> dict[str, Any]:
        """The filter as a value for JSON."""
        return {self.field: self.value}


class Label(Leaf):
    """Items that have the label of this name.

    Example:
        >>> Label("traffic light").to_json()
        {'label': 'traffic light'}
    """

    field = "label"


class Id(Leaf):
    """The item of this id."""

    field = "id"


class Text(Leaf):
    """Items whose text has all of these words, in any order."""

    field = "text"


@dataclass(frozen=True)
class _Many(Filter):
    """Two or more filters joined by one word; filters joined by the same word inside it are taken apart."""

    parts: tuple[Filter, ...]
    word: ClassVar[str]

    def __post_init__(self) -> None:
        if len(self.parts) < 2:
            raise InputError(f'A filter joins {len(self.parts)} conditions by "{self.word}"; give at least two.')
        for part in self.parts:
            _check_filter(part)
        parts = [inner for part in self.parts for inner in (part.parts if isinstance(part, type(self)) else (part,))]
        object.__setattr__(self, "parts", tuple(parts))

    def __str__(self) -> str:
        return f" {self.word} ".join(_enclosed(part, binding=self) for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        """The filter as a value for JSON."""
        return {self.word: [part.to_json() for part in self.parts]}


class And(_Many):
    """Items that fulfil every part."""

    word = "and"


class Or(_Many):
    """Items that fulfil some part."""

    word = "or"


@dataclass(frozen=True)
class Not(Filter):
    """Items that do not fulfil the part."""

    part: Filter

    def __post_init__(self) -> None:
        _check_filter(self.part)

    def __str__(self) -> str:
        return f"not {_enclosed(self.part, binding=self)}"

    def to_json(self) -> dict[str, Any]:
        """The filter as a value for JSON."""
        return {"not": self.part.to_json()}


def _check_filter(part: object) -> None:
    if not isinstance(part, Filter):
        raise InputError(f"{part!r} is no filter; give Label, Id or Text, joined by &, | and ~.")


def _enclosed(part: Filter, *, binding: Filter) -> str:
    """A part in parentheses where it binds less tightly than what stands around it."""
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
    if not isinstance(condition, Leaf):
        raise InputError(f"{condition!r} is no filter; give Label, Id or Text, joined by &, | and ~.")
    return leaf(condition)


_FIELDS: dict[str, type[Leaf]] = {leaf.field: leaf for leaf in (Label, Id, Text)}
_WORD = re.compile(r"""[^\s()"'\\=]+""")
_FIELD = re.compile(rf"({_WORD.pattern})\s*=\s*")
_QUOTED = {quote: re.compile(rf"{quote}((?:[^{quote}\\]|\\[\\\"'])*){quote}") for quote in "\"'"}
_MOST_NESTED = 50

_A_CONDITION = ", ".join(f"{field}=" for field in _FIELDS) + ', "not" or "("'


def parse(text: str) -> Filter:
    """Read a filter.

    Raises:
        InputError: it cannot be read; says at which character, and what is allowed there.

    Example:
        >>> parse("label=dog and not text='two dogs'")
        And(parts=(Label(value='dog'), Not(part=Text(value='two dogs'))))
    """
    return _Parser(text).whole()


class _Parser:
    """Recursive descent: one method a rule, ``_at`` is the next character to read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._skip_space()

    def whole(self) -> Filter:
        found = self._either()
        if self._at < len(self._text):
            self._refuse('"and", "or" or the end, and a value that holds spaces stands in quotes')
        return found

    def _either(self) -> Filter:
        parts = [self._both()]
        while self._take("or"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _both(self) -> Filter:
        parts = [self._single()]
        while self._take("and"):
            parts.append(self._single())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _single(self) -> Filter:
        if self._depth > _MOST_NESTED:
            raise InputError(f"The filter is nested deeper than {_MOST_NESTED} levels; write it flatter.")
        self._depth += 1
        if self._take("not"):
            found: Filter = Not(self._single())
        elif self._text.startswith("(", self._at):
            found = self._group()
        else:
            found = self._condition()
        self._depth -= 1
        return found

    def _group(self) -> Filter:
        self._advance(self._at + 1)
        found = self._either()
        if not self._text.startswith(")", self._at):
            self._refuse('"and", "or" or ")"')
        self._advance(self._at + 1)
        return found

    def _condition(self) -> Leaf:
        named = _FIELD.match(self._text, self._at)
        if named is None or named[1] not in _FIELDS:
            self._refuse(_A_CONDITION)
        begin = self._at
        self._advance(named.end())
        value = self._value()
        try:
            return _FIELDS[named[1]](value)
        except InputError as error:
            raise InputError(f"{error} It is at character {begin + 1} of the filter.") from None

    def _value(self) -> str:
        quoted = _QUOTED.get(self._text[self._at : self._at + 1])
        found = (quoted or BARE).match(self._text, self._at)
        if found is None:
            self._refuse(
                "a quote that closes, with a backslash before quotes and backslashes only"
                if quoted
                else 'a value: a word, or anything in quotes, such as "two dogs"'
            )
        self._advance(found.end())
        return re.sub(r"\\(.)", r"\1", found[1]) if quoted else found[0]

    def _take(self, word: str) -> bool:
        """Read a word of the language, if it is next."""
        found = _WORD.match(self._text, self._at)
        if found is None or found[0].lower() != word or _FIELD.match(self._text, self._at):
            return False
        self._advance(found.end())
        return True

    def _advance(self, at: int) -> None:
        self._at = at
        self._skip_space()

    def _skip_space(self) -> None:
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1

    def _refuse(self, allowed: str) -> NoReturn:
        rest = self._text[self._at : self._at + 20]
        where = f"at character {self._at + 1}, {rest!r}" if rest else f"to its end, after character {self._at}"
        raise InputError(f"The filter cannot be read {where}; allowed there is {allowed}.")
