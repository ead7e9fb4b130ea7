"""Indexes store codes and find the nearest ones; base.py states the conventions, and brute.py is the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmsh.core.registry import Registry

if TYPE_CHECKING:
    from rmsh.index.base import StoredIndex

__all__ = ["INDEXES", "create_index"]

INDEXES = Registry("index", "rmsh.indexes", {"brute": "rmsh.index.brute:Brute", "scan": "rmsh.index.scan:Scan"})


def create_index(bits: int, kind: str = "scan", **options: Any) -> StoredIndex:
    """Create an empty index for codes of a given length.

    Args:
        bits: number of bits per code, 1 to 512.
        kind: a name in ``INDEXES``.
        options: keyword arguments of that index, such as ``threads``.

    Raises:
        ConfigError: the name is unknown, or an option is out of range.
        CodesError: ``bits`` is out of range.

    Example:
        >>> len(create_index(64, "scan", threads=2))
        0
    """
    index: StoredIndex = INDEXES.load(kind)(bits, **options)
    return index
