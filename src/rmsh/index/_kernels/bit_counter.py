"""Compares many queries with a tile of 256 codes at once, by adding bit planes with XOR and AND.

A bit plane contains one bit of each code of a tile: bit r of lane l belongs to code LANES * r + l. Adding planes as a
hardware adder does counts the differing bits of all codes at the same time, with 0.7 instructions per code and word;
counting code by code takes 2.5. The counter starts at a value from which it overflows at the threshold: its last carry
is the result, and no distance is computed.

Work that all queries share is done once per tile: the codes are transposed, and sums of three bits are computed for
each of the eight patterns in which they can differ from the bits of a query. A query then picks the planes to add. The
planes of a word are

- for each *sextet* (six bits): the parity of the first three, plain and inverted; that of all six, plain and inverted;
  and the carry, the upper bit of the sum, of the first three and of the last three, for each pattern;
- the same for the last four bits, as three and one; the single bit has no carry.

Two planes x and y of the same weight are kept as the pair (x, x ^ y). Two adders that take and return such pairs need 8
instructions, two plain ones 10 (Demenkov, Kojevnikov, Kulikov and Yaroslavtsev, New upper bounds on the Boolean circuit
complexity of symmetric functions, 2010).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rmsh.core.compiled import inlined_kernel, kernel
from rmsh.index._kernels.vectors import (
    LANES,
    LINE,
    TILE,
    array_pointer,
    load,
    prefetch,
    splat,
    store,
    variable,
    word,
    word_vector,
)

PLANES = 212  # per word: 20 per sextet, 12 for the last four bits


def _slice_word(*, one_word: bool) -> Any:
    """An intrinsic that writes the PLANES of a word of TILE codes, after the ``first`` words of planes.

    The codes are ``width`` words apart, from ``at`` on; ``room`` is a buffer of TILE words.
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

    with cgutils.for_range(builder, word(8)) as loop:  # squares of bytes
        at = builder.mul(loop.index, word(LANES))
        rows = [_codes(builder, read, builder.add(at, word(8 * i * LANES)), width) for i in range(8)]
        put(_transposed(builder, rows, (32, 16, 8)), bits, at, 8)
    with cgutils.for_range(builder, word(8)) as loop:  # squares of bits: eight are a sextet and two remaining bits
        at = builder.mul(loop.index, word(LANES))
        first = builder.mul(at, word(8))
        rows = [load(builder, bits, builder.add(first, word(i * LANES))) for i in range(8)]
        rows = _transposed(builder, rows, (4, 2, 1))
        put(_sums(builder, rows[:6]), out, builder.mul(loop.index, word(20 * LANES)))
        put(rows[6:], bits, builder.mul(at, word(2)))
    for i, count in enumerate((6, 6, 4)):
        rows = [load(builder, bits, word((6 * i + j) * LANES)) for j in range(count)]
        put(_sums(builder, rows), out, word((8 + i) * 20 * LANES))


def _codes(builder: Any, pointer: Any, at: Any, width: Any) -> Any:
    """One word of LANES codes from code ``at`` on, ``width`` words apart; adjacent if it is None."""
    if width is None:
        return load(builder, pointer, at)
    row = ir.Constant(word_vector, ir.Undefined)
    for lane in range(LANES):
        offset = builder.mul(builder.add(at, word(lane)), width)
        row = builder.insert_element(row, builder.load(builder.gep(pointer, [offset])), ir.IntType(32)(lane))
    return row


def _transposed(builder: Any, rows: list[Any], sizes: tuple[int, int, int]) -> list[Any]:
    """Eight rows after swapping squares of bits of three sizes."""
    for half, size in zip((4, 2, 1), sizes, strict=True):
        for i in (i for i in range(8) if not i & half):
            rows[i], rows[i + half] = _swapped(builder, rows[i], rows[i + half], size)
    return rows


def _swapped(builder: Any, low: Any, high: Any, size: int) -> list[Any]:
    """Two rows after swapping the upper ``size`` of each 2 * size bits of one with the lower ones of the other."""
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
    """For six bits or four: the parity of three, that of all, and the carries of each triple for every pattern."""
    parities, carries = zip(*(_triple(builder, rows[i : i + 3]) for i in range(0, len(rows), 3)), strict=True)
    every = builder.xor(*parities)
    planes = [parities[0], builder.not_(parities[0]), every, builder.not_(every)]
    return [*planes, *(carry for of_triple in carries for carry in of_triple)]


def _triple(builder: Any, rows: list[Any]) -> tuple[Any, list[Any]]:
    """The parity of three bits, and their carry if a query inverts none, the first, the second, both, ..., all."""
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


@kernel
def slice_tile(words: Any, at: int, width: int, room: Any, planes: Any) -> None:
    """Compute the planes of the TILE codes whose words begin at ``at``; ``room`` is a buffer of TILE words."""
    for next_at in range(at + TILE * width, at + 2 * TILE * width, LINE):
        prefetch(words, next_at)  # load the next tile while queries are compared with this one
    if width == 1:
        slice_only_word(words, at, width, room, planes, 0)
    else:
        for w in range(width):
            slice_word(words, at + w, width, room, planes, w * PLANES * LANES)


PICKS = 43  # planes per word that a query adds: 4 per sextet, 3 for the last four bits
_LOW, BIAS = 6, 9  # bits of the counter within a word, and over all words, up to 512

Plane = Any  # an LLVM value
Pair = tuple[Plane, Plane]  # x and x ^ y, to add x and y


@kernel
def pick_planes(queries: Any) -> Any:
    """Byte offsets of the planes that each query adds, from the first plane of the word, uint16 (Q, width, PICKS)."""
    picks = np.empty((len(queries), queries.shape[1], PICKS), np.uint16)
    for q in range(len(queries)):
        for w in range(queries.shape[1]):
            left = np.int64(0)
            for h in range(8):
                left |= (np.int64(queries[q, w] >> np.uint64(8 * h + 6)) & 3) << 2 * h
            for h in range(11):
                six = np.int64(queries[q, w] >> np.uint64(8 * h)) & 63 if h < 8 else left >> 6 * (h - 8) & 63
                parity = (six ^ (six >> 1) ^ (six >> 2)) & 1
                every = (parity ^ (six >> 3) ^ (six >> 4) ^ (six >> 5)) & 1
                chosen = (parity, 2 + every, 4 + (six & 7), 12 + (six >> 3))
                for i in range(4 if h < 10 else 3):
                    picks[q, w, 4 * h + i] = (20 * h + chosen[i]) * 8 * LANES
    return picks


@inlined_kernel
def write_bias(threshold: int, biases: Any, q: int) -> None:
    """Write the initial value of the counter, one word of ones or zeros per bit: it overflows at the threshold."""
    for i in range(BIAS):
        biases[q, i] = -np.uint64((512 - threshold) >> i & 1)


class _Counter:
    """Adds planes and pairs of a given weight to the bits of a counter; ``carry`` is the final carry."""

    def __init__(self, builder: Any, bits: list[Plane]) -> None:
        self.builder, self.bits, self.carry = builder, bits, None
        self.planes: list[Plane | None] = [None] * len(bits)
        self.pairs: list[Pair | None] = [None] * len(bits)

    def add(self, weight: int, plane: Plane) -> None:
        """Add a plane; two planes form a pair."""
        other, self.planes[weight] = self.planes[weight], plane
        if other is not None:
            self.planes[weight] = None
            self.add_pair(weight, (other, self.builder.xor(other, plane)))

    def add_pair(self, weight: int, pair: Pair) -> None:
        """Add a pair; two pairs and the bit of the counter give a pair of the next weight."""
        other, self.pairs[weight] = self.pairs[weight], pair
        if weight + 1 == len(self.bits):
            self.carry = self.add_last(weight, pair)
        elif other is not None:
            self.pairs[weight] = None
            self.bits[weight], carries = self._add_two(self.bits[weight], other, pair)
            self.add_pair(weight + 1, carries)

    def add_last(self, weight: int, pair: Pair) -> Plane:
        """Add a single pair and return its carry."""
        (x, differ), before = pair, self.bits[weight]
        self.bits[weight] = self.builder.xor(before, differ)
        return self.builder.xor(x, self.builder.and_(differ, self.builder.xor(x, before)))

    def _add_two(self, before: Plane, one: Pair, two: Pair) -> tuple[Plane, Pair]:
        builder, (x, differ), (y, apart) = self.builder, one, two
        middle = builder.xor(before, differ)
        first = builder.or_(builder.xor(x, before), differ)  # middle ^ the carry of the first
        second = builder.and_(builder.xor(y, middle), builder.not_(apart))  # middle ^ the carry of the second
        return builder.xor(middle, apart), (builder.xor(middle, second), builder.xor(first, second))


def _add_word(builder: Any, bits: list[Plane], planes: Any, picks: Any) -> tuple[list[Plane], Plane]:
    """Add the picked planes of a word to the counter; returns its bits and the carry of weight 64."""
    counter = _Counter(builder, bits)

    def pick(i: int) -> Plane:
        return load(builder, planes, builder.zext(builder.load(builder.gep(picks, [word(i)])), word))

    for i in range(0, 40, 4):
        counter.add_pair(0, (pick(i), pick(i + 1)))
        counter.add(1, pick(i + 2))
        counter.add(1, pick(i + 3))
    counter.add(1, counter.add_last(0, (pick(40), pick(41))))
    counter.add(1, pick(42))
    return counter.bits, counter.carry


def _type_next_near(
    _context: Any, planes: Any, picks: Any, biases: Any, active: Any, _place: Any, _count: Any, near: Any
) -> Any:
    """The position, from ``place`` on, of the next active query with codes nearer than its threshold, or ``count``.

    The plane of these codes is written to ``near``.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointers = [array_pointer(context, builder, signature.args[i], arguments[i]) for i in (0, 1, 2, 3, 6)]
        width = builder.extract_value(context.make_array(picks)(context, builder, arguments[1]).shape, 1)
        is_one = builder.icmp_unsigned("==", width, word(1))
        found = variable(builder, arguments[5])
        with builder.if_else(is_one) as (one_word, more_words):
            with one_word:
                _look_for(builder, pointers, arguments[4:6], None, found)
            with more_words:
                _look_for(builder, pointers, arguments[4:6], width, found)
        return builder.load(found)

    return types.int64(planes, picks, biases, active, types.int64, types.int64, near), generate


def _look_for(builder: Any, pointers: list[Any], places: list[Any], width: Any, found: Any) -> None:
    """Compare queries until one has near codes, and write its position; ``width`` is None for one word."""
    of_planes, of_picks, of_bias, of_active, of_near = pointers
    of_planes = builder.bitcast(of_planes, ir.IntType(8).as_pointer())
    with cgutils.for_range(builder, places[1], start=places[0]) as loop:
        q = builder.load(builder.gep(of_active, [loop.index]))
        bias = builder.gep(of_bias, [builder.mul(q, word(BIAS))])
        bits = [splat(builder, [builder.load(builder.gep(bias, [word(i)]))], LANES) for i in range(BIAS)]
        picks = builder.gep(of_picks, [builder.mul(q, builder.mul(width or word(1), word(PICKS)))])
        if width is None:
            _, far = _add_word(builder, bits[:_LOW], of_planes, picks)
        else:
            far = _add_words(builder, bits, of_planes, picks, width)
        near = builder.not_(far)
        flags = builder.bitcast(near, ir.IntType(64 * LANES))
        with builder.if_then(builder.icmp_unsigned("!=", flags, flags.type(0)), likely=False):
            store(builder, near, of_near, word(0))
            builder.store(loop.index, found)
            loop.do_break()


def _add_words(builder: Any, bits: list[Plane], planes: Any, picks: Any, width: Any) -> Plane:
    """Add the planes of all words and count the carries of weight 64; returns where the counter overflowed."""
    cells = [variable(builder, bit) for bit in bits]
    far = variable(builder, ir.Constant(word_vector, [0] * LANES))
    with cgutils.for_range(builder, width) as loop:
        of_word = builder.gep(planes, [builder.mul(loop.index, word(PLANES * 8 * LANES))])
        picked = builder.gep(picks, [builder.mul(loop.index, word(PICKS))])
        low, carry = _add_word(builder, [builder.load(cell) for cell in cells[:_LOW]], of_word, picked)
        for cell, bit in zip(cells, low, strict=False):
            builder.store(bit, cell)
        for cell in cells[_LOW:]:
            before = builder.load(cell)
            builder.store(builder.xor(before, carry), cell)
            carry = builder.and_(before, carry)
        builder.store(builder.or_(builder.load(far), carry), far)
    return builder.load(far)


next_near: Any = intrinsic(_type_next_near)
