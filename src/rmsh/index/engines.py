"""What the benchmark of searching compares: our indexes, those of others, and plain reading as the limit of a scan."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from rmsh.errors import require
from rmsh.index import INDEXES
from rmsh.index.workers import run_all

if TYPE_CHECKING:
    from rmsh.codes import Codes
    from rmsh.types import IntArray, WordArray

__all__ = ["ENGINES", "Engine", "installed"]


class Engine(ABC):
    """Something that is asked for the nearest codes."""

    note = ""  # what it has to say about its last search

    @abstractmethod
    def search(self, queries: Codes, k: int) -> IntArray | None:
        """The distances of the k nearest, (Q, k), or None where it does not look for them."""


class _Ours(Engine):
    def __init__(self, kind: str, words: WordArray, bits: int, threads: int) -> None:
        self.index = INDEXES.load(kind).over(words, bits, threads=threads)

    def search(self, queries: Codes, k: int) -> IntArray:
        distances: IntArray = self.index.search(queries, k).distances
        chosen = getattr(self.index, "chosen", None)
        self.note = "" if chosen is None else f"{chosen.engine}: {chosen.reason}"
        return distances


class _Memory(Engine):
    """Reads every code once a batch and combines the words, each thread its part: no scan for one query is faster."""

    def __init__(self, words: WordArray, bits: int, threads: int) -> None:  # noqa: ARG002
        self.parts = np.array_split(words.reshape(-1), threads)

    def search(self, queries: Codes, k: int) -> None:  # noqa: ARG002
        run_all([partial(np.bitwise_xor.reduce, part) for part in self.parts])


class _Faiss(Engine):
    """IndexBinaryFlat at the better of its plainest instructions and those it would choose, for each size of batch."""

    def __init__(self, words: WordArray, bits: int, threads: int) -> None:
        self.faiss = require("faiss", "bench")
        self.faiss.omp_set_num_threads(threads)
        size = -(-bits // 8)
        self.index = self.faiss.IndexBinaryFlat(8 * size)
        self.index.add(np.ascontiguousarray(words.view(np.uint8)[:, :size]))
        dispatch = getattr(self.faiss, "SIMDConfig", None)  # before 1.13 a level was chosen when importing
        self.levels = [0, dispatch.auto_detect_simd_level()] if dispatch is not None else []
        self.better: dict[int, int] = {}

    def search(self, queries: Codes, k: int) -> IntArray:
        if self.levels and len(queries) not in self.better:
            self.better[len(queries)] = min(self.levels, key=partial(self._seconds, queries, k))
        if self.levels:
            self.faiss.SIMDConfig.set_level(self.better[len(queries)])
            self.note = f"at its level {self.faiss.SIMDConfig.get_level_name()}"
        distances, _ = self.index.search(queries.packed, k)
        return np.asarray(distances)

    def _seconds(self, queries: Codes, k: int, level: int) -> float:
        self.faiss.SIMDConfig.set_level(level)
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            self.index.search(queries.packed[:32], k)
            seconds.append(time.perf_counter() - start)
        return min(seconds)


class _Usearch(Engine):
    """Its exact search, without an index."""

    def __init__(self, words: WordArray, bits: int, threads: int) -> None:
        self.usearch, self.threads = require("usearch.index", "bench"), threads
        self.packed = np.ascontiguousarray(words.view(np.uint8)[:, : -(-bits // 8)])

    def search(self, queries: Codes, k: int) -> IntArray:
        metric = self.usearch.MetricKind.Hamming
        found = self.usearch.search(self.packed, queries.packed, k, metric, exact=True, threads=self.threads)
        return np.atleast_2d(found.distances).astype(np.int64)


ENGINES: Mapping[str, Callable[[WordArray, int, int], Engine]] = {
    "memory": _Memory,
    "scan": partial(_Ours, "scan"),
    "mih": partial(_Ours, "mih"),
    "auto": partial(_Ours, "auto"),
    "faiss": _Faiss,
    "usearch": _Usearch,
}


def installed() -> list[str]:
    """The engines that can be had here: ours, and those of others that are installed."""
    needs = {"faiss": "faiss", "usearch": "usearch"}
    return [name for name in ENGINES if name not in needs or find_spec(needs[name]) is not None]
