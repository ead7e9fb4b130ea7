"""Brute force: it is the definition, so it is checked against the plain one of codes.py."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rmsh.codes import Codes, hamming
from rmsh.index.brute import Brute


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 512), st.integers(1, 40), st.integers(0, 99))
def test_the_nearest_are_the_first_of_all_pairs_sorted_by_distance_and_row(bits: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes, queries = (Codes.from_values(rng.choice([-1, 1], (count, bits))) for count in (n, 3))
    index = Brute(bits)
    index.add(codes)
    found = index.search(queries, 10)
    for q, distances in enumerate(hamming(queries.packed, codes.packed)):
        expected = sorted((distance, row) for row, distance in enumerate(distances))[:10]
        assert list(zip(found.distances[q], found.rows[q], strict=True)) == expected
