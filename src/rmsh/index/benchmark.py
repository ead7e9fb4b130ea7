"""How fast searching is: our indexes beside others, in turns in one process, medians, and the limit of memory.

Every engine answers the same queries; what they answer is compared, so that a fast wrong answer is noticed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.errors import ConfigError, RmshError, require
from rmsh.index import create_index
from rmsh.progress import OnProgress, Progress, ignore

if TYPE_CHECKING:
    from rmsh.codes import Codes
    from rmsh.types import IntArray

__all__ = ["ENGINES", "Measured", "bandwidth", "installed", "measure"]

# Asks for the k nearest; gives their distances, (Q, k).
_Search = Callable[["Codes", int], "IntArray"]

_ROUNDS = 5
_LEAST_SECONDS = 0.2  # of one engine in one round: short searches are repeated


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


def _ours(kind: str) -> Callable[[Codes, int], _Search]:
    def build(codes: Codes, threads: int) -> _Search:
        index = create_index(codes.bits, kind, threads=threads)
        index.add(codes)

        def search(queries: Codes, k: int) -> IntArray:
            return index.search(queries, k).distances.astype(np.int64)

        search.index = index  # type: ignore[attr-defined]  # for what it has to say about its choice
        return search

    return build


def _faiss(codes: Codes, threads: int) -> _Search:
    faiss = require("faiss", "bench")
    faiss.omp_set_num_threads(threads)
    index = faiss.IndexBinaryFlat(codes.packed.shape[1] * 8)
    index.add(np.ascontiguousarray(codes.packed))

    def search(queries: Codes, k: int) -> IntArray:
        distances, _ = index.search(np.ascontiguousarray(queries.packed), k)
        return np.asarray(distances, dtype=np.int64)

    return search


def _usearch(codes: Codes, threads: int) -> _Search:
    usearch = require("usearch.index", "bench")
    metric = usearch.MetricKind.Hamming

    def search(queries: Codes, k: int) -> IntArray:
        found = usearch.search(codes.packed, queries.packed, k, metric, exact=True, threads=threads)
        return np.asarray(np.atleast_2d(found.distances), dtype=np.int64)

    return search


ENGINES: Mapping[str, Callable[[Codes, int], _Search]] = {
    "scan": _ours("scan"),
    "mih": _ours("mih"),
    "auto": _ours("auto"),
    "faiss": _faiss,
    "usearch": _usearch,
}


def installed() -> list[str]:
    """The engines that can be had here: ours, and those of others that are installed."""
    needs = {"faiss": "faiss", "usearch": "usearch"}
    return [name for name in ENGINES if name not in needs or find_spec(needs[name]) is not None]


def bandwidth(codes: Codes, threads: int = 1) -> float:
    """Bytes a second at which these codes can be read at all: the limit of a scan for one query.

    The words are summed by numpy, each thread its part; summing is free beside reading.
    """
    from rmsh.index.workers import run_all

    words = codes.words()
    parts = np.array_split(words.reshape(-1), threads)
    seconds = []
    for _ in range(_ROUNDS + 2):
        start = time.perf_counter()
        run_all([partial(np.bitwise_xor.reduce, part) for part in parts])
        seconds.append(time.perf_counter() - start)
    return words.nbytes / median(seconds[2:])


def measure(
    codes: Codes,
    queries: Codes,
    *,
    engines: Sequence[str] = ("scan", "mih", "auto"),
    batches: Sequence[int] = (1, 32, 1000),
    k: int = 100,
    threads: int = 1,
    on_progress: OnProgress = ignore,
) -> list[Measured]:
    """Time engines in turns over batches of the queries.

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
    started, built, results = time.monotonic(), {}, []
    for name in engines:
        start = time.perf_counter()
        built[name] = (ENGINES[name](codes, threads), start)
        built[name][0](queries.take(np.arange(1)), k)  # compiles, builds tables
        built[name] = (built[name][0], time.perf_counter() - start)
    for done, batch in enumerate(batches, 1):
        rates = _in_turns({name: search for name, (search, _) in built.items()}, queries, batch=batch, k=k)
        for name, rate in rates.items():
            search, seconds = built[name]
            results.append(Measured(name, batch, rate, seconds, _said(search)))
        on_progress(Progress("measure", done, len(batches), "batch size", time.monotonic() - started))
    return results


def _said(search: Any) -> str:
    chosen = getattr(getattr(search, "index", None), "chosen", None)
    return "" if chosen is None else f"{chosen.engine}: {chosen.reason}"


def _in_turns(engines: Mapping[str, _Search], queries: Codes, *, batch: int, k: int) -> dict[str, float]:
    """Queries a second of each engine, the median over rounds in which each is asked in turn."""
    asked = [queries.take(np.arange(batch) + start) for start in range(0, len(queries) - batch + 1, batch)]
    _agree(engines, asked[0], k)
    rates: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(_ROUNDS):
        for name, search in engines.items():
            count, start = 0, time.perf_counter()
            while (spent := time.perf_counter() - start) < _LEAST_SECONDS:
                search(asked[count % len(asked)], k)
                count += 1
            rates[name].append(count * batch / spent)
    return {name: median(values) for name, values in rates.items()}


def _agree(engines: Mapping[str, _Search], queries: Codes, k: int) -> None:
    (first, search), *others = engines.items()
    wanted = search(queries, k)
    for name, other in others:
        if not np.array_equal(other(queries, k), wanted):
            raise RmshError(
                f"{name} and {first} disagree about the distances of the {k} nearest; one of them is wrong."
            )
