"""The compiled exact scan: compares tiles of codes with all queries, and most tiles are passed without a hit.

Each query has a threshold: codes nearer than it are hits. Comparing a tile with a query marks its hits, one bit per
code. For a few queries this counts the bits of each code, about as fast as memory is read (``vectors.py``); for many it
adds bit planes (``bit_counter.py``), which are computed once for all queries. In a search for the k nearest, the
threshold is the k-th distance so far: rows come in increasing order, so a later code at that distance loses the tie.

Words are flat, row after row. Tiles are used in place; if only some rows are admitted, or fewer are left than a tile
has, these are copied into a separate tile. Distances never exceed 64 bits per word, whatever the padding of a damaged
file contains.

Kernels release the GIL and run in Python threads. Unlike numba's own threads, these can be used from several threads at
once and survive a fork.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rmsh.core.compiled import inlined_kernel, kernel, popcount
from rmsh.index._kernels.bit_counter import BIAS, PLANES, next_near, pick_planes, slice_tile, write_bias
from rmsh.index._kernels.vectors import LANES, TILE, mark_near
from rmsh.index.base import FAR, ROW_BITS

_SPARE = 64  # hits of a query that are kept beyond 2 k before those that are too far are dropped
_MANY = (6, 10)  # from so many queries on, bit planes take less time: for codes of one word, and for longer ones


class Segment(NamedTuple):
    """The base or the tail of a store."""

    words: Any  # uint64, flat
    first_row: int
    alive: Any  # bool, over all rows, or empty if all are admitted
    where: Any  # likewise


class Nearest(NamedTuple):
    """The k nearest codes so far."""

    k: int  # 0 to collect all hits below the threshold instead
    keys: Any  # int64 (Q, capacity), in order of rows
    histograms: Any  # int64 (Q, bits + 1), how many keys there are at each distance


@kernel
def gather(segment: Any, start: int, stop: int, width: int, tile: Any, offsets: Any) -> Any:
    """Copy admitted codes of start..stop until the tile is full, and write how far behind ``start`` they are.

    Returns the number of copied codes and the number of codes passed.
    """
    words, row, alive, where = segment.words, segment.first_row + start, segment.alive, segment.where
    count = i = 0
    while i < stop - start and count < TILE:
        offsets[count] = i
        count += (len(alive) == 0 or alive[row + i]) and (len(where) == 0 or where[row + i])
        i += 1
    for j in range(count):
        for w in range(width):
            tile[j * width + w] = words[(start + offsets[j]) * width + w]
    return count, i


@kernel
def find_tile(words: Any, start: int, stop: int, queries: Any, q: int, threshold: int, near: Any) -> int:
    """Where the first tile with a hit begins, with its hits marked, or else where the last whole tile ends."""
    width = queries.shape[1]
    while start + TILE <= stop and not mark_near(words, start * width, queries, q, threshold, near):
        start += TILE
    return start


@inlined_kernel
def list_near(near: Any, lanes: int, hits: Any) -> int:
    """Write the marked codes of a tile in increasing order, and return their number.

    Bit r of the words 0 to lanes - 1 belongs to the codes lanes * r + 0, 1, ...; later words continue.
    """
    size = 0
    for first in range(0, LANES, lanes):
        left = near[first]
        for lane in range(1, lanes):
            left |= near[first + lane]
        while left:
            lowest = left & -left
            code = 64 * first + lanes * np.int64(popcount(lowest - np.uint64(1)))
            for lane in range(lanes):
                hits[size] = code + lane
                size += (near[first + lane] & lowest) != 0
            left ^= lowest
    return size


@inlined_kernel
def keep_hits(
    words: Any, at: int, codes: int, queries: Any, q: int, row: int, offsets: Any, hits: Any, count: int
) -> int:
    """Replace the listed codes by the keys of those among the first ``codes`` of the tile, and return their number."""
    size, width, first = 0, queries.shape[1], queries[q, 0]
    for i in range(count):
        j = hits[i]
        distance = np.int64(popcount(words[at + j * width] ^ first))
        for w in range(1, width):
            distance += np.int64(popcount(words[at + j * width + w] ^ queries[q, w]))
        hits[size] = distance << ROW_BITS | (row + offsets[j])
        size += j < codes
    return size


@kernel
def compact(keys: Any, q: int, threshold: int, spare: int) -> int:
    """Keep the hits below the threshold and the first ``spare`` at it: the nearest so far, still ordered by row."""
    size = 0
    for i in range(keys.shape[1]):
        distance = keys[q, i] >> ROW_BITS
        if distance < threshold or (distance == threshold and spare > 0):
            spare -= distance == threshold
            keys[q, size] = keys[q, i]
            size += 1
    return size


@inlined_kernel
def admit(hits: Any, count: int, nearest: Any, states: Any, q: int) -> None:
    """Add the hits of a tile, and lower the threshold to the k-th distance."""
    k, keys, histograms = nearest
    # inside: number of hits nearer than the threshold, fewer than k
    threshold, inside, size = states[q, 0], states[q, 1], states[q, 2]
    for i in range(count):
        key = hits[i]
        distance = key >> ROW_BITS
        if distance < threshold:
            if size == keys.shape[1]:
                size = compact(keys, q, threshold, k - inside)
            keys[q, size] = key
            size += 1
            inside += 1
            histograms[q, distance] += 1
            while inside >= k:
                threshold -= 1
                inside -= histograms[q, threshold]
    states[q, 0], states[q, 1], states[q, 2] = threshold, inside, size


@kernel
def collect(hits: Any, count: int, q: int, owners: Any, keys: Any, size: int) -> int:
    """Append the hits of a query, and return the new number of hits."""
    for i in range(count):
        owners[size + i], keys[size + i] = q, hits[i]
    return size + count


@kernel
def make_buffers(queries: Any, states: Any) -> Any:
    """Buffers: tile, offsets, hits; planes, room, picks, biases, near; the active queries and their number."""
    count, width = queries.shape
    many, live = count >= _MANY[min(width, 2) - 1], 0
    tile, offsets, hits = np.empty(TILE * width, np.uint64), np.arange(TILE), np.empty(TILE, np.int64)
    planes, room = np.empty(width * PLANES * LANES if many else 0, np.uint64), np.empty(TILE, np.uint64)
    picks, biases = pick_planes(queries if many else queries[:0]), np.empty((count, BIAS), np.uint64)
    active, near = np.empty(count, np.int64), np.empty(LANES, np.uint64)
    for q in range(count):
        write_bias(states[q, 0], biases, q)
        active[live] = q
        live += states[q, 0] > 0
    return tile, offsets, hits, planes, room, picks, biases, near, active, live


@kernel
def scan(
    queries: Any, segment: Any, start: int, stop: int, states: Any, nearest: Any, owners: Any, keys: Any, size: int
) -> Any:
    """Scan the codes start..stop of a segment; ``states`` (Q, 3) has the threshold of each query, and see ``admit``.

    If nearest.k is 0, all hits are appended to the ``size`` hits in ``owners`` (their queries) and ``keys``; the scan
    stops if those of another tile may exceed their capacity. Returns the first code that was not scanned, and the new
    size.
    """
    words, k, row, width = segment.words, nearest.k, segment.first_row + start, queries.shape[1]
    masked, seen = len(segment.alive) + len(segment.where) > 0, 0
    tile, offsets, hits, planes, room, picks, biases, near, active, live = make_buffers(queries, states)
    while start < stop and live > 0 and (k > 0 or size + len(queries) * TILE <= len(keys)):
        alone = len(queries) == 1 and not masked
        if alone:
            found = find_tile(words, start, stop, queries, 0, states[0, 0], near)
            start, row = found, row + found - start
        source, first, codes, passed, place = words, start, TILE, TILE, 0
        if masked or start + TILE > stop:
            source, first, alone = tile, 0, False
            codes, passed = gather(segment, start, stop, width, tile, offsets)
        # The bit counter cannot represent a threshold above the number of bits; after k codes there is none.
        sliced = len(picks) > 0 and codes == TILE and seen >= k and states[active[0], 0] <= 64 * width
        if sliced:
            slice_tile(source, first * width, width, room, planes)
        while True:
            if sliced:
                place = next_near(planes, picks, biases, active, place, live, near)
            if place >= live:
                break
            q, counted = active[place], 0
            if sliced:
                counted = list_near(near, LANES, hits)
            elif alone or find_tile(source, first, first + TILE, queries, q, states[q, 0], near) == first:
                counted = list_near(near, 1, hits)
            if counted:
                counted = keep_hits(source, first * width, codes, queries, q, row, offsets, hits, counted)
            if counted and k:
                admit(hits, counted, nearest, states, q)
                write_bias(states[q, 0], biases, q)
            elif counted:
                size = collect(hits, counted, q, owners, keys, size)
            if states[q, 0] == 0:  # no code can be nearer than those found
                live -= 1
                active[place] = active[live]
            else:
                place += 1
        start, row, seen = start + passed, row + passed, seen + codes
    return start, size


@kernel
def sort_keys(nearest: Any, states: Any, count: int) -> Any:
    """The nearest keys of each query by counting sort, int64 (Q, count); FAR if there are fewer."""
    _, keys, histograms = nearest
    ordered = np.full((len(keys), count), FAR)
    for q in range(len(keys)):
        threshold, begin = states[q, 0], 0
        for distance in range(min(threshold + 1, histograms.shape[1])):
            there, histograms[q, distance] = histograms[q, distance], begin
            begin += there
        for i in range(states[q, 2]):
            distance = keys[q, i] >> ROW_BITS
            if distance <= threshold and histograms[q, distance] < count:
                ordered[q, histograms[q, distance]] = keys[q, i]
                histograms[q, distance] += 1
    return ordered


@kernel
def split_keys(keys: Any) -> Any:
    """Rows and distances of keys, int64 and int32 (Q, k)."""
    rows, distances = np.empty(keys.shape, np.int64), np.empty(keys.shape, np.int32)
    for q in range(len(keys)):
        for i in range(keys.shape[1]):
            rows[q, i], distances[q, i] = keys[q, i] & ((1 << ROW_BITS) - 1), keys[q, i] >> ROW_BITS
    return rows, distances


@kernel
def nearest(queries: Any, base: Any, tail: Any, alive: Any, where: Any, first: int, end: int, k: int) -> Any:
    """Sorted keys of the k nearest among the rows first..end, int64 (Q, at most k); FAR if there are fewer."""
    count, width = queries.shape
    keys, nothing = np.empty((count, min(2 * k + _SPARE, end - first)), np.int64), np.empty(0, np.int64)
    found, states = Nearest(k, keys, np.zeros((count, 64 * width + 1), np.int64)), np.zeros((count, 3), np.int64)
    for q in range(count):
        states[q, 0] = 64 * width + 1
    for words, begin in ((base.reshape(-1), 0), (tail.reshape(-1), base.size // width)):
        start, stop = max(first - begin, 0), min(end - begin, len(words) // width)
        if start < stop:
            segment = Segment(words, begin, alive, where)
            scan(queries, segment, start, stop, states, found, nothing, nothing, 0)
    return sort_keys(found, states, min(k, end - first))


@kernel
def doubled(array: Any) -> Any:
    """A copy with twice the capacity."""
    larger = np.empty(2 * len(array), array.dtype)
    for i in range(len(array)):  # a loop: numba takes seconds to compile an assignment to a slice
        larger[i] = array[i]
    return larger


@kernel
def within(queries: Any, base: Any, tail: Any, alive: Any, where: Any, first: int, end: int, radius: int) -> Any:
    """Queries and keys of all hits among the rows first..end, int64 (hits,) each; those of a query ordered by row."""
    count, width = queries.shape
    owners, keys, size = np.empty(2 * TILE * count, np.int64), np.empty(2 * TILE * count, np.int64), 0
    states, nothing = np.full((count, 3), radius + 1), np.empty((count, 0), np.int64)
    no_nearest = Nearest(0, nothing, nothing)
    for words, begin in ((base.reshape(-1), 0), (tail.reshape(-1), base.size // width)):
        start, stop = max(first - begin, 0), min(end - begin, len(words) // width)
        segment = Segment(words, begin, alive, where)
        while start < stop:
            start, size = scan(queries, segment, start, stop, states, no_nearest, owners, keys, size)
            if start < stop:
                owners, keys = doubled(owners), doubled(keys)
    return owners[:size], keys[:size]
