"""The codes of an index: rows, growth without copying, and invalid bases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.core.errors import CodesError
from rmsh.index.brute import Brute


def _words(*numbers: int) -> Any:
    return np.array(numbers, dtype=np.uint64)[:, None]


def _codes(*numbers: int) -> Codes:
    return Codes(_words(*numbers).view(np.uint8), 64, np.arange(len(numbers)).astype(np.str_))


def test_the_base_is_not_copied_and_the_tail_follows_it() -> None:
    base = _words(1, 2, 3)
    index = Brute.over(base, 64)
    assert index.add(_codes(4, 5)).tolist() == [3, 4]
    held, tail = index.segments
    assert np.shares_memory(held, base)
    assert tail.ravel().tolist() == [4, 5]


def test_adding_one_by_one_moves_the_tail_rarely() -> None:
    index, places = Brute(64), set()
    for number in range(1000):
        index.add(_codes(number))
        places.add(index.segments[1].ctypes.data)
    assert len(places) < 15
    assert index.segments[1].ravel().tolist() == list(range(1000))


def test_arrays_for_kernels_are_read_only() -> None:
    index = Brute.over(_words(1), 64)
    index.add(_codes(2))
    index.remove([0])
    for array in (*index.segments, index.alive):
        assert array is not None
        assert not array.flags.writeable


def test_earlier_views_do_not_change_when_codes_are_added() -> None:
    index = Brute(64)
    index.add(_codes(1))
    before = index.segments[1]
    index.add(_codes(2, 3, 4))
    assert before.ravel().tolist() == [1]


@pytest.mark.parametrize(
    "base",
    [
        np.zeros((2, 1), dtype=np.int64),
        np.zeros((2, 2), dtype=np.uint64),
        np.zeros(2, dtype=np.uint64),
        np.zeros((4, 1), dtype=np.uint64)[::2],
    ],
)
def test_a_base_of_another_shape_is_refused(base: Any) -> None:
    with pytest.raises(CodesError, match=r"C-contiguous uint64 \(n, 1\)"):
        Brute.over(base, 64)
