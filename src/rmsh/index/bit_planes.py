"""The bit planes of a tile of codes: one bit of each code, and sums of a few bits for whatever a query may hold.

What many queries share is done once for all of them: the codes of a tile are transposed, and the sum of three bits is
made for each of the eight patterns in which they can differ from those of a query. ``bit_counter.py`` adds what a query
picks. The planes of a word are

- of each *sextet*, six bits: the parity of the first three, plain and inverted; that of all six, plain and inverted;
  and the carry, the upper bit of a sum, of the first three and of the last three, for each pattern;
- the same of the last four bits, three and one, of which the one has no carry.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rmsh.compiled import compile_kernel
from rmsh.index.vectors import LANES, STEP, array_pointer, load, prefetch, store, word, word_vector

__all__ = ["PLANES", "TILE", "slice_tile"]

TILE = 64 * LANES  # codes: bit r of lane l of a plane is of code LANES * r + l
PLANES = 212  # of a word: 20 a sextet, 12 for the last four bits


def _slice_word(*, one_word: bool) -> Any:
    """An intrinsic that writes the PLANES of a word of TILE codes, behind ``first`` words of planes.

    The codes lie ``width`` words apart from ``at`` on; ``room`` is for TILE words.
    """

    def of_type(_context: Any, words: Any, _at: Any, _width: Any, room: Any, planes: Any, _first: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            read, bits, out = (array_pointer(context, builder, signature.args[i], arguments[i]) for i in (0, 3, 4))
            read, out = builder.gep(read, [arguments[1]]), builder.gep(out, [arguments[5]])
            _slice(builder, read, None if one_word else arguments[2], bits, out)
            return context.get_dummy_value()

        return types.void(words, types.int64, types.int64, room, planes, types.int64), generate

    return intrinsic(of_type)


def _slice(builder: Any, read: Any, width: Any, bits: Any, out: Any) -> None:
    def put(rows: list[Any], pointer: Any, offset: Any, apart: int = 1) -> None:
        for i, row in enumerate(rows):
            store(builder, row, pointer, builder.add(offset, word(i * apart * LANES)))

    with _eight(builder) as (at, _):  # squares of bytes
        rows = [_codes(builder, read, builder.add(at, word(8 * i * LANES)), width) for i in range(8)]
        put(_transposed(builder, rows, (32, 16, 8)), bits, at, 8)
    with _eight(builder) as (at, index):  # squares of bits: eight bits are a sextet, and two that are left
        first = builder.mul(at, word(8))
        rows = [load(builder, bits, builder.add(first, word(i * LANES))) for i in range(8)]
        rows = _transposed(builder, rows, (4, 2, 1))
        put(_sums(builder, rows[:6]), out, builder.mul(index, word(20 * LANES)))
        put(rows[6:], bits, builder.mul(at, word(2)))
    for i, count in enumerate((6, 6, 4)):
        rows = [load(builder, bits, word((6 * i + j) * LANES)) for j in range(count)]
        put(_sums(builder, rows), out, word((8 + i) * 20 * LANES))


def _codes(builder: Any, pointer: Any, at: Any, width: Any) -> Any:
    """The word of LANES codes that begin with code ``at``, ``width`` words apart; side by side where it is None."""
    if width is None:
        return load(builder, pointer, at)
    row = ir.Constant(word_vector, ir.Undefined)
    for lane in range(LANES):
        offset = builder.mul(builder.add(at, word(lane)), width)
        row = builder.insert_element(row, builder.load(builder.gep(pointer, [offset])), ir.IntType(32)(lane))
    return row


@contextmanager
def _eight(builder: Any) -> Iterator[tuple[Any, Any]]:
    """A loop of eight rounds: the offset of the row that has the number of the round, and the number."""
    with cgutils.for_range(builder, word(8)) as loop:
        yield builder.mul(loop.index, word(LANES)), loop.index


def _transposed(builder: Any, rows: list[Any], sizes: tuple[int, int, int]) -> list[Any]:
    """Eight rows after swapping squares of bits of three sizes."""
    for half, size in zip((4, 2, 1), sizes, strict=True):
        for i in (i for i in range(8) if not i & half):
            rows[i], rows[i + half] = _swapped(builder, rows[i], rows[i + half], size)
    return rows


def _swapped(builder: Any, low: Any, high: Any, size: int) -> list[Any]:
    """Two rows after exchanging the upper ``size`` bits of each 2 * size of one with the lower ones of the other."""
    if size >= 8:  # whole bytes
        count = 64 * LANES // size
        rows = [builder.bitcast(row, ir.VectorType(ir.IntType(size), count)) for row in (low, high)]
        taken = ([j for i in range(0, count, 2) for j in (i + odd, i + odd + count)] for odd in (0, 1))
        indices = [ir.Constant(ir.VectorType(ir.IntType(32), count), lanes) for lanes in taken]
        return [builder.bitcast(builder.shuffle_vector(*rows, lanes), word_vector) for lanes in indices]
    shift = ir.Constant(word_vector, [size] * LANES)
    mask = ir.Constant(word_vector, [(2**64 - 1) // (2**size + 1)] * LANES)
    differing = builder.and_(builder.xor(builder.lshr(low, shift), high), mask)
    return [builder.xor(low, builder.shl(differing, shift)), builder.xor(high, differing)]


def _sums(builder: Any, rows: list[Any]) -> list[Any]:
    """Of six bits, or of four: a parity, that of all, and the carries of each triple, for every pattern of a query."""
    parities, carries = zip(*(_triple(builder, rows[i : i + 3]) for i in range(0, len(rows), 3)), strict=True)
    every = builder.xor(*parities)
    planes = [parities[0], builder.not_(parities[0]), every, builder.not_(every)]
    return [*planes, *(carry for of_triple in carries for carry in of_triple)]


def _triple(builder: Any, rows: list[Any]) -> tuple[Any, list[Any]]:
    """The parity of three bits, and their carry where a query inverts none, the first, the second, both, ..., all."""
    if len(rows) == 1:
        return rows[0], []
    x, y, z = rows
    differ, other = builder.xor(x, y), builder.xor(x, z)
    masks = [builder.and_(differ, other), builder.or_(differ, other), builder.and_(builder.not_(differ), other)]
    none, first, second = (builder.xor(x, mask) for mask in masks)
    third = builder.xor(x, builder.and_(differ, builder.not_(other)))
    inverted = [builder.not_(plane) for plane in (third, second, first, none)]
    return builder.xor(differ, z), [none, first, second, inverted[0], third, *inverted[1:]]


slice_only_word, slice_word = _slice_word(one_word=True), _slice_word(one_word=False)


def _slice_tile(words: Any, at: int, width: int, room: Any, planes: Any) -> None:
    """Make the planes of the TILE codes whose words begin at ``at``; ``room`` is for TILE words."""
    for next_at in range(at + TILE * width, at + 2 * TILE * width, STEP):
        prefetch(words, next_at)  # the next tile comes while queries are compared with this one
    if width == 1:
        slice_only_word(words, at, width, room, planes, 0)
    else:
        for w in range(width):
            slice_word(words, at + w, width, room, planes, w * PLANES * LANES)


slice_tile = compile_kernel(_slice_tile, nogil=True)
