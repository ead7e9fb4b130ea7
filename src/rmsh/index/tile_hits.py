"""A tile of codes looked at code by code, by the compiled scan: which codes it has, and which of them are hits."""

from __future__ import annotations

from typing import Any

import numpy as np

from rmsh.compiled import compile_kernel, popcount
from rmsh.index.bit_planes import TILE
from rmsh.index.keys import ROW_BITS
from rmsh.index.vectors import LANES, STEP, may_hold_nearer

__all__ = ["gather", "keep_hits", "list_blocks", "list_near", "pass_over"]


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
