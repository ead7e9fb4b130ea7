"""Why two threads are not twice as fast for one query.

The same work is split between two workers in four ways: two independent processes, the threads of the scan, plain
reading by the same threads, and threads that only wake up. Two processes show what the machine allows; the difference
to the threads of the scan is the fixed cost per query of waking and merging.
"""

from __future__ import annotations

import multiprocessing
import time
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.data import write_measurement
from rmsh.codes import Codes
from rmsh.index.scan import Scan, run_all
from rmsh.index.speed import uniform

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.synchronize import Barrier

BITS, K = 64, 100
SIZES = (1_000_000, 10_000_000, 30_000_000)
ROUNDS = 7
SECONDS = 0.5  # of one measurement


def main() -> None:
    """Measure each size, write the result and print a line for each."""
    waking, sizes = _seconds_of(partial(run_all, [_nothing, _nothing])), {}
    print(f"waking another thread and waiting for it: {waking * 1e6:.0f} us")
    for items in SIZES:
        found = sizes[str(items)] = _measure(items)
        print(
            f"{items:>11,} codes, ms per query: {_listed(found['milliseconds'])}; times one worker: "
            f"{_listed(found['times one worker'])}"
        )
    write_measurement("speed/threads", {"seconds to wake a thread": waking, "sizes": sizes})


def _measure(items: int) -> dict[str, Any]:
    """Milliseconds per query with one and two workers, medians of interleaved rounds."""
    words, query = uniform(items, BITS), Codes.from_values(np.ones((1, BITS)))
    halves = np.array_split(words.reshape(-1), 2)
    scans = {threads: Scan.over(words, BITS, threads=threads) for threads in (1, 2)}
    ways: dict[str, Callable[[], float]] = {
        "scan, 1 thread": partial(_seconds_of, partial(scans[1].search, query, K)),
        "scan, 2 threads": partial(_seconds_of, partial(scans[2].search, query, K)),
        "scan, 2 processes": partial(_in_two_processes, items // 2),
        "read, 1 thread": partial(_seconds_of, partial(_read, [words.reshape(-1)])),
        "read, 2 threads": partial(_seconds_of, partial(_read, halves)),
    }
    rounds = [{name: measure() for name, measure in ways.items()} for _ in range(ROUNDS)]
    found = {name: 1e3 * median(each[name] for each in rounds) for name in ways}
    gains = {name: found[f"{name.split(',')[0]}, 1 thread"] / found[name] for name in ways if ", 1 " not in name}
    return {"milliseconds": found, "times one worker": gains}


def _seconds_of(work: Callable[[], object]) -> float:
    """Mean time of one call."""
    work()
    count, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < SECONDS:
        work()
        count += 1
    return spent / count


def _in_two_processes(items: int) -> float:
    """Two processes search their own codes at the same time; the slower one counts."""
    context = multiprocessing.get_context("fork")
    barrier, times = context.Barrier(2), context.Queue()
    workers = [context.Process(target=_search_alone, args=(items, seed, barrier, times)) for seed in (1, 2)]
    for worker in workers:
        worker.start()
    slower: float = max(times.get() for _ in workers)
    for worker in workers:
        worker.join()
    return slower


def _search_alone(items: int, seed: int, barrier: Barrier, times: Any) -> None:
    scan, query = (
        Scan.over(uniform(items, BITS, seed=seed), BITS, threads=1),
        Codes.from_values(np.ones((1, BITS))),
    )
    scan.search(query, K)
    barrier.wait()
    times.put(_seconds_of(partial(scan.search, query, K)))


def _read(parts: list[Any]) -> None:
    run_all([partial(np.bitwise_xor.reduce, part) for part in parts])


def _nothing() -> None:
    pass


def _listed(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())
