"""Reading a filter from text, such as ``label=dog and not (text="two dogs" or id=17)``.

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
from typing import NoReturn

from rmsh.errors import InputError
from rmsh.index.filters import BARE, And, Filter, Id, Label, Leaf, Not, Or, Text

__all__ = ["parse"]

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
