"""Vector operations written directly in LLVM, and the comparison of a tile of codes with one query.

numba has no vector types, and it depends on LLVM how its loops are vectorised. Where that is too slow, kernels use the
LLVM instruction builder. Nothing here depends on the processor: LLVM maps 256 bits to AVX2, half an AVX-512 register or
two NEON registers.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 4  # words per vector
TILE = 64 * LANES  # codes that are compared before their hits are collected
LINE = 8  # words per cache line

_STEP = 16  # codes compared at once: enough independent instructions, and few enough registers
_WIDEST = 8  # words per code

word, _int32 = ir.IntType(64), ir.IntType(32)
word_vector = ir.VectorType(word, LANES)


def array_pointer(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Pointer to the first item of an array."""
    return context.make_array(kind)(context, builder, array).data


def load(builder: Any, pointer: Any, offset: Any, *, kind: Any = word_vector) -> Any:
    """Load the vector at an offset in items; it need not be aligned."""
    value = builder.load(builder.bitcast(builder.gep(pointer, [offset]), kind.as_pointer()))
    value.align = 8
    return value


def store(builder: Any, vector: Any, pointer: Any, offset: Any) -> None:
    """Store a vector at an offset in items."""
    builder.store(vector, builder.bitcast(builder.gep(pointer, [offset]), vector.type.as_pointer())).align = 8


def variable(builder: Any, value: Any) -> Any:
    """A variable with an initial value, for loops; LLVM keeps it in a register."""
    return cgutils.alloca_once_value(builder, value)  # type: ignore[no-untyped-call]


def splat(builder: Any, values: list[Any], lanes: int) -> Any:
    """A vector that repeats a few values."""
    kind = ir.VectorType(values[0].type, lanes)
    vector = ir.Constant(kind, ir.Undefined)
    for i, value in enumerate(values):
        vector = builder.insert_element(vector, value, _int32(i))
    return _shuffle(builder, vector, [i % len(values) for i in range(lanes)])


def _shuffle(builder: Any, vector: Any, lanes: list[int]) -> Any:
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(_int32, len(lanes)), lanes))


def _call(builder: Any, name: str, *vectors: Any) -> Any:
    """Call an LLVM intrinsic for vectors, such as the population count."""
    kind = vectors[0].type
    name = f"llvm.{name}.v{kind.count}i{kind.element.width}"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * len(vectors)), name)  # type: ignore[no-untyped-call]
    return builder.call(function, vectors)


def _type_prefetch(_context: Any, words: Any, _at: Any) -> Any:
    """Prefetch the cache line of an item of an array; harmless beyond its end."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [address, _int32, _int32, _int32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
        at = builder.gep(array_pointer(context, builder, signature.args[0], arguments[0]), [arguments[1]])
        for_reading, keep, data = _int32(0), _int32(3), _int32(1)
        builder.call(function, [builder.bitcast(at, address), for_reading, keep, data])
        return context.get_dummy_value()

    return types.void(words, types.int64), generate


prefetch: Any = intrinsic(_type_prefetch)


def _type_mark_near(_context: Any, words: Any, _at: Any, queries: Any, _q: Any, _threshold: Any, near: Any) -> Any:
    """Mark the codes of a tile that are nearer to a query than a threshold, and return whether there are any.

    The words of the tile begin at ``at``; bit i of ``near``, TILE / 64 words, belongs to its code i.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, at, queries, q, threshold, near = arguments
        first = builder.gep(array_pointer(context, builder, signature.args[0], array), [at])
        width = builder.extract_value(context.make_array(signature.args[2])(context, builder, queries).shape, 1)
        query = builder.gep(array_pointer(context, builder, signature.args[2], queries), [builder.mul(q, width)])
        marks = array_pointer(context, builder, signature.args[5], near)
        some = variable(builder, cgutils.false_bit)
        for known in range(1, _WIDEST + 1):
            with builder.if_then(builder.icmp_unsigned("==", width, word(known))):
                values = [builder.load(builder.gep(query, [word(i)])) for i in range(known)]
                builder.store(_mark(builder, first, values, threshold, marks), some)
        return builder.load(some)

    return types.boolean(words, types.int64, queries, types.int64, types.int64, near), generate


def _mark(builder: Any, first: Any, query: list[Any], threshold: Any, marks: Any) -> Any:
    """Mark the near codes of a tile; ``query`` has one value per word of a code."""
    bits, width = ir.IntType(_STEP), len(query)
    repeated, limits = splat(builder, query, LANES * width), splat(builder, [threshold], LANES)
    marks, some = builder.bitcast(marks, bits.as_pointer()), variable(builder, bits(0))
    with cgutils.for_range(builder, word(TILE // _STEP)) as loop:
        at, marked = builder.mul(loop.index, word(_STEP * width)), bits(0)
        for i in range(0, _STEP, LANES):
            codes = load(builder, first, builder.add(at, word(i * width)), kind=repeated.type)
            distances = _sums(builder, _call(builder, "ctpop", builder.xor(codes, repeated)), width)
            # compared by the sign of the difference, because AVX2 has an instruction that collects signs
            below = builder.icmp_signed("<", builder.sub(distances, limits), ir.Constant(word_vector, [0] * LANES))
            below = builder.zext(builder.bitcast(below, ir.IntType(LANES)), bits)
            marked = builder.or_(marked, builder.shl(below, bits(i)))
        builder.store(marked, builder.gep(marks, [loop.index]))
        builder.store(builder.or_(builder.load(some), marked), some)
    return builder.icmp_unsigned("!=", builder.load(some), bits(0))


def _sums(builder: Any, ones: Any, width: int) -> Any:
    """The sums of each ``width`` adjacent lanes, LANES sums in all."""

    def add(*lanes: list[int]) -> Any:
        return reduce(builder.add, [_shuffle(builder, ones, some) for some in lanes])

    if width in (6, 8):  # the first half of each code and the second
        width //= 2
        ones = add(*([2 * width * code + i + j for code in range(LANES) for j in range(width)] for i in (0, width)))
    if width == 4:  # two steps need fewer instructions than one
        ones = add(*([8 * pair + i + j for pair in range(2) for j in (0, 4, 2, 6)] for i in (0, 1)))
        return add([0, 1, 4, 5], [2, 3, 6, 7])
    return add(*([width * code + i for code in range(LANES)] for i in range(width)))


mark_near: Any = intrinsic(_type_mark_near)
