"""Filters: which items may be found, said by label, id and text, with and, or, not.

A filter says what is meant and nothing about how an engine looks it up. Each engine compiles it, to a mask over rows, a
query or an expression of its own, or refuses it in one sentence. What stands in a filter is data, whatever it holds:
quotes, %, operators of a text search, HTML and newlines mean themselves.

In writing, as at the command line, a filter reads ``label=dog and not text="two dogs"``: see ``filter_parser.py``.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rmsh.errors import InputError

if TYPE_CHECKING:
    from rmsh.types import BitArray

__all__ = ["BARE", "And", "Filter", "Id", "Label", "Leaf", "Not", "Or", "Text", "to_mask"]

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
