"""Codes to measure searching with, as words: uniform, clustered, or learned ones made more by noise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rmsh.codes import check_bits, pack, to_words
from rmsh.codes_file import CodesFile
from rmsh.errors import ConfigError, InputError

if TYPE_CHECKING:
    from rmsh.types import WordArray

__all__ = ["Maker", "clustered", "enlarged", "from_file", "made", "uniform"]

# Makes so many codes, uint64 (n, width), from a seed: the codes searched and the queries are two seeds of one maker.
Maker: TypeAlias = Callable[[int, int], "WordArray"]

_CENTRES = 2000
_FLIPPED = 0.05  # of the bits
_BLOCK = 1 << 18  # items made at once


def uniform(items: int, bits: int, *, seed: int = 0) -> WordArray:
    """Independent fair bits: the hardest codes, no item has near neighbours.

    Example:
        >>> uniform(3, 65).shape
        (3, 2)
    """
    words = np.random.default_rng(seed).integers(0, 1 << 64, (items, -(-bits // 64)), dtype=np.uint64)
    words[:, -1] >>= np.uint64(-bits % 64)
    return words


def clustered(items: int, bits: int, *, seed: int = 0) -> WordArray:
    """Codes around 2,000 centres, which are the same for every seed, 5 % of the bits flipped."""
    return enlarged(uniform(_CENTRES, bits, seed=_CENTRES), items, bits=bits, share=_FLIPPED, seed=seed)


def enlarged(words: WordArray, items: int, *, bits: int, share: float = 0.02, seed: int = 0) -> WordArray:
    """As many codes as asked for: given ones drawn at random, with a share of their bits flipped.

    Raises:
        InputError: there are no codes to start from.

    Example:
        >>> enlarged(uniform(2, 8), 5, bits=8, share=0.0).shape
        (5, 1)
    """
    if not len(words):
        raise InputError("No codes were given to make more of; give a codes file with at least one item.")
    rng = np.random.default_rng(seed)
    more = np.empty((items, words.shape[1]), dtype=np.uint64)
    for start in range(0, items, _BLOCK):
        rows = rng.integers(0, len(words), min(_BLOCK, items - start))
        noise = rng.random((len(rows), bits), dtype=np.float32) < share
        more[start : start + len(rows)] = words[rows] ^ to_words(pack(noise))
    return more


def made(kind: str, bits: int) -> Maker:
    """A maker of codes by name, "clustered" or "uniform".

    Raises:
        ConfigError: there is no such kind.
        CodesError: the length is out of range.

    Example:
        >>> len(made("uniform", 16)(5, 0))
        5
    """
    makers = {"clustered": clustered, "uniform": uniform}
    if kind not in makers:
        raise ConfigError(f"Codes of the kind {kind!r} were asked for; give clustered or uniform, or a codes file.")
    length = check_bits(bits)
    return lambda items, seed: makers[kind](items, length, seed=seed)


def from_file(path: Path) -> tuple[Maker, int]:
    """A maker of codes like those of a codes file, of pictures and texts where it has both; and their length."""
    file = CodesFile.load(path)
    parts = [to_words(packed) for packed in (file.image, file.text) if packed is not None]
    words = np.concatenate(parts)
    return lambda items, seed: enlarged(words, items, bits=file.bits, seed=seed), file.bits
