"""The compiled scan: vectorised, kept for the next process, and safe against damaged padding."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from rmsh.index import kernels
from rmsh.index.keys import ROW_BITS
from rmsh.index.store import sealed

NO_MASK = sealed(np.empty(0, dtype=np.bool_))
NO_WORDS = sealed(np.empty(0, dtype=np.uint64))

SEARCH = """
import numpy as np
from rmsh.codes import Codes
from rmsh.index.kernels import nearest
from rmsh.index.scan import Scan
codes = Codes.from_values(np.ones((3, 70)))
index = Scan(70)
index.add(codes)
index.search(codes, 2)
print(sum(nearest.stats.cache_hits.values()))
"""


@pytest.mark.parametrize("width", [1, 2, 5])
def test_the_test_of_a_tile_counts_bits_in_vectors(width: int) -> None:
    """With SSE or AVX2 counts of bytes are added by psadbw, AVX-512 counts words, ARM counts bytes of a vector."""
    holds_nearer = numba.njit(kernels.holds_nearer.py_func)  # type: ignore[attr-defined]
    tile, queries = sealed(np.zeros(64 * width, dtype=np.uint64)), sealed(np.ones((1, width), dtype=np.uint64))
    distances = np.empty(64, dtype=np.int64)
    assert holds_nearer(tile, queries, 0, width + 1, distances)
    assert not holds_nearer(tile, queries, 0, width, distances)
    (assembly,) = holds_nearer.inspect_asm().values()
    assert re.search(r"psadbw|vpopcntq|cnt\s*v\d|cnt\.16b", assembly)


@pytest.mark.slow
def test_the_second_process_finds_the_machine_code_of_the_first(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run([sys.executable, "-c", SEARCH], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [int(run.stdout) for run in runs] == [0, 1]


@pytest.mark.parametrize("k", [1, 2, 150, 170])
def test_hits_are_thrown_out_in_time_and_ties_are_kept(k: int) -> None:
    """The worst order: distances fall, so that the buffer of hits fills again and again, wherever the codes end."""
    query = sealed(np.zeros((1, 1), dtype=np.uint64))
    falling = np.array([(1 << (63 - i // 25)) - 1 for i in range(1500)], dtype=np.uint64)
    for n in range(300, 1500, 7):
        words = sealed(falling[:n])
        keys = np.sort(kernels.nearest(query, words, NO_WORDS, 0, n, NO_MASK, NO_MASK, k)[0])[:k]
        order = np.lexsort((np.arange(n), np.bitwise_count(words)))[:k]
        assert (keys & ((1 << ROW_BITS) - 1)).tolist() == order.tolist()


def test_bits_behind_the_end_of_a_code_lead_nowhere() -> None:
    """A file may be damaged; the kernels count whatever is there, within their arrays."""
    words = sealed(np.full(4, 2**64 - 1, dtype=np.uint64))
    query = sealed(np.zeros((1, 2), dtype=np.uint64))
    keys = kernels.nearest(query, words, NO_WORDS, 0, 2, NO_MASK, NO_MASK, 2)
    assert (keys >> ROW_BITS).tolist() == [[128, 128]]
