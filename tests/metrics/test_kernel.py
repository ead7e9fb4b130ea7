"""The compiled kernel: its machine code is kept for the next process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COUNT = """
import numpy as np
from rmsh.metrics.kernel import count_pairs
word = np.ones((1, 1), dtype=np.uint64)
count_pairs(word, word, word, word, 1, 1)
print(sum(count_pairs.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_the_second_process_finds_the_machine_code_of_the_first(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run([sys.executable, "-c", COUNT], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [int(run.stdout) for run in runs] == [0, 1]
