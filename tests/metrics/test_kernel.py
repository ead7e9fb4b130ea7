"""The compiled kernel: what it does where nothing can be kept on disk, and where it can."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

from rmsh.metrics.kernel import compile_kernel

COUNT = """
import numpy as np
from rmsh.metrics.kernel import count_pairs
word = np.ones((1, 1), dtype=np.uint64)
count_pairs(word, word, word, word, 1, 1)
print(sum(count_pairs.stats.cache_hits.values()))
"""


def test_a_kernel_compiles_where_no_folder_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    real = numba.njit

    def njit(**options: Any) -> Any:
        if options.pop("cache", False):
            raise RuntimeError("cannot cache function: no locator available")
        return real(**options)

    monkeypatch.setattr("numba.njit", njit)
    assert compile_kernel(lambda x: x + 1)(2) == 3


@pytest.mark.slow
def test_the_second_process_finds_the_machine_code_of_the_first(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run([sys.executable, "-c", COUNT], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [int(run.stdout) for run in runs] == [0, 1]
