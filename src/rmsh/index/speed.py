"""How fast searching is: our indexes beside others, in turns in one process, medians, and the limit of memory.

Every engine answers the same queries; what they answer is compared, so that a fast wrong answer is noticed.

Codes to measure searching with, as words: uniform, clustered, or learned ones made more by noise.

What the benchmark of searching compares: our indexes, those of others, and plain reading as the limit of a scan.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rmsh.codes import Codes, check_bits, pack, to_words
from rmsh.codes_file import CodesFile
from rmsh.core.errors import ConfigError, InputError, RmshError, require
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.index import INDEXES
from rmsh.index.scan import run_all

if TYPE_CHECKING:
    from rmsh.core.types import IntArray, WordArray

# Makes so many codes, uint64 (n, width), from a seed: the codes searched and the queries are two seeds of one maker.
Maker: TypeAlias = Callable[[int, int], "WordArray"]

_CENTRES = 2000
_FLIPPED = 0.05  # of the bits
_BLOCK = 1 << 18  # items made at once


def uniform(items: int, bits: int, *, seed: int = 0) -> WordArray:
    """Independent fair bits: the hardest codes, no item has near neighbours.

    Example:
        >>> uniform(3, 65).shape
        (3, 2)
    """
    words = np.random.default_rng(seed).integers(0, 1 << 64, (items, -(-bits // 64)), dtype=np.uint64)
    words[:, -1] >>= np.uint64(-bits % 64)
    return words


def clustered(items: int, bits: int, *, seed: int = 0) -> WordArray:
    """Codes around 2,000 centres, which are the same for every seed, 5 % of the bits flipped."""
    return enlarged(uniform(_CENTRES, bits, seed=_CENTRES), items, bits=bits, share=_FLIPPED, seed=seed)


def enlarged(words: WordArray, items: int, *, bits: int, share: float = 0.02, seed: int = 0) -> WordArray:
    """As many codes as asked for: given ones drawn at random, with a share of their bits flipped.

    Raises:
        InputError: there are no codes to start from.

    Example:
        >>> enlarged(uniform(2, 8), 5, bits=8, share=0.0).shape
        (5, 1)
    """
    if not len(words):
        raise InputError("No codes were given to make more of; give a codes file with at least one item.")
    rng = np.random.default_rng(seed)
    more = np.empty((items, words.shape[1]), dtype=np.uint64)
    for start in range(0, items, _BLOCK):
        rows = rng.integers(0, len(words), min(_BLOCK, items - start))
        noise = rng.random((len(rows), bits), dtype=np.float32) < share
        more[start : start + len(rows)] = words[rows] ^ to_words(pack(noise))
    return more


def made(kind: str, bits: int) -> Maker:
    """A maker of codes by name, "clustered" or "uniform".

    Raises:
        ConfigError: there is no such kind.
        CodesError: the length is out of range.

    Example:
        >>> len(made("uniform", 16)(5, 0))
        5
    """
    makers = {"clustered": clustered, "uniform": uniform}
    if kind not in makers:
        raise ConfigError(f"Codes of the kind {kind!r} were asked for; give clustered or uniform, or a codes file.")
    length = check_bits(bits)
    return lambda items, seed: makers[kind](items, length, seed=seed)


def from_file(path: Path) -> tuple[Maker, int]:
    """A maker of codes like those of a codes file, of pictures and texts where it has both; and their length."""
    file = CodesFile.load(path)
    parts = [to_words(packed) for packed in (file.image, file.text) if packed is not None]
    words = np.concatenate(parts)
    return lambda items, seed: enlarged(words, items, bits=file.bits, seed=seed), file.bits


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


_ROUNDS = 7
_LEAST_SECONDS = 0.2  # of one engine in one round: short searches are repeated
_MOST_SECONDS = 40.0  # of a batch size: no further round begins, except for the first three


@dataclass(frozen=True)
class Measured:
    """How fast one engine answered one kind of batch.

    Args:
        engine: its name in ``ENGINES``.
        batch: queries asked at once.
        queries_per_second: the median over rounds.
        seconds_to_build: adding the codes and whatever it prepares.
        note: what it chose, where it chooses.
    """

    engine: str
    batch: int
    queries_per_second: float
    seconds_to_build: float
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def measure(
    words: WordArray,
    queries: WordArray,
    *,
    bits: int,
    engines: Sequence[str] = ("memory", "scan", "mih", "auto"),
    batches: Sequence[int] = (1, 32, 1000),
    k: int = 100,
    threads: int = 1,
    on_progress: OnProgress = ignore,
) -> list[Measured]:
    """Time engines in turns over batches of the queries.

    Args:
        words: the codes that are searched, uint64 (n, width).
        queries: uint64 (m, width).
        bits: the length of a code.
        engines: names in ``ENGINES``.
        batches: how many queries are asked at once, of at most m.
        k: how many neighbours.
        threads: how many an engine may use.
        on_progress: is told of every batch.

    Raises:
        ConfigError: an engine is unknown, or a batch is larger than the number of queries.
        RmshError: two engines disagree about the distances.
        MissingExtraError: an engine of others is not installed.
    """
    unknown = sorted(set(engines) - set(ENGINES))
    if unknown or not batches or max(batches) > len(queries):
        raise ConfigError(
            f"Engines {', '.join(engines)} were asked for batches of {', '.join(map(str, batches))}; known engines are "
            f"{', '.join(ENGINES)}, and there are {len(queries)} queries to make batches of."
        )
    asked = _codes(queries, bits)
    started, results = time.monotonic(), []
    built = {name: _built(name, words, asked, k=k, threads=threads) for name in engines}
    for done, batch in enumerate(batches, 1):
        rates = _in_turns({name: engine for name, (engine, _) in built.items()}, asked, batch=batch, k=k)
        for name, rate in rates.items():
            engine, seconds = built[name]
            results.append(Measured(name, batch, rate, seconds, engine.note))
        on_progress(Progress("measure", done, len(batches), "batch size", time.monotonic() - started))
    return results


def _codes(words: WordArray, bits: int) -> Codes:
    packed = words.view(np.uint8)[:, : -(-bits // 8)]
    return Codes(np.ascontiguousarray(packed), bits, np.arange(len(words)).astype(np.str_))


def _built(name: str, words: WordArray, queries: Codes, *, k: int, threads: int) -> tuple[Engine, float]:
    """An engine over the codes after its first search, which compiles and builds tables, and its seconds."""
    start = time.perf_counter()
    engine = ENGINES[name](words, queries.bits, threads)
    engine.search(queries.take(np.arange(1)), k)
    return engine, time.perf_counter() - start


def _in_turns(engines: Mapping[str, Engine], queries: Codes, *, batch: int, k: int) -> dict[str, float]:
    """Queries a second of each engine, the median over rounds in which each is asked in turn."""
    asked = [queries.take(np.arange(batch) + start) for start in range(0, len(queries) - batch + 1, batch)]
    _agree(engines, asked[0], k)
    rates: dict[str, list[float]] = {name: [] for name in engines}
    begun = time.perf_counter()
    for done in range(_ROUNDS):
        if done >= 3 and time.perf_counter() - begun > _MOST_SECONDS:
            break
        for name, engine in engines.items():
            count, start = 0, time.perf_counter()
            while (spent := time.perf_counter() - start) < _LEAST_SECONDS:
                engine.search(asked[count % len(asked)], k)
                count += 1
            rates[name].append(count * batch / spent)
    return {name: median(values) for name, values in rates.items()}


def _agree(engines: Mapping[str, Engine], queries: Codes, k: int) -> None:
    answers = {name: engine.search(queries, k) for name, engine in engines.items()}
    given = {name: answer for name, answer in answers.items() if answer is not None}
    for name, answer in given.items():
        first = next(iter(given))
        if not np.array_equal(answer, given[first]):
            raise RmshError(
                f"{name} and {first} disagree about the distances of the {k} nearest; one of them is wrong."
            )
