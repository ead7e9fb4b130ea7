"""Packed binary codes; the only module that knows their bit order.

Conventions, stated here and nowhere else:

- A code has ``bits`` bits, 1 to 512. Bit ``i`` is stored in byte ``i // 8`` at position ``i % 8``, counted from the
  least significant bit. In the little-endian 64-bit word ``i // 64`` it therefore has the value ``1 << (i % 64)``.
- Padding bits after the last bit are zero; a code with other padding is refused.
- Bit ``i`` is 1 if the relaxed value ``z_i >= 0``: sgn(0) = +1. A 1 stands for +1, a 0 for -1.
- A distance is the number of differing bits: an integer, smaller is nearer.
- Vectors beside the codes are directions: int8, scaled so that the largest value of each is 127 or -127. Zeros stand
  for no vector.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmsh.core.errors import CodesError
from rmsh.core.types import BitArray, FloatArray, IdArray, IntArray, PackedArray, WordArray

MAX_BITS = 512


def check_bits(bits: int) -> int:
    """Return a code length as an int; CodesError if it is not a whole number from 1 to 512."""
    whole = isinstance(bits, (int, np.integer)) and type(bits) is not bool
    if not whole or not 1 <= bits <= MAX_BITS:
        raise CodesError(f"A code cannot have {bits!r} bits; give a whole number from 1 to {MAX_BITS}.")
    return int(bits)


def pack(values: BitArray) -> PackedArray:
    """Pack booleans (n, bits) into bytes (n, ceil(bits / 8)).

    Example:
        >>> pack(np.array([[True, False, False, False, False, False, False, False, True]]))
        array([[1, 1]], dtype=uint8)
    """
    return np.packbits(values, axis=1, bitorder="little")


def unpack(packed: PackedArray, bits: int) -> BitArray:
    """Undo :func:`pack`."""
    return np.unpackbits(packed, axis=1, count=bits, bitorder="little").astype(np.bool_)


def to_words(packed: NDArray[np.uint8]) -> WordArray:
    """Widen packed bytes to little-endian 64-bit words (n, ceil(bytes / 8)), zero padded, as the indexes need them.

    Example:
        >>> to_words(np.array([[1, 1]], dtype=np.uint8))
        array([[257]], dtype=uint64)
    """
    n, width = packed.shape
    padded = np.zeros((n, -(-width // 8) * 8), dtype=np.uint8) if width % 8 else packed.copy()
    if width % 8:
        padded[:, :width] = packed
    words = padded.view("<u8")
    return words if sys.byteorder == "little" else words.astype(np.uint64)


def hamming(a: PackedArray, b: PackedArray) -> IntArray:
    """Distances between all pairs, int64 (len(a), len(b)): the plain definition, for small inputs and for tests.

    Example:
        >>> hamming(np.array([[3]], dtype=np.uint8), np.array([[1], [4]], dtype=np.uint8))
        array([[1, 3]])
    """
    differing: IntArray = np.bitwise_count(a[:, None, :] ^ b[None, :, :]).sum(axis=2, dtype=np.int64)
    return differing


def to_int8(vectors: FloatArray) -> NDArray[np.int8]:
    """The directions of vectors (n, dimensions), in one byte per dimension.

    Example:
        >>> to_int8(np.array([[0.5, -1.0], [0.0, 0.0]], dtype=np.float32))
        array([[  64, -127],
               [   0,    0]], dtype=int8)
    """
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=1e-12)
    quantised: NDArray[np.int8] = np.rint(vectors * (127 / largest)).astype(np.int8)
    return quantised


def from_int8(vectors: NDArray[np.int8]) -> FloatArray:
    """Stored directions (n, dimensions) as float32 vectors of unit length, like the features of most text encoders.

    Example:
        >>> from_int8(np.array([[76, -102], [0, 0]], dtype=np.int8)).round(1).tolist()
        [[0.6..., -0.8...], [0.0, 0.0]]
    """
    values = vectors.astype(np.float32)
    values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1)
    return values


@dataclass(frozen=True, eq=False)
class Codes:
    """Binary codes of n items with their IDs, and optionally with the vectors that rank them more finely.

    Construction does not check that the IDs differ; code that matches codes to items by ID calls
    :func:`check_unique_ids`. A CodesError says which shape, dtype or padding is wrong.

    Example:
        >>> codes = Codes.from_values(np.array([[0.5, -0.1, 0.0]]), ids=["a"])
        >>> codes.packed, len(codes)
        (array([[5]], dtype=uint8), 1)
    """

    packed: PackedArray  # uint8 (n, ceil(bits / 8))
    bits: int  # the length of a code, 1 to 512
    ids: IdArray  # (n,) strings
    vectors: NDArray[np.int8] | None = None  # (n, dimensions), see to_int8

    def __post_init__(self) -> None:
        bits, packed = check_bits(self.bits), np.asarray(self.packed)
        if packed.dtype != np.uint8 or packed.ndim != 2 or packed.shape[1] != -(-bits // 8):
            raise CodesError(
                f"Got packed codes of dtype {packed.dtype} and shape {packed.shape}; {bits} bits need uint8 of shape "
                f"(n, {-(-bits // 8)}). For real values use Codes.from_values."
            )
        padding = -bits % 8
        if padding and len(packed) and int(packed[:, -1].max()) >= 1 << (8 - padding):
            raise CodesError(
                f"Some codes of {bits} bits have padding bits that are not zero; pack bit i into byte i // 8, least "
                "significant bit first, and set the padding to zero."
            )
        ids = np.asarray(self.ids, dtype=np.str_) if len(self.ids) else np.empty(0, dtype=np.str_)
        if ids.shape != (len(packed),):
            raise CodesError(f"Got {ids.size} IDs for {len(packed)} codes; give one ID per code.")
        vectors = self.vectors
        if vectors is not None and (vectors.dtype != np.int8 or vectors.ndim != 2 or len(vectors) != len(packed)):
            raise CodesError(
                f"Got vectors of dtype {vectors.dtype} and shape {vectors.shape} for {len(packed)} codes; give int8 of "
                "shape (n, dimensions), from to_int8."
            )
        object.__setattr__(self, "packed", packed)
        object.__setattr__(self, "bits", bits)
        object.__setattr__(self, "ids", ids)

    @classmethod
    def from_values(cls, values: ArrayLike, ids: ArrayLike | None = None) -> Codes:
        """The codes of relaxed values (n, bits), by sign; without IDs, items are numbered "0", "1" and so on."""
        z = np.asarray(values)
        if z.ndim != 2:
            raise CodesError(f"Got values of shape {z.shape}; codes need values of shape (n, bits).")
        if not np.isfinite(z).all():
            row = int(np.flatnonzero(~np.isfinite(z).all(axis=1))[0])
            raise CodesError(f"Some values in row {row} are not finite; give finite numbers.")
        names = np.arange(len(z)).astype(np.str_) if ids is None else np.asarray(ids, dtype=np.str_)
        return cls(pack(z >= 0), z.shape[1], names)

    def __len__(self) -> int:
        return len(self.packed)

    def words(self) -> WordArray:
        """The codes as 64-bit words, for the compiled kernels."""
        return to_words(self.packed)

    def take(self, rows: NDArray[np.integer] | BitArray) -> Codes:
        """The codes of some rows."""
        return Codes(self.packed[rows], self.bits, self.ids[rows], None if self.vectors is None else self.vectors[rows])

    def prefix(self, bits: int) -> Codes:
        """The first bits of each code, for codes whose prefixes are codes themselves."""
        if not 1 <= bits <= self.bits:
            raise CodesError(f"A code of {self.bits} bits has no prefix of {bits} bits; give 1 to {self.bits}.")
        return Codes(pack(unpack(self.packed, self.bits)[:, :bits]), bits, self.ids, self.vectors)


def check_unique_ids(ids: IdArray) -> None:
    """Raise CodesError if an ID occurs more than once."""
    names = ids.tolist()
    if len(set(names)) < len(names):
        (name, count), *_ = Counter(names).most_common(1)
        raise CodesError(f"The ID {name!r} occurs {count} times; IDs must be unique.")
