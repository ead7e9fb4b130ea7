"""The compiled exact scan: tiles of codes against all queries, and one test that passes over a tile without a hit.

A query has a threshold: codes nearer than it are hits. A tile is tested as a whole, by the sign of the OR of
``distance - threshold`` over its codes, in a plain loop that LLVM vectorises on every processor; only a tile that holds
a hit is looked at code by code. While the k nearest are sought, the threshold is the k-th distance so far: rows come
in increasing order, so a later code at that same distance loses the tie.

Words are flat, row after row. A tile of one or two words a code is used as it lies; longer codes, and those of which
only some rows are admitted, are gathered into a tile of their own, word by word, which all queries then use. A hit is
one number, see ``keys.py``. Distances never exceed 64 bits a word, whatever the padding of a damaged file holds.

Kernels release the GIL, and threads of Python run them side by side: unlike numba's own, these can be asked from
several threads at once and survive a fork.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rmsh.compiled import compile_kernel, popcount
from rmsh.index.keys import FAR, ROW_BITS

__all__ = ["TILE", "doubled", "nearest", "within"]

TILE = 256  # codes; fewer where they are long, so that a tile stays in the first-level cache
_TILE_WORDS = 1024


def _measure(tile: Any, queries: Any, q: int, distances: Any) -> None:
    """Write the distances of a query to the codes of a tile, int64 (codes,)."""
    codes, width = len(distances), queries.shape[1]
    if width == 2:  # the only tile that lies row by row
        first, second = queries[q, 0], queries[q, 1]
        for j in range(codes):
            distances[j] = popcount(tile[2 * j] ^ first) + popcount(tile[2 * j + 1] ^ second)
        return
    word, column = queries[q, 0], tile[:codes]
    for j in range(codes):
        distances[j] = popcount(column[j] ^ word)
    for w in range(1, width):
        word, column = queries[q, w], tile[w * codes : (w + 1) * codes]
        for j in range(codes):
            distances[j] += popcount(column[j] ^ word)


measure = compile_kernel(_measure, nogil=True)


def _holds_nearer(tile: Any, queries: Any, q: int, threshold: int, distances: Any) -> Any:
    """Whether some code of a tile is nearer than the threshold; long codes leave their distances behind."""
    signs, width = np.int64(0), queries.shape[1]
    if width == 1:
        word = queries[q, 0]
        for j in range(len(tile)):
            signs |= np.int64(popcount(tile[j] ^ word)) - threshold
    elif width == 2:
        first, second = queries[q, 0], queries[q, 1]
        for j in range(len(tile) // 2):
            signs |= np.int64(popcount(tile[2 * j] ^ first) + popcount(tile[2 * j + 1] ^ second)) - threshold
    else:
        measure(tile, queries, q, distances)
        for j in range(len(distances)):
            signs |= distances[j] - threshold
    return signs < 0


holds_nearer = compile_kernel(_holds_nearer, nogil=True)


def _gather(words: Any, start: int, stop: int, width: int, alive: Any, where: Any, tile: Any, offsets: Any) -> int:
    """Copy the admitted codes of start..stop into a tile; masks are those of these codes, or empty."""
    count = 0
    for i in range(stop - start):
        offsets[count] = i
        count += (len(alive) == 0 or alive[i]) and (len(where) == 0 or where[i])
    for j in range(count):
        at = (start + offsets[j]) * width
        if width == 2:
            tile[2 * j], tile[2 * j + 1] = words[at], words[at + 1]
        else:
            for w in range(width):
                tile[w * count + j] = words[at + w]
    return count


gather = compile_kernel(_gather, nogil=True)


def _tile_of(
    base: Any, tail: Any, row: int, stop: int, width: int, alive: Any, where: Any, room: Any, offsets: Any
) -> Any:
    """The admitted codes of the rows row..stop, all of one segment, as a tile; ``offsets`` says which they are."""
    words, start = (base, row) if row * width < len(base) else (tail, row - len(base) // width)
    end = start + stop - row
    if width <= 2 and len(alive) == 0 and len(where) == 0:
        return words[start * width : end * width]  # all of them: offsets count from 0 as they were made
    count = gather(words, start, end, width, alive[row:stop], where[row:stop], room, offsets)
    return room[: count * width]


tile_of = compile_kernel(_tile_of, nogil=True)


def _tile_end(row: int, end: int, width: int, split: int) -> int:
    """Where the tile that begins at a row ends: a tile lies in one segment."""
    stop = min(row + min(TILE, _TILE_WORDS // width), end)
    return min(stop, split) if row < split else stop


tile_end = compile_kernel(_tile_end, nogil=True)


def _compact(keys: Any, threshold: int, spare: int) -> int:
    """Keep the hits below the threshold and the first ``spare`` at it: the nearest so far, still ordered by row."""
    size = 0
    for key in keys:
        distance = key >> ROW_BITS
        if distance < threshold or (distance == threshold and spare > 0):
            spare -= distance == threshold
            keys[size] = key
            size += 1
    return size


compact = compile_kernel(_compact, nogil=True)


def _admit(distances: Any, offsets: Any, first: int, k: int, keys: Any, histogram: Any, state: Any) -> None:
    """Take the hits of a tile, and lower the threshold to the k-th distance."""
    threshold, inside, size = state[0], state[1], state[2]  # inside: hits nearer than the threshold, fewer than k
    for j in range(len(distances)):
        distance = distances[j]
        if distance < threshold:
            if size == len(keys):
                size = compact(keys, threshold, k - inside)
            keys[size] = distance << ROW_BITS | (first + offsets[j])
            size += 1
            inside += 1
            histogram[distance] += 1
            while inside >= k:
                threshold -= 1
                inside -= histogram[threshold]
    state[0], state[1], state[2] = threshold, inside, size


admit = compile_kernel(_admit, nogil=True)


def _nearest(queries: Any, base: Any, tail: Any, first: int, end: int, alive: Any, where: Any, k: int) -> Any:
    """Keys of the k nearest among the rows first..end, int64 (Q, some more than k), in no order; the rest is FAR."""
    count, width, split = len(queries), queries.shape[1], len(base) // queries.shape[1]
    room, offsets, distances = np.empty(TILE * width, np.uint64), np.arange(TILE), np.empty(TILE, np.int64)
    keys = np.full((count, min(2 * k + TILE, end - first)), FAR)
    histograms, states = np.zeros((count, 64 * width + 1), np.int64), np.zeros((count, 3), np.int64)
    for q in range(count):
        states[q, 0] = 64 * width + 1
    row = first
    while row < end:
        stop = tile_end(row, end, width, split)
        tile = tile_of(base, tail, row, stop, width, alive, where, room, offsets)
        of_tile = distances[: len(tile) // width]
        for q in range(count):
            if holds_nearer(tile, queries, q, states[q, 0], of_tile):
                measure(tile, queries, q, of_tile)
                admit(of_tile, offsets, row, k, keys[q], histograms[q], states[q])
        row = stop
    for q in range(count):
        for i in range(states[q, 2], keys.shape[1]):  # what was thrown out lies behind the hits
            keys[q, i] = FAR
    return keys


nearest = compile_kernel(_nearest, nogil=True)


def _doubled(array: Any) -> Any:
    larger = np.empty(2 * len(array), array.dtype)
    for i in range(len(array)):  # a loop: numba takes seconds to compile an assignment to a slice
        larger[i] = array[i]
    return larger


doubled = compile_kernel(_doubled, nogil=True)


def _within(queries: Any, base: Any, tail: Any, first: int, end: int, alive: Any, where: Any, radius: int) -> Any:
    """Queries and keys of all hits among the rows first..end, two int64 (hits,); those of a query ordered by row."""
    width, split, size = queries.shape[1], len(base) // queries.shape[1], 0
    room, offsets, distances = np.empty(TILE * width, np.uint64), np.arange(TILE), np.empty(TILE, np.int64)
    owners, keys = np.empty(2 * TILE, np.int64), np.empty(2 * TILE, np.int64)
    row = first
    while row < end:
        stop = tile_end(row, end, width, split)
        tile = tile_of(base, tail, row, stop, width, alive, where, room, offsets)
        of_tile = distances[: len(tile) // width]
        for q in range(len(queries)):
            if holds_nearer(tile, queries, q, radius + 1, of_tile):
                measure(tile, queries, q, of_tile)
                if size + TILE > len(keys):
                    owners, keys = doubled(owners), doubled(keys)
                for j in range(len(of_tile)):
                    owners[size], keys[size] = q, of_tile[j] << ROW_BITS | (row + offsets[j])
                    size += of_tile[j] <= radius
        row = stop
    return owners[:size], keys[:size]


within = compile_kernel(_within, nogil=True)
