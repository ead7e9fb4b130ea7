"""The scan: how work is divided among threads, and what happens without numba."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.core.errors import ConfigError
from rmsh.index.scan import Scan, _divide, check_threads, run_all

FORK = """
import os
import numpy as np
from rmsh.codes import Codes
from rmsh.index import scan
scan._WORDS_PER_THREAD = 1
codes = Codes.from_values(np.ones((300, 64)))
index = scan.Scan(64, threads=2)
index.add(codes)
index.search(codes, 2)
child = os.fork() if hasattr(os, "fork") else 0
rows = index.search(codes.take(np.arange(1)), 2).rows.tolist()
if child:  # one pipe, one writer at a time
    assert os.waitpid(child, 0)[1] == 0
print(rows, flush=True)
"""


def _codes(n: int, bits: int = 70) -> Codes:
    return Codes.from_values(np.random.default_rng(n).standard_normal((n, bits)))


@pytest.mark.parametrize("queries", [1, 7, 31, 32, 1000])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_tasks_cover_every_query_and_row_once(queries: int, threads: int) -> None:
    tasks = _divide(queries, 10**7, width=1, threads=threads)
    assert len(tasks) == threads
    if queries >= 8 * threads:
        assert {(task.first, task.end) for task in tasks} == {(0, 10**7)}
        cuts = [(task.queries.start, task.queries.stop) for task in tasks]
        assert (cuts[0][0], cuts[-1][1]) == (0, queries)
    else:
        assert {(task.queries.start, task.queries.stop) for task in tasks} == {(0, queries)}
        cuts = [(task.first, task.end) for task in tasks]
        assert (cuts[0][0], cuts[-1][1]) == (0, 10**7)
    assert all(before[1] == after[0] for before, after in pairwise(cuts))


def test_a_small_search_uses_one_thread() -> None:
    assert len(_divide(1, 1000, width=1, threads=8)) == 1


def test_blocks_of_few_queries_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    index = Scan(70, threads=1)
    index.add(_codes(300))
    expected = index.search(_codes(20), 40)
    monkeypatch.setattr("rmsh.index.scan._BLOCK_BYTES", 1)
    monkeypatch.setattr("rmsh.index.scan._BLOCK_QUERIES", 3)
    np.testing.assert_array_equal(index.search(_codes(20), 40).rows, expected.rows)


def test_a_forked_process_starts_its_own_threads() -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORK]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    processes = 2 if hasattr(os, "fork") else 1
    assert done.stdout.splitlines() == ["[[0, 1]]"] * processes


def test_all_threads_are_used_by_default() -> None:
    assert Scan(8).threads == check_threads(None) >= 1


@pytest.mark.parametrize("threads", [0, -2, 1.5, True])
def test_an_invalid_number_of_threads_is_refused(threads: int) -> None:
    with pytest.raises(ConfigError, match=f"threads = {threads}"):
        Scan(8, threads=threads)


def test_the_error_of_one_task_is_raised() -> None:
    def fail() -> int:
        raise ConfigError("of a task")

    with pytest.raises(ConfigError, match="of a task"):
        run_all([lambda: 1, fail])
