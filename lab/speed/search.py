"""Search speed: exact top 100, compared with faiss, usearch and plain reading of memory.

A case is a kind of codes, their number and length; a case in the result file is measured again only with ``--again``.
Learned codes are those of coco66k, multiplied by flipping 2 % of the bits; the queries are those of coco66k.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import typer

from lab.console import Only, Tables  # noqa: TC001  # typer reads them
from lab.data import RESULTS, coco66k
from lab.speed.engines import enlarge, generate, measure, to_codes
from rmsh.compare.provenance import commit
from rmsh.core.files import cache_folder, read_json, write_json
from rmsh.index.brute import Brute
from rmsh.index.scan import Scan
from rmsh.methods import create

if TYPE_CHECKING:
    from rmsh.core.types import WordArray

RESULT = RESULTS / "speed" / "search.json"
HUGE = "huge 100000000 64"
K = 100
_VECTORS = {"avx512_vpopcntdq": "AVX-512", "avx2": "AVX2"}  # flags of a processor, best first
TRAINING_PAIRS = 20_000  # with three epochs: realistic codes, not the best


def cases() -> Iterator[tuple[str, str, int, int]]:
    """Name, kind, number and length of the codes of each case."""
    short = product((1_000_000, 10_000_000), (64, 128), ("uniform", "clustered", "learned"))
    long = product((1_000_000,), (192, 256, 512), ("uniform", "clustered"))
    for items, bits, kind in (*short, *long):
        yield f"{kind} {items} {bits}", kind, items, bits


def main(
    *,
    only: Only = "",
    again: Annotated[bool, typer.Option("--again", help="Also measure cases that have a result.")] = False,
    tables: Tables = False,
) -> None:
    """Measure the missing cases whose name matches, then print all rates."""
    results = read_json(RESULT) if RESULT.exists() else {}
    wanted = {name: partial(_measure, kind, items, bits) for name, kind, items, bits in cases()}
    wanted[HUGE] = partial(_measure_huge, 100_000_000)
    for name, measure_case in wanted.items():
        if not tables and (again or name not in results) and re.search(only, name):
            print(f"{name} ...", flush=True)
            results |= {"commit": commit(), name: measure_case()}
            write_json(RESULT, results)
    print(rate_table(results))


def rate_table(results: dict[str, Any]) -> str:
    """Queries per second by case, number of threads and batch size, one column per engine."""
    rows = [
        {"case": name, "threads": threads, **measured}
        for name, result in results.items()
        if name not in ("commit", HUGE)
        for threads in ("one thread", "two threads")
        for measured in result[threads]
    ]
    frame = pd.DataFrame(rows, columns=["case", "threads", "batch", "engine", "queries_per_second"])
    rates = frame.pivot_table("queries_per_second", ["case", "threads", "batch"], "engine", sort=False)
    return str(rates.round(1).to_string(na_rep="–"))


def _measure(kind: str, items: int, bits: int) -> dict[str, Any]:
    words, queries = _codes(kind, items, bits)
    _check_against_brute_force(words, queries[:3], bits)
    one = measure(words, queries, bits=bits, engines=("memory", "scan", "faiss"), k=K)
    other = measure(words, queries[:1], bits=bits, engines=("usearch",), batches=(1,), k=K)
    two = measure(words, queries, bits=bits, engines=("memory", "scan"), batches=(1,), k=K, threads=2)
    return {
        "one thread": [asdict(m) for m in (*one, *other)],
        "two threads": [asdict(m) for m in two],
        "machine": _machine(),
    }


def _check_against_brute_force(words: WordArray, queries: WordArray, bits: int) -> None:
    """Rows and distances must be equal, ties included."""
    query = to_codes(queries, bits)
    expected = Brute.over(words, bits).search(query, K)
    found = Scan.over(words, bits, threads=1).search(query, K)
    if not (np.array_equal(found.rows, expected.rows) and np.array_equal(found.distances, expected.distances)):
        sys.exit("The scan differs from brute force; nothing was written.")


def _codes(kind: str, items: int, bits: int) -> tuple[WordArray, WordArray]:
    """The database codes, and a thousand queries."""
    if kind != "learned":
        return generate(kind, items, bits), generate(kind, 1000, bits, seed=1)
    folder = cache_folder() / "bench"
    paths = [folder / f"coco66k.{bits}.{part}.npy" for part in ("database", "query")]
    if not all(path.exists() for path in paths):
        _train(bits, paths)
    database, queries = (np.load(path) for path in paths)
    return enlarge(database, items, bits=bits), np.random.default_rng(1).permutation(queries)[:1000]


def _train(bits: int, paths: list[Path]) -> None:
    """Train on a part of coco66k, and store the codes of its images and captions."""
    opened = coco66k("minilm")
    split, pairs = opened.split, opened.pairs
    assert split is not None  # noqa: S101  # coco66k has one
    rows = np.sort(np.random.default_rng(0).permutation(split.train)[:TRAINING_PAIRS])
    method = create("rmsh", bits=bits, epochs=3).fit(pairs.take(rows))
    for path, part in zip(paths, (split.database, split.query), strict=True):
        some = pairs.take(part)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, np.concatenate([method.encode(some.features(m), m).words() for m in ("image", "text")]))


# Runs in another process, so that its memory is that of searching alone.
_OPEN = """
import json, resource, sys, time
import numpy as np
from rmsh.codes import Codes
from rmsh.index.scan import Scan
words = np.load(sys.argv[2])
codes = Codes(words.view(np.uint8), 64, np.arange(len(words)).astype(str))
start = time.perf_counter()
index = Scan.over(np.load(sys.argv[1], mmap_mode="r"), 64, threads=int(sys.argv[3]))
opened = time.perf_counter() - start
index.search(codes.take(np.arange(1)), 100)
first = time.perf_counter() - start
rates = {}
for batch in (1, 32, 1000):
    some, count, start = codes.take(np.arange(batch)), 0, time.perf_counter()
    while time.perf_counter() - start < 3:
        index.search(some, 100)
        count += batch
    rates[batch] = count / (time.perf_counter() - start)
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
memory = {name: int(status[name].split()[0]) // 1024 for name in ("RssAnon", "RssFile")}
print(json.dumps({"seconds to open": opened, "seconds to first hit": first, "queries/s": rates, "MB": memory}))
"""


def _measure_huge(items: int) -> dict[str, Any]:
    """Save codes of 64 bits, open them memory-mapped, and search."""
    codes, queries = (cache_folder() / "bench" / f"huge.{part}.npy" for part in ("codes", "queries"))
    if not queries.exists():
        codes.parent.mkdir(parents=True, exist_ok=True)
        np.save(codes, generate("uniform", items, 64))
        np.save(queries, generate("uniform", 1000, 64, seed=1))
    result: dict[str, Any] = {"items": items, "machine": _machine()}
    for threads in (1, 2):
        command = [sys.executable, "-c", _OPEN, str(codes), str(queries), str(threads)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        result[f"{threads} threads"] = json.loads(done.stdout)
    return result


def _machine() -> dict[str, str]:
    """The processor, the bit-counting instructions it has, the date, and the versions of libraries."""
    path = Path("/proc/cpuinfo")
    described = path.read_text() if path.exists() else ""
    models = [*re.findall(r"model name\s*: (.*)", described), platform.processor()]
    vectors = [name for flag, name in _VECTORS.items() if re.search(rf"\b{flag}\b", described)]
    libraries = {name: version(name) for name in ("numpy", "numba", "faiss-cpu", "usearch")}
    measured = {"processor": models[0], "vectors": (vectors or [platform.machine()])[0]}
    return {**measured, "measured": time.strftime("%Y-%m-%d"), **libraries}
