"""How fast searching is: our indexes beside others, in turns in one process, medians, and the limit of memory.

Every engine answers the same queries; what they answer is compared, so that a fast wrong answer is noticed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.codes import Codes
from rmsh.errors import ConfigError, RmshError
from rmsh.index.engines import ENGINES, Engine
from rmsh.progress import OnProgress, Progress, ignore

if TYPE_CHECKING:
    from rmsh.types import WordArray

__all__ = ["Measured", "measure"]

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
