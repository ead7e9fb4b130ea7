"""The exact scan: compares every code, as fast as memory or the processor allows.

For a few queries the codes are divided among the threads and the partial results merged; many queries are divided
themselves. Threads are Python threads, because the kernels release the GIL.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rmsh.core.errors import ConfigError
from rmsh.core.types import BitArray, IntArray, WordArray
from rmsh.index.base import Hits, Neighbours, StoredIndex, read_only, to_hits, to_neighbours

T = TypeVar("T")

_WORDS_PER_THREAD = 1 << 20  # below this, waking another thread costs more than it saves: a tenth of a millisecond
_QUERIES_PER_THREAD = 8  # below this, the queries of a thread do not keep it busier than reading memory does
_BLOCK_BYTES = 1 << 19  # hits kept for the queries of one block: they fit the cache of a core
_BLOCK_QUERIES = 64  # least size of a block, so that the work shared by its queries pays off

_NO_MASK = read_only(np.empty(0, dtype=np.bool_))


class Scan(StoredIndex):
    """The exact index that compares every code.

    Args:
        bits: number of bits per code, 1 to 512.
        threads: maximum number of threads; None uses all available.

    Raises:
        ConfigError: ``threads`` is not a positive integer.

    Example:
        >>> from rmsh.codes import Codes
        >>> index = Scan(3, threads=1)
        >>> rows = index.add(Codes.from_values([[1, 1, 1], [1, 1, -1], [1, -1, 1]]))
        >>> index.within(Codes.from_values([[1, 1, 1]]), 1, where=rows != 1).of(0)
        (array([0, 2]), array([0, 1], dtype=int32))
    """

    def __init__(self, bits: int, *, threads: int | None = None) -> None:
        super().__init__(bits)
        self.threads = check_threads(threads)

    def _nearest(self, words: WordArray, k: int, where: BitArray | None) -> Hits:
        from rmsh.index._kernels.scan import nearest, split_keys

        inputs, size = self._kernel_inputs(where), max(_BLOCK_QUERIES, _BLOCK_BYTES // (16 * k))
        tasks = _divide(len(words), self.row_count, width=self.width, threads=self.threads)
        if len(tasks) == 1 and len(words) <= size:  # by the shortest way: a scan leaves no Python in the caches
            return to_hits(nearest(read_only(words), *inputs, 0, self.row_count, k), split_keys)

        def run(task: _Task) -> IntArray:
            starts = range(task.queries.start, task.queries.stop, size)
            blocks = [read_only(words[start : min(start + size, task.queries.stop)]) for start in starts]
            return np.concatenate([nearest(queries, *inputs, task.first, task.end, k) for queries in blocks])

        found = run_all([partial(run, task) for task in tasks])
        if len(tasks) == 1 or tasks[0].queries != tasks[-1].queries:
            return to_hits(np.concatenate(found))
        return to_hits(np.sort(np.concatenate(found, axis=1), axis=1)[:, :k])

    def _within(self, words: WordArray, radius: int, where: BitArray | None) -> Neighbours:
        from rmsh.index._kernels.scan import within

        inputs = self._kernel_inputs(where)

        def run(task: _Task) -> tuple[IntArray, IntArray]:
            owners, keys = within(read_only(words[task.queries]), *inputs, task.first, task.end, radius)
            return owners + task.queries.start, keys

        tasks = _divide(len(words), self.row_count, width=self.width, threads=self.threads)
        owners, keys = zip(*run_all([partial(run, task) for task in tasks]), strict=True)
        return to_neighbours(np.concatenate(owners), np.concatenate(keys), queries=len(words))

    def _kernel_inputs(self, where: BitArray | None) -> tuple[Any, Any, Any, Any]:
        """Base and tail, and both masks, empty if they admit all rows."""
        alive = _NO_MASK if self.alive is None else self.alive
        return *self.segments, alive, _NO_MASK if where is None else read_only(where)


def check_threads(threads: int | None) -> int:
    """Return a number of threads, for None all that this process may use, or raise ConfigError."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise ConfigError(f"Got threads = {threads!r}; give an integer of at least 1, or None for all.")
    return threads


class _Task(NamedTuple):
    """The work of one thread: these queries against the rows first..end."""

    queries: slice
    first: int
    end: int


def _divide(queries: int, rows: int, *, width: int, threads: int) -> list[_Task]:
    """Divide a search into one task per thread, by queries if there are many, otherwise by rows."""
    count = max(1, min(threads, queries * rows * width // _WORDS_PER_THREAD))
    if count == 1:
        return [_Task(slice(0, queries), 0, rows)]
    by_queries = queries >= count * _QUERIES_PER_THREAD
    ranges = pairwise((queries if by_queries else rows) * i // count for i in range(count + 1))
    if by_queries:
        return [_Task(slice(a, b), 0, rows) for a, b in ranges]
    return [_Task(slice(0, queries), a, b) for a, b in ranges]


def run_all(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run tasks concurrently, the first one in this thread, and return their results in order."""
    others = [_pool(os.getpid()).submit(task) for task in tasks[1:]]
    return [tasks[0](), *(task.result() for task in others)]


@cache  # per process: threads do not survive a fork
def _pool(_process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=256, thread_name_prefix="rmsh-search")  # threads start on demand
