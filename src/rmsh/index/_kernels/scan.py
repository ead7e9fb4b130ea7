"""The compiled exact scan: tiles of codes against all queries, and one test that passes over a tile without a hit.

A query has a threshold: codes nearer than it are hits. A tile is tested as a whole, and only one that holds a hit is
looked at code by code. For a few queries the test counts the bits of each code, as fast as memory is read; for many it
adds bit planes, see ``bit_planes.py``, which are made once for all queries. While the k nearest are sought, the
threshold is the k-th distance so far: rows come in increasing order, so a later code at that same distance loses the
tie.

Words are flat, row after row. A tile is used as it lies; where only some rows are admitted, these are copied into a
tile of their own. A hit is one number, see ``keys.py``. Distances never exceed 64 bits a word, whatever the padding of
a damaged file holds.

Kernels release the GIL, and threads of Python run them side by side: unlike numba's own, these can be asked from
several threads at once and survive a fork.

A tile of codes looked at code by code, by the compiled scan: which codes it has, and which of them are hits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rmsh.core.compiled import compile_kernel, popcount
from rmsh.index._kernels.bit_counter import BIAS, PLANES, TILE, next_near, pick_planes, slice_tile, write_bias
from rmsh.index._kernels.vectors import LANES, STEP, may_hold_nearer
from rmsh.index.base import FAR, ROW_BITS


def _gather(
    words: Any, start: int, stop: int, width: int, row: int, alive: Any, where: Any, tile: Any, offsets: Any
) -> Any:
    """Copy admitted codes of start..stop until the tile is full, and say how far behind ``row``, the first, they are.

    Returns how many were copied, and how many were passed.
    """
    count = i = 0
    while i < stop - start and count < TILE:
        offsets[count] = i
        count += (len(alive) == 0 or alive[row + i]) and (len(where) == 0 or where[row + i])
        i += 1
    for j in range(count):
        for w in range(width):
            tile[j * width + w] = words[(start + offsets[j]) * width + w]
    return count, i


gather = compile_kernel(_gather, nogil=True)


def _pass_over(words: Any, start: int, stop: int, queries: Any, threshold: int) -> int:
    """How many codes from ``start`` on lie in whole tiles without a hit of the only query."""
    width, at = queries.shape[1], start
    while at + TILE <= stop and not may_hold_nearer(words, at * width, TILE, queries, 0, threshold):
        at += TILE
    return at - start


pass_over = compile_kernel(_pass_over, nogil=True, forceinline=True)


def _list_near(near: Any, hits: Any) -> int:
    """Write which codes of a tile a plane tells of, in increasing order, and return how many they are."""
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


list_near = compile_kernel(_list_near, nogil=True, forceinline=True)


def _list_blocks(words: Any, at: int, codes: int, queries: Any, q: int, threshold: int, hits: Any) -> int:
    """Write which codes of a tile lie where there may be a hit, and return how many they are."""
    size, width = 0, queries.shape[1]
    block = max(STEP // width, 1)
    for first in range(0, codes, block):
        count = min(block, codes - first)
        if may_hold_nearer(words, at + first * width, count, queries, q, threshold):
            for j in range(first, first + count):
                hits[size] = j
                size += 1
    return size


list_blocks = compile_kernel(_list_blocks, nogil=True, forceinline=True)


def _keep_hits(
    words: Any, at: int, queries: Any, q: int, threshold: int, row: int, offsets: Any, hits: Any, count: int
) -> int:
    """Keep those of the listed codes that are nearer than the threshold, as keys, and return how many they are."""
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


keep_hits = compile_kernel(_keep_hits, nogil=True, forceinline=True)


_SPARE = 64  # hits of a query that are kept beyond twice k, before those too far are thrown out
_MANY = 6  # queries: so many, and making bit planes for them takes less than counting bits for each


def _compact(keys: Any, q: int, threshold: int, spare: int) -> int:
    """Keep the hits below the threshold and the first ``spare`` at it: the nearest so far, still ordered by row."""
    size = 0
    for i in range(keys.shape[1]):
        distance = keys[q, i] >> ROW_BITS
        if distance < threshold or (distance == threshold and spare > 0):
            spare -= distance == threshold
            keys[q, size] = keys[q, i]
            size += 1
    return size


compact = compile_kernel(_compact, nogil=True)


def _admit(hits: Any, count: int, k: int, keys: Any, histograms: Any, states: Any, q: int) -> None:
    """Take the hits of a tile, and lower the threshold to the k-th distance."""
    threshold, inside, size = (
        states[q, 0],
        states[q, 1],
        states[q, 2],
    )  # inside: hits nearer than the threshold, fewer than k
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


admit = compile_kernel(_admit, nogil=True, forceinline=True)


def _append(hits: Any, count: int, q: int, owners: Any, found: Any, size: int) -> int:
    """Write the hits of a query behind those that were found, and return how many there are."""
    for i in range(count):
        owners[size + i], found[size + i] = q, hits[i]
    return size + count


append = compile_kernel(_append, nogil=True)


def _make_room(queries: Any, masked: Any, states: Any) -> Any:
    """What looking through a segment needs: tile, offsets, hits; planes, room, picks, biases, near; active queries."""
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


make_room = compile_kernel(_make_room, nogil=True)


def _look_through(
    queries: Any, words: Any, start: int, stop: int, row: int, alive: Any, where: Any, k: int, keys: Any,
    histograms: Any, states: Any, owners: Any, found: Any, size: int,
) -> Any:  # fmt: skip
    """Look through the codes start..stop of a segment, whose first row is ``row``.

    With k, the nearest are taken into ``keys``. Without, all hits are written to ``owners`` and ``found`` from ``size``
    on, as long as there is room for those of a tile; returns how far it came, and the new size.
    """
    width, masked, seen = queries.shape[1], len(alive) + len(where) > 0, 0
    tile, offsets, hits, planes, room, picks, biases, near, active, live = make_room(queries, masked, states)
    source, alone = tile if masked else words, len(queries) == 1 and not masked
    while start < stop and live > 0 and (k > 0 or size + len(queries) * TILE <= len(found)):
        if alone:
            over = pass_over(words, start, stop, queries, states[0, 0])
            start, row = start + over, row + over
        at, codes, passed, place = start * width, min(TILE, stop - start), min(TILE, stop - start), 0
        if masked:
            at = 0
            codes, passed = gather(words, start, stop, width, row, alive, where, tile, offsets)
        # The counter of bit planes knows no threshold beyond the length of a code: none is after k codes.
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
                admit(hits, counted, k, keys, histograms, states, q)
                write_bias(states[q, 0], biases, q)
            elif counted:
                size = append(hits, counted, q, owners, found, size)
            if states[q, 0] == 0:  # nothing is nearer than what was found
                live -= 1
                active[place] = active[live]
            else:
                place += 1
        start, row, seen = start + passed, row + passed, seen + codes
    return start, size


look_through = compile_kernel(_look_through, nogil=True)


def _sort_out(keys: Any, histograms: Any, states: Any, k: int) -> Any:
    """The k nearest of each query in their order, int64 (Q, k), by counting; FAR where there are fewer."""
    nearest = np.full((len(keys), k), FAR)
    for q in range(len(keys)):
        threshold, begin = states[q, 0], 0
        for distance in range(min(threshold + 1, histograms.shape[1])):
            count, histograms[q, distance] = histograms[q, distance], begin
            begin += count
        for i in range(states[q, 2]):
            distance = keys[q, i] >> ROW_BITS
            if distance <= threshold and histograms[q, distance] < k:
                nearest[q, histograms[q, distance]] = keys[q, i]
                histograms[q, distance] += 1
    return nearest


sort_out = compile_kernel(_sort_out, nogil=True)


def _nearest(queries: Any, base: Any, tail: Any, first: int, end: int, alive: Any, where: Any, k: int) -> Any:
    """Sorted keys of the k nearest among the rows first..end, int64 (Q, at most k); FAR where there are fewer."""
    count, width = queries.shape
    keys, nothing = np.empty((count, min(2 * k + _SPARE, end - first)), np.int64), np.empty(0, np.int64)
    histograms, states = np.zeros((count, 64 * width + 1), np.int64), np.zeros((count, 3), np.int64)
    for q in range(count):
        states[q, 0] = 64 * width + 1
    for words, begin in ((base, 0), (tail, len(base) // width)):
        start, stop = max(first - begin, 0), min(end - begin, len(words) // width)
        if start < stop:
            look_through(
                queries, words, start, stop, begin + start, alive, where, k, keys, histograms, states, nothing,
                nothing, 0,
            )  # fmt: skip
    return sort_out(keys, histograms, states, min(k, end - first))


nearest = compile_kernel(_nearest, nogil=True)


def _doubled(array: Any) -> Any:
    larger = np.empty(2 * len(array), array.dtype)
    for i in range(len(array)):  # a loop: numba takes seconds to compile an assignment to a slice
        larger[i] = array[i]
    return larger


doubled = compile_kernel(_doubled, nogil=True)


def _within(queries: Any, base: Any, tail: Any, first: int, end: int, alive: Any, where: Any, radius: int) -> Any:
    """Queries and keys of all hits among the rows first..end, two int64 (hits,); those of a query ordered by row."""
    count, width = queries.shape
    owners, keys, size = np.empty(2 * TILE * count, np.int64), np.empty(2 * TILE * count, np.int64), 0
    states, nothing = np.full((count, 3), radius + 1), np.empty((count, 0), np.int64)
    for words, begin in ((base, 0), (tail, len(base) // width)):
        start, stop = max(first - begin, 0), min(end - begin, len(words) // width)
        while start < stop:
            start, size = look_through(
                queries,
                words,
                start,
                stop,
                begin + start,
                alive,
                where,
                0,
                nothing,
                nothing,
                states,
                owners,
                keys,
                size,
            )
            if start < stop:
                owners, keys = doubled(owners), doubled(keys)
    return owners[:size], keys[:size]


within = compile_kernel(_within, nogil=True)
