"""The exact scan: every code is compared, as fast as memory or the processor allows.

One query, or a few, share the codes among the threads, and the parts are merged; many queries are shared out
themselves. Where numba is missing, ``brute.py`` serves, with the same results.

Running parts of one search side by side, in threads of Python: the kernels release the GIL.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from rmsh.core.errors import ConfigError
from rmsh.index import brute
from rmsh.index.base import to_hits, to_neighbours
from rmsh.index.store import CodeStore, sealed
from rmsh.index.stored import StoredIndex

if TYPE_CHECKING:
    from rmsh.core.types import BitArray, IntArray, WordArray
    from rmsh.index.base import Hits, Neighbours

T = TypeVar("T")


def check_threads(threads: int | None) -> int:
    """Return how many threads to use, all that this process may where None is given, or refuse the number.

    Example:
        >>> check_threads(2)
        2
    """
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise ConfigError(f"{threads!r} threads were asked for; give a whole number of at least 1, or None for all.")
    return threads


@cache  # by process: threads do not survive a fork
def _pool(_process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=256, thread_name_prefix="rmsh-search")  # started as they are needed


def run_all(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run tasks at the same time, the first in this thread, and return what they return, in their order.

    Example:
        >>> run_all([lambda: 1, lambda: 2])
        [1, 2]
    """
    others = [_pool(os.getpid()).submit(task) for task in tasks[1:]]
    return [tasks[0](), *(task.result() for task in others)]


_WORDS_A_THREAD = 1 << 20  # below, waking another thread costs more than it saves: a tenth of a millisecond
_QUERIES_A_THREAD = 8  # below, the queries of a thread do not keep it busier than reading memory does
_BLOCK_BYTES = 1 << 19  # of the hits kept for the queries that are looked for at once: they stay in the cache of a core
_BLOCK_QUERIES = 64  # at least, so that what is done for all of them together pays

_NO_MASK = sealed(np.empty(0, dtype=np.bool_))


class Scan(StoredIndex):
    """The exact index that compares every code.

    Args:
        bits: the length of a code, 1 to 512.
        threads: how many to use at most; all where None.

    Example:
        >>> from rmsh.codes import Codes
        >>> index = Scan(3, threads=1)
        >>> rows = index.add(Codes.from_values([[1, 1, 1], [1, 1, -1], [1, -1, 1]]))
        >>> index.within(Codes.from_values([[1, 1, 1]]), 1, where=rows != 1).of(0)
        (array([0, 2]), array([0, 1], dtype=int32))
    """

    kind: ClassVar[str] = "scan"

    def __init__(self, bits: int, *, threads: int | None = None) -> None:
        super().__init__(bits)
        self.threads = check_threads(threads)

    def _nearest(self, words: WordArray, k: int, where: BitArray | None) -> Hits:
        if not has_kernels():
            return brute.nearest(self._store, words, k, where=where)
        return to_hits(nearest_keys(self._store, words, k, where=where, threads=self.threads))

    def _within(self, words: WordArray, radius: int, where: BitArray | None) -> Neighbours:
        if not has_kernels():
            return brute.within(self._store, words, radius, where=where)
        owners, keys = within_keys(self._store, words, radius, where=where, threads=self.threads)
        return to_neighbours(owners, keys, queries=len(words))


@cache  # so that the warning comes once
def has_kernels() -> bool:
    """Whether the compiled kernels can be had; warns where they cannot, because numba is not installed."""
    try:
        importlib.import_module("rmsh.index._kernels.scan")
    except ImportError:
        warnings.warn(
            "numba is not installed: searching compares with numpy, with the same results and many times slower; "
            "pip install numba.",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


def nearest_keys(
    store: CodeStore, words: WordArray, k: int, *, where: BitArray | None, threads: int, first: int = 0
) -> IntArray:
    """Sorted keys of the k nearest from a row on, int64 (Q, at most k); FAR where there are fewer."""
    parts = _parts(len(words), first, store.row_count, width=store.width, threads=threads)
    found = run_all([partial(_nearest_of, part, store, words, k, where) for part in parts])
    if parts[0].queries != parts[-1].queries:
        return np.concatenate(found)
    return found[0] if len(found) == 1 else np.sort(np.concatenate(found, axis=1), axis=1)[:, :k]


def within_keys(
    store: CodeStore, words: WordArray, radius: int, *, where: BitArray | None, threads: int, first: int = 0
) -> tuple[IntArray, IntArray]:
    """Queries and keys of all hits from a row on, int64 (hits,) each, in no order."""
    parts = _parts(len(words), first, store.row_count, width=store.width, threads=threads)
    found = run_all([partial(_within_of, part, store, words, radius, where) for part in parts])
    return np.concatenate([owners for owners, _ in found]), np.concatenate([keys for _, keys in found])


class _Part(NamedTuple):
    """What one thread does: these queries against the rows first..end."""

    queries: slice
    first: int
    end: int


def _parts(queries: int, first: int, end: int, *, width: int, threads: int) -> list[_Part]:
    """Cut a search into one part a thread, by queries where there are many, else by rows."""
    wanted = max(1, min(threads, queries * (end - first) * width // _WORDS_A_THREAD))
    if queries >= wanted * _QUERIES_A_THREAD:
        return [_Part(slice(a, b), first, end) for a, b in _cut(0, queries, wanted)]
    return [_Part(slice(0, queries), a, b) for a, b in _cut(first, end, wanted)]


def _cut(start: int, stop: int, count: int) -> Iterator[tuple[int, int]]:
    """Ranges of about the same size, one behind the other."""
    return pairwise(start + (stop - start) * i // count for i in range(count + 1))


def kernel_inputs(store: CodeStore, where: BitArray | None) -> tuple[Any, Any, Any, Any]:
    """Base and tail as flat words, and both masks, empty where all rows are admitted: as kernels take them."""
    base, tail = store.segments
    alive = _NO_MASK if store.alive is None else store.alive
    return base.reshape(-1), tail.reshape(-1), alive, _NO_MASK if where is None else sealed(where)


def _nearest_of(part: _Part, store: CodeStore, words: WordArray, k: int, where: BitArray | None) -> IntArray:
    from rmsh.index._kernels.scan import nearest

    base, tail, alive, mask = kernel_inputs(store, where)
    size = max(_BLOCK_QUERIES, _BLOCK_BYTES // (16 * k))
    found = []
    for start in range(part.queries.start, part.queries.stop, size):
        queries = sealed(words[start : min(start + size, part.queries.stop)])
        found.append(nearest(queries, base, tail, part.first, part.end, alive, mask, k))
    return found[0] if len(found) == 1 else np.concatenate(found)


def _within_of(
    part: _Part, store: CodeStore, words: WordArray, radius: int, where: BitArray | None
) -> tuple[IntArray, IntArray]:
    from rmsh.index._kernels.scan import within

    base, tail, alive, mask = kernel_inputs(store, where)
    owners, keys = within(sealed(words[part.queries]), base, tail, part.first, part.end, alive, mask, radius)
    return owners + part.queries.start, keys
