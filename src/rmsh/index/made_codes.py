"""Codes to measure searching with: uniform, clustered, or learned ones made more by noise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rmsh.codes import Codes, check_bits, pack
from rmsh.codes_file import CodesFile
from rmsh.errors import ConfigError, InputError

if TYPE_CHECKING:
    from rmsh.types import PackedArray

__all__ = ["clustered", "enlarged", "from_file", "made", "uniform"]

# Makes so many codes, from a seed: the codes searched and the queries are two seeds of one maker.
Maker: TypeAlias = Callable[[int, int], Codes]

_CENTRES = 2000
_FLIPPED = 0.05  # of the bits
_BLOCK = 1 << 18  # items made at once


def _named(packed: PackedArray, bits: int) -> Codes:
    return Codes(packed, bits, np.arange(len(packed)).astype(np.str_))


def uniform(items: int, bits: int, *, seed: int = 0) -> Codes:
    """Independent fair bits: the hardest codes, no item has near neighbours.

    Example:
        >>> uniform(3, 13).packed.shape
        (3, 2)
    """
    packed = np.random.default_rng(seed).integers(0, 256, (items, -(-bits // 8)), dtype=np.uint8)
    if bits % 8:
        packed[:, -1] &= (1 << bits % 8) - 1
    return _named(packed, bits)


def clustered(items: int, bits: int, *, seed: int = 0) -> Codes:
    """Codes around 2,000 centres, which are the same for every seed, 5 % of the bits flipped."""
    return enlarged(uniform(_CENTRES, bits, seed=_CENTRES), items, share=_FLIPPED, seed=seed)


def enlarged(codes: Codes, items: int, *, share: float = 0.02, seed: int = 0) -> Codes:
    """As many codes as asked for: given ones drawn at random, with a share of their bits flipped.

    Raises:
        InputError: there are no codes to start from.

    Example:
        >>> enlarged(uniform(2, 8), 5, share=0.0).packed.shape
        (5, 1)
    """
    if not len(codes):
        raise InputError("No codes were given to make more of; give a codes file with at least one item.")
    rng = np.random.default_rng(seed)
    packed = np.empty((items, codes.packed.shape[1]), dtype=np.uint8)
    for start in range(0, items, _BLOCK):
        rows = rng.integers(0, len(codes), min(_BLOCK, items - start))
        noise = rng.random((len(rows), codes.bits), dtype=np.float32) < share
        packed[start : start + len(rows)] = codes.packed[rows] ^ pack(noise)
    return _named(packed, codes.bits)


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


def from_file(path: Path) -> Maker:
    """A maker of codes like those of a codes file, texts where it has them, else pictures."""
    file = CodesFile.load(path)
    codes = file.codes("text" if file.text is not None else "image")
    return lambda items, seed: enlarged(codes, items, seed=seed)
