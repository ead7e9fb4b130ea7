"""The compiled half of multi-index hashing: filling the tables, and probing them by increasing distance.

Step (a, j) visits the buckets of table j whose substring differs in exactly a bits; steps go (0, 0), (0, 1), ...,
(1, 0), and so on. After step (a, j) a code that was not met differs in at least a + 1 bits of each substring up to j
and in at least a bits of each later one, so all codes up to distance m a + j were met: m is the number of tables. The
k nearest are certain, ties included, once k codes at most that far were met.

A code is met once in each table at most, and was met before exactly where one of its substrings belongs to an earlier
step; no set of visited codes is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rmsh.core.compiled import compile_kernel, popcount
from rmsh.index._kernels.scan import doubled
from rmsh.index.base import ROW_BITS


def _substring(words: Any, at: int, start: int, length: int) -> Any:
    """The ``length`` bits from bit ``start`` on of the code whose words begin at ``at``; at most 63 of them."""
    word, shift = at + (start >> 6), np.uint64(start & 63)
    value = words[word] >> shift
    if (start & 63) + length > 64:
        value |= words[word + 1] << (np.uint64(64) - shift)
    return value & ((np.uint64(1) << np.uint64(length)) - np.uint64(1))


substring = compile_kernel(_substring, nogil=True)


def _fill_table(base: Any, tail: Any, width: int, start: int, length: int, begins: Any, rows: Any) -> None:
    """Sort all rows by one substring: those of bucket b are ``rows[begins[b]:begins[b + 1]]``, increasing."""
    split = len(base) // width
    for row in range(len(rows)):
        words, local = (base, row) if row < split else (tail, row - split)
        begins[np.int64(substring(words, local * width, start, length)) + 1] += 1
    for bucket in range(1, len(begins)):
        begins[bucket] += begins[bucket - 1]
    ends = begins[:-1].copy()
    for row in range(len(rows)):
        words, local = (base, row) if row < split else (tail, row - split)
        own = np.int64(substring(words, local * width, start, length))
        rows[ends[own]] = row
        ends[own] += 1


fill_table = compile_kernel(_fill_table, nogil=True)


def _is_met_before(words: Any, at: int, query: Any, starts: Any, distance: int, table: int) -> bool:
    """Whether a code belongs to a step before (distance, table)."""
    for j in range(len(starts) - 1):
        start, length = starts[j], starts[j + 1] - starts[j]
        differing = np.int64(popcount(substring(words, at, start, length) ^ substring(query, 0, start, length)))
        if differing < distance or (differing == distance and j < table):
            return True
    return False


is_met_before = compile_kernel(_is_met_before, nogil=True)


def _visit(
    rows: Any, base: Any, tail: Any, query: Any, starts: Any, distance: int, table: int, alive: Any, where: Any, k: int,
    keys: Any, size: int, state: Any, histogram: Any,
) -> Any:  # fmt: skip
    """Meet the codes of one bucket in step (distance, table), and lower the threshold to the k-th distance."""
    width = len(query)
    split = len(base) // width
    for row in rows:
        words, at = (base, row * width) if row < split else (tail, (row - split) * width)
        apart = np.int64(0)
        for w in range(width):
            apart += np.int64(popcount(words[at + w] ^ query[w]))
        admitted = (len(alive) == 0 or alive[row]) and (len(where) == 0 or where[row])
        if apart > state[0] or not admitted or is_met_before(words, at, query, starts, distance, table):
            continue
        if size == len(keys):
            keys = doubled(keys)
        keys[size] = apart << ROW_BITS | np.int64(row)
        size += 1
        histogram[apart] += 1
        state[1] += 1
        while state[1] - histogram[state[0]] >= k:
            state[1] -= histogram[state[0]]
            state[0] -= 1
    return keys, size


visit = compile_kernel(_visit, nogil=True)


def _next_flips(flips: Any) -> Any:
    """The next larger number with as many ones (Gosper)."""
    lowest = flips & (~flips + np.uint64(1))
    if lowest == 0:
        return flips
    ripple = flips + lowest
    return ripple | (((flips ^ ripple) >> np.uint64(2)) // lowest)


next_flips = compile_kernel(_next_flips, nogil=True)


def _probe_one(
    query: Any, base: Any, tail: Any, begins: Any, rows: Any, starts: Any, firsts: Any, counts: Any, alive: Any,
    where: Any, k: int, radius: int, budget: int, keys: Any, size: int,
) -> Any:  # fmt: skip
    """Append the hits of one query; says whether they are certain, or the budget ended first."""
    tables, spent, histogram = len(rows), 0, np.zeros(64 * len(query) + 1, np.int64)
    state = np.array([radius, 0])  # the threshold, which is admitted as well, and how many are met up to it
    for distance in range(counts.shape[1]):
        for j in range(tables):
            spent += counts[j, distance]
            flips = (np.uint64(1) << np.uint64(distance)) - np.uint64(1)
            own = substring(query, 0, starts[j], starts[j + 1] - starts[j])
            for _ in range(counts[j, distance]):
                bucket = firsts[j] + np.int64(own ^ flips)
                begin, end = begins[bucket], begins[bucket + 1]
                spent += end - begin
                if spent > budget:
                    return keys, size, False
                keys, size = visit(
                    rows[j, begin:end], base, tail, query, starts, distance, j, alive, where, k, keys, size, state,
                    histogram,
                )  # fmt: skip
                flips = next_flips(flips)
            reach = tables * distance + j
            if reach >= radius or (state[1] >= k and state[0] <= reach):
                return keys, size, True
    return keys, size, True


probe_one = compile_kernel(_probe_one, nogil=True)


def _probe(
    queries: Any, base: Any, tail: Any, begins: Any, rows: Any, starts: Any, firsts: Any, counts: Any, alive: Any,
    where: Any, k: int, radius: int, budget: int,
) -> Any:  # fmt: skip
    """Hits among the rows in the tables: the k nearest and some more, or all within a radius, whichever ends first.

    Args:
        queries: uint64 (Q, width).
        base: flat words of the base.
        tail: flat words of the tail.
        begins: int32, where the buckets of all tables begin, one table behind the other.
        rows: int32 (m, n), the rows of each table, by bucket.
        starts: int64 (m + 1,), the bits at which substrings begin.
        firsts: int64 (m,), where the buckets of each table begin in ``begins``.
        counts: int64 (m, longest + 1), how many buckets of a table are at each distance.
        alive: which rows are there, or empty.
        where: which rows pass a mask, or empty.
        k: how many are wanted.
        radius: how far they may be.
        budget: how many buckets and codes a query may visit.

    Returns:
        Keys of the hits, one query behind the other; where those of each query end; whether they are certain.
    """
    keys, size = np.empty(1024, np.int64), 0
    ends, certain = np.empty(len(queries), np.int64), np.empty(len(queries), np.bool_)
    for q in range(len(queries)):
        keys, met, certain[q] = probe_one(
            queries[q], base, tail, begins, rows, starts, firsts, counts, alive, where, k, radius, budget, keys, size
        )
        size = met if certain[q] else size
        ends[q] = size
    return keys[:size], ends, certain


probe = compile_kernel(_probe, nogil=True)
