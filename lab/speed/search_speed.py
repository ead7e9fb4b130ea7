"""Search speed: exact top-100 beside faiss, usearch and plain reading, for uniform, clustered and learned codes.

A case is a kind of codes, a number of them and a length; one whose result is in the file is not measured again. Learned
codes are those of coco66k captions and pictures, made more by flipping 2 % of the bits; the queries are its own.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.speed.data import RESULTS, coco66k
from lab.speed.search_tables import write_plot, write_tables
from rmsh.codes import Codes
from rmsh.core.files import write_json
from rmsh.features.extract import cache_folder
from rmsh.index import INDEXES
from rmsh.index.brute import Brute
from rmsh.index.speed import enlarge, generate, measure
from rmsh.methods import create

if TYPE_CHECKING:
    from rmsh.core.types import WordArray

RESULT = RESULTS / "search_speed.json"
HUGE = "huge 100000000 64"
K = 100
TRAINED_ON = 20_000  # pairs, for three epochs: codes like those of a model, not the best ones


def cases() -> Iterator[tuple[str, str, int, int]]:
    """Name, kind, number and length of the codes of each case."""
    for items, bits, kind in product((1_000_000, 10_000_000), (64, 128), ("uniform", "clustered", "learned")):
        yield f"{kind} {items} {bits}", kind, items, bits


def main(arguments: argparse.Namespace) -> None:
    """Measure the missing cases, then write the tables and the plot."""
    results = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    for name, kind, items, bits in [] if arguments.tables else cases():
        if name not in results and re.search(arguments.only, name):
            print(f"{name} ...", flush=True)
            results[name] = _measure(kind, items, bits)
            write_json(RESULT, results)
    if not arguments.tables and HUGE not in results and re.search(arguments.only, HUGE):
        print(f"{HUGE} ...", flush=True)
        results[HUGE] = _measure_huge(100_000_000)
        write_json(RESULT, results)
    ordered = {name: results[name] for name in [*(name for name, *_ in cases()), HUGE] if name in results}
    write_tables(ordered, RESULTS / "search_speed.md")
    write_plot(ordered, RESULTS / "search_speed.png")


def _measure(kind: str, items: int, bits: int) -> dict[str, Any]:
    words, queries = _codes(kind, items, bits)
    _check_against_brute_force(words, queries[:3], bits)
    batches = (1, 32, 1000)
    hashed = batches if items <= 1_000_000 else batches[:2]  # where hashing is slow, a thousand take minutes
    one = measure(words, queries, bits=bits, engines=("memory", "scan", "mih", "faiss"), batches=hashed, k=K)
    rest = tuple(batch for batch in batches if batch not in hashed)
    if rest:
        one += measure(words, queries, bits=bits, engines=("memory", "scan", "faiss"), batches=rest, k=K)
    other = measure(words, queries[:1], bits=bits, engines=("usearch",), batches=(1,), k=K)
    two = measure(words, queries, bits=bits, engines=("memory", "scan"), batches=(1,), k=K, threads=2)
    return {
        "one thread": [m.to_json() for m in (*one, *other)],
        "two threads": [m.to_json() for m in two],
        "machine": _machine(),
    }


def _check_against_brute_force(words: WordArray, queries: WordArray, bits: int) -> None:
    """Rows and distances, to the last tie."""
    packed = np.ascontiguousarray(queries.view(np.uint8)[:, : -(-bits // 8)])
    asked = Codes(packed, bits, np.arange(len(queries)).astype(np.str_))
    expected = Brute.over(words, bits).search(asked, K)
    for name in ("scan", "mih"):
        found = INDEXES.load(name).over(words, bits, threads=1).search(asked, K)
        if not (np.array_equal(found.rows, expected.rows) and np.array_equal(found.distances, expected.distances)):
            sys.exit(f"{name} does not find what brute force finds; nothing was written.")


def _codes(kind: str, items: int, bits: int) -> tuple[WordArray, WordArray]:
    """The codes that are searched, and a thousand queries."""
    if kind != "learned":
        return generate(kind, items, bits), generate(kind, 1000, bits, seed=1)
    folder = cache_folder() / "bench"
    paths = [folder / f"coco66k.{bits}.{part}.npy" for part in ("database", "query")]
    if not all(path.exists() for path in paths):
        _train(bits, paths)
    database, queries = (np.load(path) for path in paths)
    return enlarge(database, items, bits=bits), np.random.default_rng(1).permutation(queries)[:1000]


def _train(bits: int, paths: list[Path]) -> None:
    """Train on some of coco66k, and keep the codes of its pictures and captions."""
    opened = coco66k("minilm")
    split, pairs = opened.split, opened.pairs
    assert split is not None  # noqa: S101  # coco66k has one
    rows = np.sort(np.random.default_rng(0).permutation(split.train)[:TRAINED_ON])
    method = create("rmsh", bits=bits, epochs=3).fit(pairs.take(rows))
    for path, part in zip(paths, (split.database, split.query), strict=True):
        some = pairs.take(part)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, np.concatenate([method.encode(some.features(m), m).words() for m in ("image", "text")]))


# In a process of its own, so that its memory is that of searching; the pages of the file are in memory or not.
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
    """Save so many codes of 64 bits, open them memory-mapped, and search."""
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
    described = Path("/proc/cpuinfo")
    models = re.findall(r"model name\s*: (.*)", described.read_text()) if described.exists() else []
    libraries = {name: version(name) for name in ("numpy", "numba", "faiss-cpu", "usearch")}
    return {"processor": (models or [platform.processor()])[0], "measured": time.strftime("%Y-%m-%d"), **libraries}
