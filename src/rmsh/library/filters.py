"""A filter as rows of the database: every value is a bound parameter, never part of the SQL.

The words of a text filter become phrases of the full-text index, in quotes: operators, quotes and signs in them are
data. A word is found whatever its case and accents; signs such as % are not words, and a filter of signs alone finds
nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from rmsh.index.filters import Filter, Id, Label, Leaf, Text, to_mask

if TYPE_CHECKING:
    from rmsh.core.types import BitArray, IntArray
    from rmsh.library.views import View

_ROWS: dict[type[Leaf], str] = {  # the rows after one, the first so many, joined by commas
    Label: """
        SELECT group_concat(row) FROM (
            SELECT row FROM item_labels WHERE label = (SELECT label FROM labels WHERE name = ?) AND row > ?
            ORDER BY row LIMIT ?
        )
    """,
    Id: "SELECT group_concat(row) FROM (SELECT row FROM items WHERE id = ? AND row > ? ORDER BY row LIMIT ?)",
    Text: """
        SELECT group_concat(rowid) FROM (
            SELECT rowid FROM texts WHERE texts MATCH ? AND rowid > ? ORDER BY rowid LIMIT ?
        )
    """,
}
_BLOCK = 1 << 20


def filter_mask(condition: Filter, view: View, *, connection: sqlite3.Connection) -> BitArray:
    """Which codes of a view are of items that fulfil a filter."""
    return to_mask(condition, lambda leaf: _leaf_mask(leaf, view, connection))


def _leaf_mask(leaf: Leaf, view: View, connection: sqlite3.Connection) -> BitArray:
    mask = np.zeros(len(view), dtype=np.bool_)
    for rows in row_blocks(leaf, connection):
        mask |= view.mask_of(rows)
    return mask


def row_blocks(leaf: Leaf, connection: sqlite3.Connection) -> Iterator[IntArray]:
    """The rows of the items that fulfil one condition, int64 (n,) increasing, block by block.

    SQLite joins the numbers of a block to one text: a Python object for each row would take three times as long.
    """
    value = to_phrases(leaf.value) if isinstance(leaf, Text) else leaf.value
    last = 0
    while numbers := connection.execute(_ROWS[type(leaf)], (value, last, _BLOCK)).fetchone()[0]:
        rows = np.sort(np.fromstring(numbers, dtype=np.int64, sep=","))
        yield rows
        last = int(rows[-1])


def to_phrases(words: str) -> str:
    """Words as a query of the full-text index that asks for all of them.

    Example:
        >>> to_phrases("dog* OR cat")
        '"dog*" "OR" "cat"'
    """
    return " ".join('"{}"'.format(word.replace('"', '""')) for word in words.replace("\0", " ").split())
