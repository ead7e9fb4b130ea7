"""The codes of an index: rows, growth without copying, and invalid bases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rmsh.core.errors import CodesError
from rmsh.index.store import CodeStore


def _words(*numbers: int) -> Any:
    return np.array(numbers, dtype=np.uint64)[:, None]


def test_the_base_is_not_copied_and_the_tail_follows_it() -> None:
    base = _words(1, 2, 3)
    store = CodeStore(64, base)
    assert store.append(_words(4, 5)).tolist() == [3, 4]
    held, tail = store.segments
    assert np.shares_memory(held, base)
    assert tail.ravel().tolist() == [4, 5]


def test_adding_one_by_one_moves_the_tail_rarely() -> None:
    store, places = CodeStore(64), set()
    for number in range(1000):
        store.append(_words(number))
        places.add(store.segments[1].ctypes.data)
    assert len(places) < 15
    assert store.segments[1].ravel().tolist() == list(range(1000))


def test_arrays_for_kernels_are_read_only() -> None:
    store = CodeStore(64, _words(1), alive=np.array([True]))
    store.append(_words(2))
    for array in (*store.segments, store.alive):
        assert array is not None
        assert not array.flags.writeable


def test_earlier_views_do_not_change_when_codes_are_added() -> None:
    store = CodeStore(64)
    store.append(_words(1))
    before = store.segments[1]
    store.append(_words(2, 3, 4))
    assert before.ravel().tolist() == [1]


def test_removing_does_not_change_the_mask_passed_in() -> None:
    alive = np.array([True, False])
    store = CodeStore(64, _words(1, 2), alive=alive)
    store.remove(np.array([0]))
    assert (len(store), alive.tolist()) == (0, [True, False])
    assert store.admitted(np.array([True, True])) == 0


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
    with pytest.raises(CodesError, match=r"uint64 array of shape \(n, 1\)"):
        CodeStore(64, base)


@pytest.mark.parametrize("alive", [np.ones(3, dtype=np.bool_), np.ones(2, dtype=np.uint8)])
def test_a_mask_of_another_shape_than_the_base_is_refused(alive: Any) -> None:
    with pytest.raises(CodesError, match="base of 2 rows"):
        CodeStore(64, _words(1, 2), alive=alive)
