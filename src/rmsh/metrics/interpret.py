"""What an array from another program means: codes may be packed, 0/1, ±1 or real; labels multi-hot or class numbers.

Each reading is told in words, so that the user sees what was understood; what can be read in two ways is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rmsh.codes import MAX_BITS
from rmsh.data.columns import checked_labels
from rmsh.data.labels import unpack_labels
from rmsh.errors import CodesError, DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.types import BitArray, LabelArray

__all__ = ["class_count", "interpret_codes", "interpret_labels"]

_MOST_CLASSES = 1 << 16  # a larger class number is an id, not a class


def interpret_codes(values: Any, bits: int | None = None, *, source: str = "codes") -> tuple[BitArray, str]:
    """Codes as booleans (n, bits), and how the values were read.

    Args:
        values: (n, bits) of 0/1, of ±1 or of real numbers; or packed uint8 (n, ceil(bits / 8)).
        bits: the length of a code; needed where bytes are all 0 or 1, and for packed codes that do not fill a byte.
        source: what an error message calls the values.

    Raises:
        CodesError: the values are none of these, or could be two of them.

    Example:
        >>> interpret_codes(np.array([[0.3, -2.0]]))
        (array([[ True, False]]), 'real numbers, of which the sign was taken')
    """
    array = _dense(values)
    if array.ndim != 2 or not array.size or array.dtype.kind not in "fiub":
        raise CodesError(
            f"{source}: {array.dtype} of shape {array.shape} was found; codes are numbers of shape (items, bits), or "
            "packed uint8 of shape (items, bytes)."
        )
    if array.dtype == np.uint8 and _may_be_packed(array, bits):
        return _unpacked(array, bits, source)
    if array.shape[1] != (bits or array.shape[1]) or array.shape[1] > MAX_BITS:
        raise CodesError(
            f"{source}: there are {array.shape[1]} columns, one a bit; {bits or f'at most {MAX_BITS}'} were expected. "
            "Check the number of bits, and that each row is an item."
        )
    return _signs(array, source)


def _may_be_packed(array: NDArray[np.uint8], bits: int | None) -> bool:
    """Whether bytes are more than one bit each, or could be: all 0 or 1, and not as wide as the code is said to be."""
    width = array.shape[1]
    return bool(array.max() > 1) or (bits != width and 8 * width <= MAX_BITS)


def _unpacked(array: NDArray[np.uint8], bits: int | None, source: str) -> tuple[BitArray, str]:
    width = array.shape[1]
    if bits is None and array.max() <= 1:
        raise CodesError(
            f"{source}: bytes of 0 and 1 in {width} columns are {width} bits, or {8 * width} packed bits; say which by "
            "the number of bits (--bits)."
        )
    length = bits or 8 * width
    if -(-length // 8) != width:
        raise CodesError(
            f"{source}: {width} columns of bytes hold up to {8 * width} packed bits, and {length} were expected; give "
            "the number of bits that were packed."
        )
    for order in ("little", "big"):  # distances are the same in both; the padding tells which it was
        unpacked = np.unpackbits(array, axis=1, bitorder=order).astype(np.bool_)
        if not unpacked[:, length:].any():
            return unpacked[:, :length], f"{length} bits packed into bytes"
    raise CodesError(f"{source}: bytes have bits set behind the last of {length}; give the number of bits packed.")


def _signs(array: NDArray[Any], source: str) -> tuple[BitArray, str]:
    if ((array == 0) | (array == 1)).all():
        return array == 1, "0 and 1"
    if np.isin(array, (-1, 0, 1)).all():
        return array >= 0, "-1 and +1" + ("; 0 counts as +1" if (array == 0).any() else "")
    if array.dtype.kind != "f":
        raise CodesError(
            f"{source}: whole numbers from {array.min()} to {array.max()} were found; give 0/1, -1/+1, real numbers, "
            "or packed uint8."
        )
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise CodesError(f"{source}: the values of row {row} are not finite; a sign is taken of numbers only.")
    if array.min() >= 0:
        raise CodesError(
            f"{source}: real numbers from {array.min():.3g} to {array.max():.3g} were found, none of them negative, so "
            "all signs would be the same; subtract the threshold first (0.5 for probabilities)."
        )
    return array >= 0, "real numbers, of which the sign was taken"


def class_count(values: Any) -> int | None:
    """How many classes an array of class numbers needs, or None where the array is not a list of class numbers.

    Example:
        >>> class_count(np.array([0, 3, 1])), class_count(np.array([[0, 1], [1, 0]]))
        (4, None)
    """
    array = _dense(values)
    if array.dtype.kind not in "fiu" or array.ndim == 0 or not array.size or array.size != len(array):
        return None
    if array.ndim > 1 and array.max() <= 1:  # one class, which an item has or has not
        return None
    return int(array.max()) + 1


def interpret_labels(
    values: Any, classes: int | None = None, *, at_least: int = 0, source: str = "labels"
) -> tuple[LabelArray, str]:
    """Labels as 0/1 (n, classes), and how the values were read.

    Args:
        values: 0/1 (n, classes), dense or sparse; the same packed by ``np.packbits`` along axis 1; or class numbers
            (n,).
        classes: how many classes there are, where it is known; needed for packed labels.
        at_least: how many columns class numbers become, or more where they need it.
        source: what an error message calls the values.

    Raises:
        DataError: the values are none of these.

    Example:
        >>> interpret_labels(np.array([1, 0]))
        (array([[0, 1], [1, 0]], dtype=uint8), 'class numbers')
    """
    array = _dense(values)
    if classes is not None and array.ndim == 2 and array.dtype == np.uint8 and array.shape[1] != classes:
        return unpack_labels(array, classes), f"{classes} classes packed into bytes"
    needed = class_count(array)
    if needed is not None:
        return _one_hot(array.ravel(), max(needed, classes or 0, at_least), source), "class numbers"
    return checked_labels(array, len(array) if array.ndim else 0, source), "0 and 1"


def _one_hot(numbers: NDArray[Any], classes: int, source: str) -> LabelArray:
    whole = numbers.astype(np.int64)
    if (whole != numbers).any() or whole.min() < 0 or classes > _MOST_CLASSES:
        raise DataError(
            f"{source}: a list of numbers from {numbers.min()} to {numbers.max()} was found; class numbers are whole, "
            f"from 0 to {_MOST_CLASSES - 1}. Give those, or 0/1 with one column a class."
        )
    labels = np.zeros((len(whole), classes), dtype=np.uint8)
    labels[np.arange(len(whole)), whole] = 1
    return labels


def _dense(values: Any) -> NDArray[Any]:
    return values.toarray() if sparse.issparse(values) else np.asarray(values)
