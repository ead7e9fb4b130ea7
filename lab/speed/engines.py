"""Search engines side by side: our index, faiss, usearch, and the limit set by memory, in turns in one process.

All engines receive the same queries, and their distances are compared, so that a fast wrong answer is noticed.
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
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import typer

from rmsh.codes import Codes, check_bits, pack, to_words
from rmsh.codes_file import CodesFile
from rmsh.core.errors import ConfigError, InputError, RmshError, require
from rmsh.index.scan import Scan, run_all

if TYPE_CHECKING:
    from rmsh.core.types import IntArray, WordArray

_CENTRES = 2000
_FLIPPED = 0.05  # share of the bits of clustered codes
_BLOCK = 1 << 18  # codes generated at once

_ROUNDS = 7
_LEAST_SECONDS = 0.2  # per engine and round: short searches are repeated
_MOST_SECONDS = 40.0  # per batch size: after three rounds no further round begins


def main(
    *,
    items: Annotated[int, typer.Option(min=1, help="Number of codes in the database.")] = 1_000_000,
    bits: Annotated[int, typer.Option(help="Code length, 1 to 512.")] = 64,
    kind: Annotated[str, typer.Option(help="Distribution of the codes: clustered or uniform.")] = "clustered",
    codes: Annotated[Path | None, typer.Option(help="Codes file to enlarge with noise instead.")] = None,
    batch: Annotated[list[int] | None, typer.Option(min=1, help="Queries per batch; repeatable.")] = None,
    k: Annotated[int, typer.Option(min=1, help="Number of neighbours.")] = 100,
    threads: Annotated[int, typer.Option(min=1, help="Threads per engine.")] = 1,
    engine: Annotated[list[str] | None, typer.Option(help="Engine to measure; repeatable.")] = None,
) -> None:
    """Measure the engines, by default all that are installed, and print a table; nothing is written."""
    if codes is None:
        words, queries = generate(kind, items, bits), generate(kind, 1000, bits, seed=1)
    else:
        stored, bits = read_words(codes)
        words, queries = enlarge(stored, items, bits=bits), enlarge(stored, 1000, bits=bits, seed=1)
    options: dict[str, Any] = {"engines": engine or installed(), "batches": batch or [1, 32, 1000]}
    measured = measure(words, queries, bits=bits, k=k, threads=threads, **options)
    print(pd.DataFrame([asdict(m) for m in measured]).round(1).to_string(index=False))


def generate(kind: str, items: int, bits: int, *, seed: int = 0) -> WordArray:
    """Generate clustered or uniform codes, uint64 (items, width); codes and queries use two seeds."""
    kinds = {"clustered": clustered, "uniform": uniform}
    if kind not in kinds:
        raise ConfigError(f"Got kind {kind!r} of codes; give clustered or uniform, or a codes file.")
    return kinds[kind](items, bits, seed=seed)


def uniform(items: int, bits: int, *, seed: int = 0) -> WordArray:
    """Independent fair bits, uint64 (items, width): the hardest codes, because no item has near neighbours."""
    words = np.random.default_rng(seed).integers(0, 1 << 64, (items, -(-check_bits(bits) // 64)), dtype=np.uint64)
    words[:, -1] >>= np.uint64(-bits % 64)
    return words


def to_codes(words: WordArray, bits: int) -> Codes:
    """Codes from their words, as queries."""
    packed = np.ascontiguousarray(words.view(np.uint8)[:, : -(-bits // 8)])
    return Codes(packed, bits, np.arange(len(words)).astype(np.str_))


def clustered(items: int, bits: int, *, seed: int = 0) -> WordArray:
    """Codes around 2,000 centres, the same for every seed, with 5 % of the bits flipped."""
    return enlarge(uniform(_CENTRES, bits, seed=_CENTRES), items, bits=bits, share=_FLIPPED, seed=seed)


def enlarge(words: WordArray, items: int, *, bits: int, share: float = 0.02, seed: int = 0) -> WordArray:
    """Draw codes at random from given ones, and flip a share of their bits."""
    if not len(words):
        raise InputError("Got no codes to multiply; give at least one.")
    rng = np.random.default_rng(seed)
    more = np.empty((items, words.shape[1]), dtype=np.uint64)
    for start in range(0, items, _BLOCK):
        rows = rng.integers(0, len(words), min(_BLOCK, items - start))
        noise = rng.random((len(rows), bits), dtype=np.float32) < share
        more[start : start + len(rows)] = words[rows] ^ to_words(pack(noise))
    return more


def read_words(path: Path) -> tuple[WordArray, int]:
    """The codes of all images and texts in a codes file, and their number of bits."""
    file = CodesFile.load(path)
    return np.concatenate([to_words(packed) for packed in (file.image, file.text) if packed is not None]), file.bits


class Engine(ABC):
    """A search engine over the codes it was created with."""

    note = ""  # a remark about its last search

    @abstractmethod
    def search(self, queries: Codes, k: int) -> IntArray | None:
        """Distances of the k nearest, (Q, k), or None if the engine does not compute them."""


class _Scan(Engine):
    """The index of a library."""

    def __init__(self, words: WordArray, bits: int, threads: int) -> None:
        self.index = Scan.over(words, bits, threads=threads)

    def search(self, queries: Codes, k: int) -> IntArray:
        return self.index.search(queries, k).distances.astype(np.int64)


class _Memory(Engine):
    """Reads every code once per batch and combines the words: no scan for a single query can be faster."""

    def __init__(self, words: WordArray, bits: int, threads: int) -> None:  # noqa: ARG002
        self.parts = np.array_split(words.reshape(-1), threads)

    def search(self, queries: Codes, k: int) -> None:  # noqa: ARG002
        run_all([partial(np.bitwise_xor.reduce, part) for part in self.parts])


class _Faiss(Engine):
    """IndexBinaryFlat at the faster of its baseline and its detected SIMD level, for each batch size."""

    def __init__(self, words: WordArray, bits: int, threads: int) -> None:
        self.faiss = require("faiss", "bench")
        self.faiss.omp_set_num_threads(threads)
        size = -(-bits // 8)
        self.index = self.faiss.IndexBinaryFlat(8 * size)
        self.index.add(np.ascontiguousarray(words.view(np.uint8)[:, :size]))
        dispatch = getattr(self.faiss, "SIMDConfig", None)  # before 1.13 the level was fixed at import
        self.levels = [0, dispatch.auto_detect_simd_level()] if dispatch is not None else []
        self.fastest: dict[int, int] = {}

    def search(self, queries: Codes, k: int) -> IntArray:
        if self.levels and len(queries) not in self.fastest:
            self.fastest[len(queries)] = min(self.levels, key=partial(self._seconds, queries, k))
        if self.levels:
            self.faiss.SIMDConfig.set_level(self.fastest[len(queries)])
            self.note = f"SIMD level {self.faiss.SIMDConfig.get_level_name()}"
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
    """usearch's exact search without an index."""

    def __init__(self, words: WordArray, bits: int, threads: int) -> None:
        self.usearch, self.threads = require("usearch.index", "bench"), threads
        self.packed = np.ascontiguousarray(words.view(np.uint8)[:, : -(-bits // 8)])

    def search(self, queries: Codes, k: int) -> IntArray:
        metric = self.usearch.MetricKind.Hamming
        found = self.usearch.search(self.packed, queries.packed, k, metric, exact=True, threads=self.threads)
        return np.atleast_2d(found.distances).astype(np.int64)


ENGINES: Mapping[str, Callable[[WordArray, int, int], Engine]] = {
    "memory": _Memory,
    "scan": _Scan,
    "faiss": _Faiss,
    "usearch": _Usearch,
}


def installed() -> list[str]:
    """The engines available here: ours, and installed ones of other libraries."""
    return [name for name in ENGINES if name not in ("faiss", "usearch") or find_spec(name) is not None]


@dataclass(frozen=True)
class Measured:
    """The speed of one engine at one batch size."""

    engine: str  # its name in ENGINES
    batch: int  # queries per call
    queries_per_second: float  # median over rounds
    seconds_to_build: float  # time to add the codes and prepare for searching
    note: str = ""  # a remark of the engine


def measure(
    words: WordArray,
    queries: WordArray,
    *,
    bits: int,
    engines: Sequence[str] = ("memory", "scan"),
    batches: Sequence[int] = (1, 32, 1000),
    k: int = 100,
    threads: int = 1,
) -> list[Measured]:
    """Time engines in turns over batches of the queries; codes and queries are uint64 (n, width).

    An RmshError says that two engines return different distances.
    """
    if set(engines) - set(ENGINES) or not batches or max(batches) > len(queries):
        raise ConfigError(
            f"Got engines {', '.join(engines)} and batches of {', '.join(map(str, batches))}; give engines of "
            f"{', '.join(ENGINES)}, and batches of 1 to {len(queries)} queries."
        )
    codes, results = to_codes(queries, bits), []
    built = {name: _build(name, words, codes, k=k, threads=threads) for name in engines}
    searches = {name: partial(_search, engine, k) for name, (engine, _) in built.items()}
    for batch in batches:
        _compare(searches, codes.take(np.arange(batch)), k)
        for name, rate in take_turns(searches, codes, batch=batch).items():
            engine, seconds = built[name]
            results.append(Measured(name, batch, rate, seconds, engine.note))
    return results


def _build(name: str, words: WordArray, queries: Codes, *, k: int, threads: int) -> tuple[Engine, float]:
    """An engine after its first search, which compiles code, and the seconds it took."""
    start = time.perf_counter()
    engine = ENGINES[name](words, queries.bits, threads)
    engine.search(queries.take(np.arange(1)), k)
    return engine, time.perf_counter() - start


def _search(engine: Engine, k: int, queries: Codes) -> IntArray | None:
    return engine.search(queries, k)


def take_turns(searches: Mapping[str, Callable[[Codes], object]], queries: Codes, *, batch: int) -> dict[str, float]:
    """Queries per second of each search, the median over rounds in which the searches take turns."""
    calls = [queries.take(np.arange(batch) + start) for start in range(0, len(queries) - batch + 1, batch)]
    rates: dict[str, list[float]] = {name: [] for name in searches}
    begun = time.perf_counter()
    for done in range(_ROUNDS):
        if done >= 3 and time.perf_counter() - begun > _MOST_SECONDS:
            break
        for name, search in searches.items():
            count, start = 0, time.perf_counter()
            while (spent := time.perf_counter() - start) < _LEAST_SECONDS:
                search(calls[count % len(calls)])
                count += 1
            rates[name].append(count * batch / spent)
    return {name: median(values) for name, values in rates.items()}


def _compare(searches: Mapping[str, Callable[[Codes], IntArray | None]], queries: Codes, k: int) -> None:
    found = {name: search(queries) for name, search in searches.items()}
    distances = {name: values for name, values in found.items() if values is not None}
    for name, values in distances.items():
        first = next(iter(distances))
        if not np.array_equal(values, distances[first]):
            raise RmshError(f"{name} and {first} return different distances for the {k} nearest; one of them is wrong.")
