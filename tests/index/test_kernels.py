"""The compiled scan: kept for the next process, right when hits come in the worst order, safe against damage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rmsh.index._kernels import scan as kernels
from rmsh.index.base import ROW_BITS, read_only

NO_MASK = read_only(np.empty(0, dtype=np.bool_))
NO_WORDS = read_only(np.empty(0, dtype=np.uint64))

SEARCH = """
import numpy as np
from rmsh.codes import Codes
from rmsh.index._kernels.scan import nearest
from rmsh.index.scan import Scan
codes = Codes.from_values(np.ones((3, 70)))
index = Scan(70)
index.add(codes)
index.search(codes, 2)
print(sum(nearest.stats.cache_hits.values()))
"""


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
    query = read_only(np.zeros((1, 1), dtype=np.uint64))
    falling = np.array([(1 << (63 - i // 25)) - 1 for i in range(1500)], dtype=np.uint64)
    for n in range(300, 1500, 7):
        words = read_only(falling[:n])
        keys = kernels.nearest(query, words, NO_WORDS, NO_MASK, NO_MASK, 0, n, k)[0]
        order = np.lexsort((np.arange(n), np.bitwise_count(words)))[:k]
        assert (keys & ((1 << ROW_BITS) - 1)).tolist() == order.tolist()


def test_bits_behind_the_end_of_a_code_lead_nowhere() -> None:
    """A file may be damaged; the kernels count whatever is there, within their arrays."""
    words = read_only(np.full(4, 2**64 - 1, dtype=np.uint64))
    query = read_only(np.zeros((1, 2), dtype=np.uint64))
    keys = kernels.nearest(query, words, NO_WORDS, NO_MASK, NO_MASK, 0, 2, 2)
    assert (keys >> ROW_BITS).tolist() == [[128, 128]]


@pytest.mark.parametrize("queries", [1, 9])
def test_a_search_ends_when_nothing_can_be_nearer(queries: int) -> None:
    words, query = read_only(np.zeros(4000, dtype=np.uint64)), read_only(np.zeros((queries, 1), dtype=np.uint64))
    keys, histograms = np.empty((queries, 700), dtype=np.int64), np.zeros((queries, 65), dtype=np.int64)
    states, nothing = np.tile([65, 0, 0], (queries, 1)), np.empty(0, dtype=np.int64)
    segment, found = kernels.Segment(words, 0, NO_MASK, NO_MASK), kernels.Nearest(300, keys, histograms)
    reached, _ = kernels.scan(query, segment, 0, 4000, states, found, nothing, nothing, 0)
    assert reached == 512  # two tiles of 256 hold the 300 nearest of all, at distance 0


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("queries", [1, 20])
def test_masked_codes_fill_tiles_across_both_segments(width: int, queries: int) -> None:
    rng = np.random.default_rng(width)
    words = rng.integers(0, 1 << 64, (3000, width), dtype=np.uint64)
    asked, where = rng.integers(0, 1 << 64, (queries, width), dtype=np.uint64), rng.random(3000) < 0.6
    base, tail = (read_only(part.reshape(-1)) for part in (words[:1300], words[1300:]))
    keys = kernels.nearest(read_only(asked), base, tail, NO_MASK, read_only(where), 5, 2990, 40)
    distances = np.bitwise_count(asked[:, None] ^ words[None]).sum(axis=2, dtype=np.int64)
    distances[:, ~where | (np.arange(3000) < 5) | (np.arange(3000) >= 2990)] = 1000
    order = np.argsort(distances, axis=1, kind="stable")[:, :40]
    np.testing.assert_array_equal(keys & ((1 << ROW_BITS) - 1), order)
