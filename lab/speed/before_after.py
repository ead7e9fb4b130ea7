"""Speed of two checkouts of this project, measured in turns: medians and their ratios.

Only commands and public names are used, since modules differ between the checkouts. Every measurement is a process of
its own with the checkout first on its path; code that is timed inside a process runs once before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from lab.data import write_measurement

_IMPORT = "import time; start = time.perf_counter(); import rmsh; print(time.perf_counter() - start)"
_PAIRS = """
import time, numpy as np, rmsh
rng = np.random.default_rng(0)
labels = (rng.random((4000, 24)) < 0.1).astype(np.uint8)
labels[np.arange(4000), rng.integers(0, 24, 4000)] = 1
images, texts = (
    (labels @ rng.standard_normal((24, width)) + rng.standard_normal((4000, width))).astype(np.float32)
    for width in (512, 384)
)
"""
_TRAINING = (
    _PAIRS
    + """
pairs = rmsh.Pairs(np.arange(4000).astype(str), images, texts, labels)
times = []
for _ in range(2):
    start = time.perf_counter()
    rmsh.create("rmsh", bits=64, epochs=1, seed=0).fit(pairs)
    times.append(time.perf_counter() - start)
print(times[-1])
"""
)
_EVALUATION = (
    _PAIRS
    + """
codes = [rmsh.Codes.from_values(rng.standard_normal((n, 64))) for n in (1000, 4000)]
times = []
for _ in range(4):
    start = time.perf_counter()
    rmsh.evaluate(*codes, labels[:1000], labels)
    times.append(time.perf_counter() - start)
print(min(times[1:]))
"""
)


def main(
    before: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="A checkout.")],
    after: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Another checkout.")],
    *,
    before_search: Annotated[str, typer.Option(help="Search-speed command of BEFORE.")] = "speed",
    after_search: Annotated[str, typer.Option(help="Search-speed command of AFTER.")] = "speed",
    rounds: Annotated[int, typer.Option(min=1, help="Number of rounds.")] = 5,
) -> None:
    """Measure both checkouts in turns, write the result and print a table."""
    trees = {"before": (before, before_search), "after": (after, after_search)}
    measured: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number in range(rounds):
        for name, (tree, search) in trees.items():
            print(f"round {number + 1} of {rounds}, {name}", file=sys.stderr)
            for measurement, value in _measure(tree, search.split()).items():
                measured[measurement][name].append(value)
    result = {measurement: _summary(values) for measurement, values in measured.items()}
    write_measurement("speed/before_after", {"rounds": rounds, "measured": result})
    print(f"{'':32} {'before':>12} {'after':>12}  after / before")
    for measurement, row in result.items():
        print(f"{measurement:32} {row['before']:12,.4g} {row['after']:12,.4g} {row['ratio']:10.2f}")


def _summary(values: dict[str, list[float]]) -> dict[str, Any]:
    before, after = median(values["before"]), median(values["after"])
    return {"before": before, "after": after, "ratio": after / before, "values": dict(values)}


def _measure(tree: Path, search: list[str]) -> dict[str, float]:
    """One round of a checkout: seconds, and queries per second."""
    start = time.perf_counter()
    _run(tree, ["-m", "rmsh", "--help"])
    help_seconds = time.perf_counter() - start
    found = {
        "import rmsh, seconds": float(_run(tree, ["-c", _IMPORT])),
        "rmsh --help, seconds": help_seconds,
        "training epoch, seconds": float(_run(tree, ["-c", _TRAINING])),
        "evaluation, seconds": float(_run(tree, ["-c", _EVALUATION])),
    }
    for bits in (64, 256):
        options = ["--items", "1000000", "--bits", str(bits), "--engine", "scan", "--json", "--quiet"]
        for row in json.loads(_run(tree, ["-m", "rmsh", *search, *options]))["measured"]:
            found[f"{bits} bits, batch {row['batch']}, queries/s"] = row["queries_per_second"]
    return found


def _run(tree: Path, arguments: list[str]) -> str:
    """The output of Python with a checkout first on its path."""
    environment = {**os.environ, "PYTHONPATH": str(tree.resolve() / "src")}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, cwd=tree, check=True, capture_output=True, text=True).stdout
