"""The compiled part of multi-index hashing: fills the tables and probes them by increasing distance.

Step (a, j) visits the buckets of table j whose substring differs in exactly a bits; the steps are (0, 0), (0, 1), ...,
(1, 0), and so on. After step (a, j) a code that was not visited differs in at least a + 1 bits of each substring up to
j and in at least a bits of each later one, so all codes up to distance m a + j were visited, where m is the number of
tables. The k nearest are final, ties included, once k codes at most that far were visited.

A code is visited at most once per table, and was visited before exactly if one of its substrings belongs to an earlier
step; no set of visited codes is needed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rmsh.core.compiled import popcount
from rmsh.index._kernels import kernel
from rmsh.index._kernels.scan import doubled
from rmsh.index.base import ROW_BITS
from rmsh.index.mih import Tables


class Source(NamedTuple):
    """The codes of a store."""

    base: Any  # uint64, flat
    tail: Any  # uint64, flat
    alive: Any  # bool, over all rows, or empty if all are admitted
    where: Any  # likewise


@kernel
def substring(words: Any, at: int, start: int, length: int) -> Any:
    """The ``length`` bits from bit ``start`` on, at most 63, of the code whose words begin at ``at``."""
    word, shift = at + (start >> 6), np.uint64(start & 63)
    value = words[word] >> shift
    if (start & 63) + length > 64:
        value |= words[word + 1] << (np.uint64(64) - shift)
    return value & ((np.uint64(1) << np.uint64(length)) - np.uint64(1))


@kernel
def fill_table(base: Any, tail: Any, width: int, start: int, length: int, bounds: Any, rows: Any) -> None:
    """Sort all rows by one substring: those of bucket b are ``rows[bounds[b]:bounds[b + 1]]``, increasing."""
    split = len(base) // width
    for row in range(len(rows)):
        words, local = (base, row) if row < split else (tail, row - split)
        bounds[np.int64(substring(words, local * width, start, length)) + 1] += 1
    for bucket in range(1, len(bounds)):
        bounds[bucket] += bounds[bucket - 1]
    ends = bounds[:-1].copy()
    for row in range(len(rows)):
        words, local = (base, row) if row < split else (tail, row - split)
        own = np.int64(substring(words, local * width, start, length))
        rows[ends[own]] = row
        ends[own] += 1


@kernel
def is_visited(words: Any, at: int, query: Any, starts: Any, a: int, table: int) -> bool:
    """Whether a code belongs to a step before (a, table)."""
    for j in range(len(starts) - 1):
        start, length = starts[j], starts[j + 1] - starts[j]
        differing = np.int64(popcount(substring(words, at, start, length) ^ substring(query, 0, start, length)))
        if differing < a or (differing == a and j < table):
            return True
    return False


@kernel
def visit(
    rows: Any, source: Any, query: Any, starts: Any, a: int, table: int, k: int, keys: Any, size: int, state: Any,
    histogram: Any,
) -> Any:  # fmt: skip
    """Visit the codes of one bucket in step (a, table), and lower the threshold to the k-th distance."""
    base, tail, alive, where = source
    width = len(query)
    split = len(base) // width
    for row in rows:
        words, at = (base, row * width) if row < split else (tail, (row - split) * width)
        distance = np.int64(0)
        for w in range(width):
            distance += np.int64(popcount(words[at + w] ^ query[w]))
        admitted = (len(alive) == 0 or alive[row]) and (len(where) == 0 or where[row])
        if distance > state[0] or not admitted or is_visited(words, at, query, starts, a, table):
            continue
        if size == len(keys):
            keys = doubled(keys)
        keys[size] = distance << ROW_BITS | np.int64(row)
        size += 1
        histogram[distance] += 1
        state[1] += 1
        while state[1] - histogram[state[0]] >= k:
            state[1] -= histogram[state[0]]
            state[0] -= 1
    return keys, size


@kernel
def next_flips(flips: Any) -> Any:
    """The next larger number with the same number of ones (Gosper)."""
    lowest = flips & (~flips + np.uint64(1))
    if lowest == 0:
        return flips
    ripple = flips + lowest
    return ripple | (((flips ^ ripple) >> np.uint64(2)) // lowest)


@kernel
def probe_one(query: Any, source: Any, tables: Any, k: int, radius: int, budget: int, keys: Any, size: int) -> Any:
    """Append the hits of one query; the last value returned is whether they are complete within the budget."""
    bounds, rows, starts, firsts, counts = tables
    spent, histogram = 0, np.zeros(64 * len(query) + 1, np.int64)
    state = np.array([radius, 0])  # the threshold, inclusive, and the number of codes visited up to it
    for a in range(counts.shape[1]):
        for j in range(len(rows)):
            spent += counts[j, a]
            flips = (np.uint64(1) << np.uint64(a)) - np.uint64(1)
            own = substring(query, 0, starts[j], starts[j + 1] - starts[j])
            for _ in range(counts[j, a]):
                bucket = firsts[j] + np.int64(own ^ flips)
                begin, end = bounds[bucket], bounds[bucket + 1]
                spent += end - begin
                if spent > budget:
                    return keys, size, False
                bucket_rows = rows[j, begin:end]
                keys, size = visit(bucket_rows, source, query, starts, a, j, k, keys, size, state, histogram)
                flips = next_flips(flips)
            reach = len(rows) * a + j
            if reach >= radius or (state[1] >= k and state[0] <= reach):
                return keys, size, True
    return keys, size, True


@kernel
def probe(
    queries: Any, base: Any, tail: Any, alive: Any, where: Any, bounds: Any, rows: Any, starts: Any, firsts: Any,
    counts: Any, k: int, radius: int, budget: int,
) -> Any:  # fmt: skip
    """Hits in the tables: the k nearest and some more, or all within a radius, whichever is complete first.

    The arguments include the fields of ``Source`` and ``Tables``: passing named tuples from Python is slow, because
    numba inspects their types at every call. A query may visit ``budget`` buckets and codes.

    Returns the keys of the hits, query by query; where those of each query end; and whether they are complete.
    """
    source, tables = Source(base, tail, alive, where), Tables(bounds, rows, starts, firsts, counts)
    keys, size = np.empty(1024, np.int64), 0
    ends, complete = np.empty(len(queries), np.int64), np.empty(len(queries), np.bool_)
    for q in range(len(queries)):
        keys, found, complete[q] = probe_one(queries[q], source, tables, k, radius, budget, keys, size)
        size = found if complete[q] else size
        ends[q] = size
    return keys[:size], ends, complete
