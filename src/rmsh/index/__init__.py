"""Indexes: they hold codes and find the nearest; conventions in base.py, and brute.py is the oracle of all others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmsh.core.registry import Registry

if TYPE_CHECKING:
    from rmsh.index.base import Index

__all__ = ["INDEXES", "create_index", "open_index"]

INDEXES = Registry(
    "index",
    "rmsh.indexes",
    {
        "auto": "rmsh.index.auto:Auto",
        "brute": "rmsh.index.brute:Brute",
        "milvus": "rmsh.index.milvus:MilvusIndex",
        "mih": "rmsh.index.mih:MultiIndex",
        "scan": "rmsh.index.scan:Scan",
    },
)


def create_index(bits: int, kind: str = "auto", **options: Any) -> Index:
    """An empty index for codes of this length.

    Args:
        bits: the length of a code, 1 to 512.
        kind: a name in ``INDEXES``.
        options: what that index takes, such as ``threads``.

    Raises:
        ConfigError: there is no index of that name, or a value is out of range.

    Example:
        >>> len(create_index(64, "scan", threads=2))
        0
    """
    index: Index = INDEXES.load(kind)(bits, **options)
    return index


def open_index(folder: Path, **options: Any) -> Index:
    """The index that was saved in a folder, of the kind that saved it.

    Raises:
        FormatError: there is no finished index, or it is damaged, or of a newer rmsh.
        ConfigError: it is of a kind that is not installed.
    """
    from rmsh.index.folder import read_kind

    index: Index = INDEXES.load(read_kind(folder)).open(folder, **options)
    return index
