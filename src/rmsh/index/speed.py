"""The speed of the scan on this machine, which searches a library: queries per second over random codes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rmsh.codes import Codes, check_bits
from rmsh.core.errors import ConfigError
from rmsh.index.scan import Scan

if TYPE_CHECKING:
    from rmsh.core.types import WordArray

BATCHES = (1, 32, 1000)  # queries per call
MOST_QUERIES = 1000
_SECONDS = 2.0  # per batch size: short searches are repeated


def uniform(items: int, bits: int, *, seed: int = 0) -> WordArray:
    """Independent fair bits, uint64 (items, width): the hardest codes, because no item has near neighbours."""
    words = np.random.default_rng(seed).integers(0, 1 << 64, (items, -(-check_bits(bits) // 64)), dtype=np.uint64)
    words[:, -1] >>= np.uint64(-bits % 64)
    return words


def to_codes(words: WordArray, bits: int) -> Codes:
    """Codes from their words, as queries."""
    packed = np.ascontiguousarray(words.view(np.uint8)[:, : -(-bits // 8)])
    return Codes(packed, bits, np.arange(len(words)).astype(np.str_))


def measure(
    items: int, bits: int, *, batches: Sequence[int] = BATCHES, k: int = 100, threads: int = 1
) -> dict[int, float]:
    """Queries per second for the k nearest of some random codes, by the number of queries per call."""
    if max(batches) > MOST_QUERIES:
        raise ConfigError(f"Got batches of {', '.join(map(str, batches))} queries; give 1 to {MOST_QUERIES}.")
    index, rates = Scan.over(uniform(items, bits), bits, threads=threads), {}
    for batch in batches:
        queries, count = to_codes(uniform(batch, bits, seed=1), bits), 0
        index.search(queries, k)  # compiles or loads machine code
        start = time.perf_counter()
        while (spent := time.perf_counter() - start) < _SECONDS:
            index.search(queries, k)
            count += batch
        rates[batch] = count / spent
    return rates
