"""The compiled kernels of evaluation: pairs of query and database item by distance and shared labels, and a sort.

Words are stored column by column (words, items), so that LLVM vectorises the bit counts of one word over many items;
the histogram is then incremented item by item.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numba
import numpy as np

from rmsh.core.compiled import compile_kernel, kernel, popcount

_TILE = 1024  # items: the cells of a tile stay in the first-level cache


@compile_kernel
def fill_cells(
    cells: Any, start: int, stop: int, query: Any, codes: Any, query_labels: Any, labels: Any, width: Any
) -> None:
    """Write distance * width + shared labels of the items start..stop into ``cells``."""
    items = stop - start
    word, column = query[0], codes[0, start:stop]
    label_word, label_column = query_labels[0], labels[0, start:stop]
    for j in range(items):  # the first words of codes and labels together: saves a pass over the cells
        distance = np.uint32(popcount(word ^ column[j]))
        cells[j] = distance * width + np.uint32(popcount(label_word & label_column[j]))
    for w in range(1, len(query)):
        word, column = query[w], codes[w, start:stop]
        for j in range(items):
            cells[j] += np.uint32(popcount(word ^ column[j])) * width
    for w in range(1, len(query_labels)):
        label_word, label_column = query_labels[w], labels[w, start:stop]
        for j in range(items):
            cells[j] += np.uint32(popcount(label_word & label_column[j]))


@partial(compile_kernel, parallel=True)
def count_pairs(query: Any, codes: Any, query_labels: Any, labels: Any, bits: int, most: int) -> Any:
    queries, items = len(query), codes.shape[1]
    width = np.uint32(most + 1)
    histograms = np.zeros((queries, (bits + 1) * (most + 1)), np.int32)
    for q in numba.prange(queries):
        cells = np.empty(_TILE, np.uint32)
        histogram = histograms[q]
        for start in range(0, items, _TILE):
            stop = min(start + _TILE, items)
            fill_cells(cells, start, stop, query[q], codes, query_labels[q], labels, width)
            for j in range(stop - start):
                histogram[cells[j]] += 1
    return histograms.reshape(queries, bits + 1, most + 1)


@kernel
def sort_rows(keys: Any, values: Any) -> Any:
    """The values of each row in the order of its keys (uint32), equal ones by column: a radix sort in three passes."""
    rows, items = keys.shape
    ordered = np.empty_like(values)
    for row in range(rows):
        first, second = np.empty(items, np.uint32), np.empty(items, np.uint32)
        carried, target = np.empty_like(values[row]), ordered[row]
        places = np.zeros((3, 2048), np.int64)  # where the next item with these 11, 11 or 10 bits goes
        for i in range(items):
            key = keys[row, i]
            places[0, key & 2047] += 1
            places[1, (key >> 11) & 2047] += 1
            places[2, key >> 22] += 1
        for part in range(3):
            places[part] = np.cumsum(places[part]) - places[part]
        for i in range(items):
            key = keys[row, i]
            place = places[0, key & 2047]
            first[place], target[place] = key, values[row, i]
            places[0, key & 2047] = place + 1
        for i in range(items):
            key = first[i]
            place = places[1, (key >> 11) & 2047]
            second[place], carried[place] = key, target[i]
            places[1, (key >> 11) & 2047] = place + 1
        for i in range(items):
            part_of_key = second[i] >> 22
            target[places[2, part_of_key]] = carried[i]
            places[2, part_of_key] += 1
    return ordered
