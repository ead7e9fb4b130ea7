"""JSON files too large to load: the elements of their arrays one at a time, in the memory of one element."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from rmsh.errors import DataError

__all__ = ["stream_members"]

CHUNK = 1 << 20  # characters read at a time
_BLANKS = re.compile(r"[ \t\r\n]*")


def stream_members(path: Path) -> Iterator[tuple[str, Any]]:
    """The members of a JSON object in their order; an array comes element by element, each under the array's key.

    Raises:
        DataError: the file is not one JSON object, with the character where it stops being one.
    """
    with path.open(encoding="utf-8-sig") as file:
        reader = _Reader(file)
        try:
            yield from _members(reader)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            where = reader.passed + reader.at
            raise DataError(f"{path} is not readable as JSON near character {where} ({error}); get it anew.") from error


def _members(reader: _Reader) -> Iterator[tuple[str, Any]]:
    reader.take("{")
    closed = reader.take_if("}")
    while not closed:
        key = reader.value()
        reader.take(":")
        if reader.take_if("["):
            for element in _elements(reader):
                yield key, element
        else:
            yield key, reader.value()
        closed = reader.take_if("}")
        if not closed:
            reader.take(",")


def _elements(reader: _Reader) -> Iterator[Any]:
    closed = reader.take_if("]")
    while not closed:
        yield reader.value()
        closed = reader.take_if("]")
        if not closed:
            reader.take(",")


class _Reader:
    """A window on a file that moves on as values are taken from it."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file
        self.window = ""
        self.at = 0
        self.passed = 0  # characters before the window
        self.scan = json.JSONDecoder().raw_decode

    def take(self, wanted: str) -> None:
        if not self.take_if(wanted):
            raise json.JSONDecodeError(f"{wanted!r} is expected", self.window, self.at)

    def take_if(self, wanted: str) -> bool:
        found = self._next() == wanted
        self.at += found
        return found

    def value(self) -> Any:
        self._next()
        while True:
            try:
                value, end = self.scan(self.window, self.at)
            except json.JSONDecodeError:
                if not self._read_on():
                    raise
                continue
            if len(self.window) - end < 3 and self._read_on():  # a number may go on: 1 in 1e-5 looks like one
                continue
            self.at = end
            return value

    def _next(self) -> str:
        """The next character that is no blank; nothing at the end."""
        while True:
            self.at = _BLANKS.match(self.window, self.at).end()  # type: ignore[union-attr]  # it matches nothing, too
            if self.at < len(self.window) or not self._read_on():
                return self.window[self.at : self.at + 1]

    def _read_on(self) -> bool:
        # as much as is held already, so that an element of any size is read again a few times only
        more = self.file.read(max(CHUNK, len(self.window) - self.at))
        self.passed += self.at if more else 0
        self.window, self.at = (self.window[self.at :] + more, 0) if more else (self.window, self.at)
        return bool(more)
