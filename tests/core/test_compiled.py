"""Compiling without a writable cache folder, and the bit count."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest

from rmsh.core import compiled
from rmsh.core.compiled import compile_kernel, popcount


def test_a_kernel_compiles_where_no_folder_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    real = numba.njit

    def njit(**options: Any) -> Any:
        if options.pop("cache", False):
            raise RuntimeError("cannot cache function: no locator available")
        return real(**options)

    monkeypatch.setattr(compiled, "numba", SimpleNamespace(njit=njit))
    assert compile_kernel(lambda x: x + 1)(2) == 3


def test_popcount_counts_the_ones_of_a_whole_word() -> None:
    count = numba.njit(lambda word: popcount(word))
    assert [count(np.uint64(word)) for word in (0, 1, 2**63, 2**64 - 1)] == [0, 1, 1, 64]
