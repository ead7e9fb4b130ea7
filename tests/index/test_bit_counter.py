"""Many queries against the bit planes of a tile: every code is near exactly where its distance says so."""

from __future__ import annotations

import numba
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rmsh.index._kernels.bit_counter import BIAS, PLANES, next_near, pick_planes, slice_tile, write_bias
from rmsh.index._kernels.vectors import LANES, TILE
from rmsh.index.base import read_only


@numba.njit
def ask(planes, picks, biases, active, place, count, near):  # type: ignore[no-untyped-def]
    return next_near(planes, picks, biases, active, place, count, near)


def _near_codes(
    words: NDArray[np.uint64], queries: NDArray[np.uint64], thresholds: NDArray[np.int64], active: NDArray[np.int64]
) -> dict[int, list[int]]:
    """Which codes are near, for each query that has some."""
    width = words.shape[1]
    planes, room, near = np.empty(width * PLANES * LANES, np.uint64), np.empty(TILE, np.uint64), np.empty(4, np.uint64)
    slice_tile(read_only(words.reshape(-1)), 0, width, room, planes)
    picks, biases = pick_planes(read_only(queries)), np.empty((len(queries), BIAS), np.uint64)
    for q, threshold in enumerate(thresholds):
        write_bias(threshold, biases, q)
    found, place = {}, 0
    while (place := ask(planes, picks, biases, active, place, len(active), near)) < len(active):
        bits = near[None, :] >> np.arange(64, dtype=np.uint64)[:, None] & np.uint64(1)
        found[int(active[place])] = np.flatnonzero(bits.reshape(-1)).tolist()
        place += 1
    return found


@settings(deadline=None)  # the first example compiles
@given(data=st.data(), seed=st.integers(0, 10**6), width=st.integers(1, 8), noise=st.sampled_from([0.5, 0.1, 0.01]))
def test_codes_are_near_exactly_below_the_threshold(data: st.DataObject, seed: int, width: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    queries = rng.integers(0, 1 << 64, (7, width), dtype=np.uint64)
    flips = np.packbits(rng.random((TILE, 64 * width)) < noise, axis=1, bitorder="little").view(np.uint64)
    words = queries[0] ^ flips
    distances = np.bitwise_count(queries[:, None] ^ words[None]).sum(axis=2, dtype=np.int64)
    thresholds = np.array([data.draw(st.integers(1, 64 * width)) for _ in queries])
    thresholds[0] = max(1, int(np.median(distances[0])))  # so that some codes are at the threshold itself
    active = rng.permutation(7)[:5]
    near = {int(q): np.flatnonzero(distances[q] < thresholds[q]).tolist() for q in active}
    found = _near_codes(words, queries, thresholds, active)
    assert found == {q: codes for q, codes in near.items() if codes}
