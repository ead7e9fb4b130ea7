"""The comparison of a tile with one query: exact for every width, in vectors, with and without AVX-512."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmsh.index._kernels.vectors import LANES, TILE, mark_near
from rmsh.index.base import read_only

COMPARE = """
import numpy as np
from rmsh.codes import Codes
from rmsh.index.brute import Brute
from rmsh.index.scan import Scan
rng = np.random.default_rng(0)
for width in range(1, 9):
    codes = Codes.from_values(rng.standard_normal((900, 64 * width)))
    scan, brute = (kind.over(codes.words(), codes.bits) for kind in (Scan, Brute))
    for queries in (codes.take(np.arange(count)) for count in (1, 4, 20)):
        assert np.array_equal(scan.search(queries, 300).rows, brute.search(queries, 300).rows)
print("equal")
"""


@numba.njit
def mark(words, at, queries, q, threshold, near):  # type: ignore[no-untyped-def]
    return mark_near(words, at, queries, q, threshold, near)


@settings(deadline=None)  # the first example compiles
@given(st.data(), st.integers(0, 10**6), st.integers(1, 8), st.integers(0, 9))
def test_exactly_the_codes_below_the_threshold_are_marked(data: st.DataObject, seed: int, width: int, at: int) -> None:
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 1 << 64, at + TILE * width, np.uint64)
    queries, near = rng.integers(0, 1 << 64, (3, width), np.uint64), np.empty(LANES, np.uint64)
    distances = np.bitwise_count(words[at:].reshape(TILE, width) ^ queries[1]).sum(axis=1, dtype=np.int64)
    threshold = data.draw(st.sampled_from([0, int(distances.min()), *np.sort(distances)[:9].tolist(), 64 * width + 1]))
    some = mark(read_only(words), at, read_only(queries), 1, threshold, near)
    bits = near[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    assert (np.flatnonzero(bits).tolist(), some) == (np.flatnonzero(distances < threshold).tolist(), bits.any())


def test_bits_are_counted_in_vectors() -> None:
    """With SSE or AVX2 counts of bytes are added by psadbw, AVX-512 counts words, ARM counts bytes of a vector."""
    words, query = read_only(np.zeros(TILE, np.uint64)), read_only(np.zeros((1, 1), np.uint64))
    mark(words, 0, query, 0, 1, np.empty(LANES, np.uint64))
    assert re.search(r"psadbw|vpopcntq|cnt\s*v\d|cnt\.16b", "".join(mark.inspect_asm().values()))


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names processors of Intel")
@pytest.mark.parametrize("processor", ["haswell", "nehalem"])  # with AVX2; with SSE 4.2 only
def test_searches_are_exact_on_older_processors(processor: str, tmp_path: Path) -> None:
    settings = {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", COMPARE]
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "equal"
