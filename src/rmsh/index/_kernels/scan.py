"""The compiled exact scan: tiles of codes against all queries, with one test that skips a tile without hits.

Each query has a threshold: codes nearer than it are hits. A tile is tested as a whole, and only a tile with a hit is
searched code by code. For a few queries the test counts the bits of each code, as fast as memory is read; for many it
adds bit planes (``bit_counter.py``), which are computed once for all queries. In a search for the k nearest, the
threshold is the k-th distance so far: rows come in increasing order, so a later code at that distance loses the tie.

Words are flat, row after row. Tiles are used in place; if only some rows are admitted, these are copied into a separate
tile. Distances never exceed 64 bits per word, whatever the padding of a damaged file contains.

Kernels release the GIL and run in Python threads. Unlike numba's own threads, these can be used from several threads at
once and survive a fork.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rmsh.core.compiled import popcount
from rmsh.index._kernels import inlined_kernel, kernel
from rmsh.index._kernels.bit_counter import BIAS, PLANES, TILE, next_near, pick_planes, slice_tile, write_bias
from rmsh.index._kernels.vectors import LANES, STEP, may_hold_nearer
from rmsh.index.base import FAR, ROW_BITS

_SPARE = 64  # hits of a query that are kept beyond 2 k before those that are too far are dropped
_MANY = 6  # from this many queries on, bit planes take less time than counting bits for each query


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


@inlined_kernel
def skip_tiles(words: Any, start: int, stop: int, queries: Any, threshold: int) -> int:
    """Number of codes from ``start`` on in whole tiles without a hit, for a single query."""
    width, at = queries.shape[1], start
    while at + TILE <= stop and not may_hold_nearer(words, at * width, TILE, queries, 0, threshold):
        at += TILE
    return at - start


@inlined_kernel
def list_near(near: Any, hits: Any) -> int:
    """Write the codes of a tile that a plane marks, in increasing order, and return their number."""
    size, left = 0, near[0]
    for lane in range(1, LANES):
        left |= near[lane]
    while left:
        lowest = left & -left
        for lane in range(LANES):
            hits[size] = LANES * np.int64(popcount(lowest - np.uint64(1))) + lane
            size += (near[lane] & lowest) != 0
        left ^= lowest
    return size


@inlined_kernel
def list_blocks(words: Any, at: int, codes: int, queries: Any, q: int, threshold: int, hits: Any) -> int:
    """Write the codes of a tile that are in a block which may contain a hit, and return their number."""
    size, width = 0, queries.shape[1]
    block = max(STEP // width, 1)
    for first in range(0, codes, block):
        count = min(block, codes - first)
        if may_hold_nearer(words, at + first * width, count, queries, q, threshold):
            for j in range(first, first + count):
                hits[size] = j
                size += 1
    return size


@inlined_kernel
def keep_hits(
    words: Any, at: int, queries: Any, q: int, threshold: int, row: int, offsets: Any, hits: Any, count: int
) -> int:
    """Replace the listed codes by the keys of those nearer than the threshold, and return their number."""
    size, width, first = 0, queries.shape[1], queries[q, 0]
    for i in range(count):
        j = hits[i]
        distance = np.int64(popcount(words[at + j * width] ^ first))
        for w in range(1, width):
            distance += np.int64(popcount(words[at + j * width + w] ^ queries[q, w]))
        if distance < threshold:
            hits[size] = distance << ROW_BITS | (row + offsets[j])
            size += 1
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
def make_buffers(queries: Any, masked: Any, states: Any) -> Any:
    """Buffers: tile, offsets, hits; planes, room, picks, biases, near; the active queries and their number."""
    count, width = queries.shape
    many, live = count >= _MANY, 0
    tile, offsets, hits = np.empty(TILE * width if masked else 0, np.uint64), np.arange(TILE), np.empty(TILE, np.int64)
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
    tile, offsets, hits, planes, room, picks, biases, near, active, live = make_buffers(queries, masked, states)
    source, alone = tile if masked else words, len(queries) == 1 and not masked
    while start < stop and live > 0 and (k > 0 or size + len(queries) * TILE <= len(keys)):
        if alone:
            skipped = skip_tiles(words, start, stop, queries, states[0, 0])
            start, row = start + skipped, row + skipped
        at, codes, passed, place = start * width, min(TILE, stop - start), min(TILE, stop - start), 0
        if masked:
            at = 0
            codes, passed = gather(segment, start, stop, width, tile, offsets)
        # The bit counter cannot represent a threshold above the number of bits; after k codes there is none.
        sliced = len(picks) > 0 and codes == TILE and seen >= k and states[active[0], 0] <= 64 * width
        if sliced:
            slice_tile(source, at, width, room, planes)
        while True:
            if sliced:
                place = next_near(planes, picks, biases, active, place, live, near)
            if place >= live:
                break
            q, counted = active[place], 0
            if sliced:
                counted = list_near(near, hits)
            elif alone or may_hold_nearer(source, at, codes, queries, q, states[q, 0]):
                counted = list_blocks(source, at, codes, queries, q, states[q, 0], hits)
            if counted:
                counted = keep_hits(source, at, queries, q, states[q, 0], row, offsets, hits, counted)
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
def nearest(queries: Any, base: Any, tail: Any, alive: Any, where: Any, first: int, end: int, k: int) -> Any:
    """Sorted keys of the k nearest among the rows first..end, int64 (Q, at most k); FAR if there are fewer."""
    count, width = queries.shape
    keys, nothing = np.empty((count, min(2 * k + _SPARE, end - first)), np.int64), np.empty(0, np.int64)
    found, states = Nearest(k, keys, np.zeros((count, 64 * width + 1), np.int64)), np.zeros((count, 3), np.int64)
    for q in range(count):
        states[q, 0] = 64 * width + 1
    for words, begin in ((base, 0), (tail, len(base) // width)):
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
    for words, begin in ((base, 0), (tail, len(base) // width)):
        start, stop = max(first - begin, 0), min(end - begin, len(words) // width)
        segment = Segment(words, begin, alive, where)
        while start < stop:
            start, size = scan(queries, segment, start, stop, states, no_nearest, owners, keys, size)
            if start < stop:
                owners, keys = doubled(owners), doubled(keys)
    return owners[:size], keys[:size]
