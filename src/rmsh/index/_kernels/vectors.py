"""Vector operations written directly in LLVM, and the test of a tile for a few queries.

numba has no vector types, and it depends on LLVM how its loops are vectorised. Where that is too slow, kernels use the
LLVM instruction builder. Nothing here depends on the processor: LLVM maps 256 bits to AVX2, half an AVX-512 register or
two NEON registers.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 4  # words per vector
STEP = 16  # words that ``may_hold_nearer`` reads at once: four independent vectors

_AHEAD = 256  # words between reading and prefetching: 2 KB, a fifth faster than no prefetching

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


def _prefetch(builder: Any, pointer: Any) -> None:
    """Prefetch the STEP words at a pointer, two cache lines; harmless beyond the end of an array."""
    address = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [address, _int32, _int32, _int32])
    prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
    for line in range(0, STEP, 8):
        where = builder.bitcast(builder.gep(pointer, [word(line)]), address)
        builder.call(prefetch, [where, _int32(0), _int32(3), _int32(1)])  # for reading, high locality, data cache


def _type_prefetch(_context: Any, words: Any, _at: Any) -> Any:
    """Prefetch the STEP words of an array from ``at`` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _prefetch(
            builder, builder.gep(array_pointer(context, builder, signature.args[0], arguments[0]), [arguments[1]])
        )
        return context.get_dummy_value()

    return types.void(words, types.int64), generate


prefetch: Any = intrinsic(_type_prefetch)


def _type_may_hold_nearer(
    _context: Any, words: Any, _at: Any, _codes: Any, queries: Any, _q: Any, _threshold: Any
) -> Any:
    """Whether one of the codes whose words begin at ``at`` may be nearer to a query than the threshold.

    The result is exact for codes of one or two words that fill whole steps, and True otherwise.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, at, codes, queries, q, threshold = arguments
        first = builder.gep(array_pointer(context, builder, signature.args[0], array), [at])
        width = builder.extract_value(context.make_array(signature.args[3])(context, builder, queries).shape, 1)
        query = builder.gep(array_pointer(context, builder, signature.args[3], queries), [builder.mul(q, width)])
        steps = builder.udiv(builder.mul(codes, width), word(STEP))
        whole = builder.icmp_unsigned("==", builder.mul(steps, word(STEP)), builder.mul(codes, width))
        limit = builder.trunc(threshold, _int32)
        answer = variable(builder, cgutils.true_bit)
        for known in (1, 2):
            is_known = builder.and_(whole, builder.icmp_unsigned("==", width, word(known)))
            with builder.if_then(is_known):
                values = [builder.load(builder.gep(query, [word(i)])) for i in range(known)]
                builder.store(_some_nearer(builder, first, steps, values, limit), answer)
        return builder.load(answer)

    return types.boolean(words, types.int64, types.int64, queries, types.int64, types.int64), generate


def _some_nearer(builder: Any, first: Any, steps: Any, query: list[Any], limit: Any) -> Any:
    """Whether one of the codes in some steps is nearer than the limit.

    Distances are in the lower halves of 64-bit lanes and are compared as 32-bit numbers, for which every processor has
    a minimum instruction; the upper halves are zero and ignored.
    """
    repeated = splat(builder, query, STEP)
    halves = ir.VectorType(_int32, 2 * STEP // len(query))
    least = variable(builder, ir.Constant(halves, [2**31 - 1] * halves.count))
    with cgutils.for_range(builder, steps) as loop:
        at = builder.mul(loop.index, word(STEP))
        _prefetch(builder, builder.gep(first, [builder.add(at, word(_AHEAD))]))
        codes = load(builder, first, at, kind=repeated.type)
        ones = _call(builder, "ctpop", builder.xor(codes, repeated))
        distances = ones if len(query) == 1 else _paired(builder, ones)
        builder.store(_call(builder, "umin", builder.load(least), builder.bitcast(distances, halves)), least)
    lower = _shuffle(builder, builder.load(least), list(range(0, halves.count, 2)))
    nearer = builder.icmp_unsigned("<", lower, splat(builder, [limit], lower.type.count))
    flags = builder.bitcast(nearer, ir.IntType(lower.type.count))
    return builder.icmp_unsigned("!=", flags, flags.type(0))


def _paired(builder: Any, ones: Any) -> Any:
    """Sums of adjacent lanes, in the order of the AVX2 instruction; the order does not affect a minimum."""
    even = [base + lane for base in range(0, STEP, 8) for lane in (0, 4, 2, 6)]
    return builder.add(_shuffle(builder, ones, even), _shuffle(builder, ones, [lane + 1 for lane in even]))


may_hold_nearer: Any = intrinsic(_type_may_hold_nearer)
