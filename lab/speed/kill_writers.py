"""Durability: a process that writes to a library is killed with SIGKILL at random moments.

The process reports every change before and after it. Afterwards the library must contain all acknowledged changes, and
the interrupted change completely or not at all; `verify` must find no problem. All runs use the same library.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from lab.console import Seed  # noqa: TC001  # typer reads them
from lab.data import PROJECT, write_measurement
from lab.speed.killed_writer import make_code, make_codes, make_item, make_model, version_of
from rmsh.core.types import MODALITIES
from rmsh.index.brute import Brute
from rmsh.library import Library
from rmsh.library.queries import generation_of, intact_items
from rmsh.library.verify import verify

LONGEST = 0.8  # seconds until a writer is killed

Versions = dict[str, int]  # id -> version


@dataclass
class Tally:
    """Counts over all runs."""

    runs: int = 0
    acknowledged: Counter[str] = field(default_factory=Counter)
    killed_during: Counter[str] = field(default_factory=Counter)
    kept_unacknowledged: int = 0
    items: int = 0
    failures: list[str] = field(default_factory=list)


def main(*, runs: Annotated[int, typer.Option(min=1, help="Number of runs.")] = 200, seed: Seed = 0) -> None:
    """Kill writers, write the result and print a line; the exit code is 1 if anything was lost."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        tally = kill_writers(Path(folder) / "library", runs, seed=seed)
    result = {"seed": seed, "seconds": round(time.perf_counter() - start, 1), **vars(tally)}
    write_measurement("speed/faults", result)
    print(f"{tally.runs} writers killed, during {dict(tally.killed_during)}; acknowledged {dict(tally.acknowledged)}")
    print("\n".join(tally.failures) or "every acknowledged change is complete, verify finds no problem")
    if tally.failures:
        sys.exit(1)


def kill_writers(folder: Path, runs: int, *, seed: int) -> Tally:
    """Kill a writer so many times, and check the library each time."""
    Library.create(folder, make_model(0)).close()
    tally, held = Tally(), Versions()
    rng = random.Random(seed)  # noqa: S311
    for run in range(runs):
        lines = run_writer(folder, seed=seed + run, seconds=rng.uniform(0, LONGEST))
        possible = [held := replay(held, lines, tally)]
        if lines and "begin" in lines[-1]:
            possible.append(changed(held, lines[-1]))
        tally.killed_during[lines[-1].get("begin", "nothing") if lines else "opening"] += 1
        found, problems = inspect_library(folder)
        if found not in possible:
            problems.append(f"{_difference(found, possible[0])} what was acknowledged")
        tally.kept_unacknowledged += found != possible[0]
        tally.failures += [f"run {run}: {problem}" for problem in problems]
        held, tally.runs, tally.items = found, run + 1, len(found)
    return tally


def run_writer(folder: Path, *, seed: int, seconds: float) -> list[dict[str, Any]]:
    """Start a writer, kill it so many seconds after it is ready, and return what it reported."""
    command = [sys.executable, "-m", "lab.speed.killed_writer", str(folder), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=PROJECT, bufsize=0) as writer:
        if writer.stdout is None or not writer.stdout.readline():
            raise RuntimeError(f"the writer ended before it was ready, with exit code {writer.wait()}")
        try:
            writer.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            writer.kill()
        output, _ = writer.communicate()
    return [json.loads(line) for line in output.splitlines() if line.endswith(b"}")]


def replay(held: Versions, lines: list[dict[str, Any]], tally: Tally) -> Versions:
    """The items after all acknowledged changes."""
    for begun, ended in itertools.pairwise(lines):
        if "end" in ended:
            held = changed(held, begun)
            tally.acknowledged[begun["begin"]] += 1
    return held


def changed(held: Versions, begun: dict[str, Any]) -> Versions:
    """The items after one more change."""
    if begun["begin"] == "remove":
        return {name: version for name, version in held.items() if name not in begun["ids"]}
    return held | dict.fromkeys(begun["ids"], begun["version"])


def inspect_library(folder: Path) -> tuple[Versions, list[str]]:
    """The items of a library, and its problems."""
    with Library.open(folder, engine=Brute) as library:
        model = library.model().fingerprint
        with library.reading() as connection:
            number = generation_of(connection).number
            stored = {
                row: {"image": image, "text": text}
                for row, image, text in connection.execute(
                    "SELECT row, image, text FROM codes WHERE generation = ?", (number,)
                )
            }
            items, damaged = intact_items(connection, [row for (row,) in connection.execute("SELECT row FROM items")])
        problems = [*damaged.values()]
        problems += [
            f"the item {item.id} is incomplete"
            for row, item in items.items()
            if not _is_complete(item, stored.get(row), model)
        ]
        queries = make_codes(list(items.values()), model)["text"]
        for query, (hit,) in zip(queries.ids, library.search(queries, 1, to="text", model=model), strict=True):
            if hit.distance:
                problems.append(f"the item {query} is not found by its own code")
    return {item.id: version_of(item) for item in items.values()}, [*problems, *verify(folder).problems]


def _is_complete(item: Any, codes: dict[str, bytes] | None, model: str) -> bool:
    version = version_of(item)
    wanted = {m: make_code(item, m, model) if m == "text" or version % 3 else None for m in MODALITIES}
    return item == make_item(item.id, version) and codes == wanted


def _difference(found: Versions, wanted: Versions) -> str:
    missing = wanted.keys() - found.keys()
    return f"{len(missing)} items fewer and {len(found.keys() - wanted.keys())} more than"
