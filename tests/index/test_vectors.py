"""The test of a tile for a few queries: exact, and in vectors."""

from __future__ import annotations

import re

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmsh.index._kernels.vectors import STEP, may_hold_nearer
from rmsh.index.store import read_only


@numba.njit
def ask(words, at, codes, queries, q, threshold):  # type: ignore[no-untyped-def]
    return may_hold_nearer(words, at, codes, queries, q, threshold)


@settings(deadline=None)  # the first example compiles
@given(st.integers(0, 10**6), st.sampled_from([1, 2]), st.integers(1, 5), st.integers(0, 7))
def test_it_is_true_exactly_where_a_code_is_nearer(seed: int, width: int, steps: int, at: int) -> None:
    rng = np.random.default_rng(seed)
    words, queries = rng.integers(0, 1 << 64, 8 + 5 * STEP, np.uint64), rng.integers(0, 1 << 64, (3, width), np.uint64)
    codes = steps * STEP // width
    looked_at = words[at : at + steps * STEP].reshape(codes, width)
    least = int(np.bitwise_count(looked_at ^ queries[1]).sum(axis=1, dtype=np.int64).min())
    assert ask(read_only(words), at, codes, read_only(queries), 1, least + 1)
    assert not ask(read_only(words), at, codes, read_only(queries), 1, least)


@pytest.mark.parametrize(("width", "codes"), [(1, STEP - 1), (2, STEP + 3), (3, STEP)])
def test_it_is_true_for_what_it_does_not_count(width: int, codes: int) -> None:
    words, queries = np.zeros(width * codes, np.uint64), np.full((1, width), 2**64 - 1, np.uint64)
    assert ask(read_only(words), 0, codes, read_only(queries), 0, 1)


def test_bits_are_counted_in_vectors() -> None:
    """With SSE or AVX2 counts of bytes are added by psadbw, AVX-512 counts words, ARM counts bytes of a vector."""
    ask(read_only(np.zeros(STEP, np.uint64)), 0, STEP, read_only(np.zeros((1, 1), np.uint64)), 0, 1)
    assembly = "".join(ask.inspect_asm().values())
    assert re.search(r"psadbw|vpopcntq|cnt\s*v\d|cnt\.16b", assembly)
