"""The compiled kernel of evaluation: counts all pairs of query and database item by distance and shared labels.

Words are stored column by column (words, items), so that LLVM vectorises the bit counts of one word over many items;
the histogram is then incremented item by item.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numba
import numpy as np

from rmsh.core.compiled import compile_kernel, popcount

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
