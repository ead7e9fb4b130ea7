"""The checksum of each stored row: CRC-32 over an unambiguous encoding of everything the row says.

SQLite checks the structure of its pages, not the values in them. A flipped bit in a text or a code therefore reads as
another text or code; the checksum makes it recognisable.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from zlib import crc32

__all__ = ["codes_checksum", "is_code_row_intact", "is_item_intact", "item_checksum"]

_encode = json.JSONEncoder().encode  # ASCII: independent of the Unicode version of the interpreter
_head = struct.Struct("<qqii").pack  # row, generation, and the length of each code, -1 for none


def item_checksum(row: int, name: str, text: str | None, picture: str | None, labels: Sequence[str]) -> int:
    """The checksum of an item.

    Args:
        row: row number.
        name: ID of the item.
        text: its text, or None.
        picture: path of its image, or None.
        labels: its labels, sorted.

    Example:
        >>> item_checksum(1, "a", None, "x", []) == item_checksum(1, "a", "x", None, [])
        False
    """
    return crc32(_encode((row, name, text, picture, labels)).encode())


def codes_checksum(row: int, generation: int, image: bytes | None, text: bytes | None) -> int:
    """The checksum of the codes of one row.

    Example:
        >>> codes_checksum(1, 1, None, b"x") == codes_checksum(1, 1, b"x", None)
        False
    """
    head = _head(row, generation, -1 if image is None else len(image), -1 if text is None else len(text))
    return crc32(b"".join((head, image or b"", text or b"")))


def is_item_intact(
    row: int, name: str, text: str | None, picture: str | None, labels: Sequence[str], checksum: int
) -> bool:
    """Whether an item matches its checksum; a damaged database may return values of any type."""
    try:
        return item_checksum(row, name, text, picture, labels) == checksum
    except TypeError:
        return False


def is_code_row_intact(row: int, generation: int, image: bytes | None, text: bytes | None, checksum: int) -> bool:
    """Whether the codes of one row match their checksum; a damaged database may return values of any type."""
    try:
        return codes_checksum(row, generation, image, text) == checksum
    except (TypeError, struct.error):
        return False
