"""Faults: a writer is killed with SIGKILL at random moments; what it acknowledged is there, and nothing is half there.

One library lives through all runs. In each, a process changes it, saying before and after each change what it does; it
is killed, and the library must hold what was acknowledged, with the change that was under way made wholly or not at
all. Then `verify` must find nothing.
"""

from __future__ import annotations

import argparse
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
from typing import Any

from lab.speed.faults_writer import make_code, make_codes, make_item, make_model, version_of
from rmsh.core.files import write_json
from rmsh.core.types import MODALITIES
from rmsh.index.brute import Brute
from rmsh.library import Library
from rmsh.library.queries import generation_of, intact_items
from rmsh.library.verify import verify

PROJECT = Path(__file__).resolve().parent.parent
LONGEST = 0.8  # seconds until a writer is killed

Versions = dict[str, int]  # id -> version


@dataclass
class Tally:
    """What happened over all runs."""

    runs: int = 0
    acknowledged: Counter[str] = field(default_factory=Counter)
    killed_during: Counter[str] = field(default_factory=Counter)
    kept_unacknowledged: int = 0
    items: int = 0
    failures: list[str] = field(default_factory=list)


def main(arguments: argparse.Namespace) -> None:
    """Kill writers, write the JSON, print a line; exit code 1 when anything was lost."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        tally = kill_writers(Path(folder) / "library", arguments.runs, seed=arguments.seed)
    result = {"seed": arguments.seed, "seconds": round(time.perf_counter() - start, 1), **vars(tally)}
    write_json(PROJECT / "bench" / "results" / "faults.json", result)
    print(f"{tally.runs} writers killed, during {dict(tally.killed_during)}; acknowledged {dict(tally.acknowledged)}")
    print("\n".join(tally.failures) or "every acknowledged item is there, none is half there, verify finds nothing")
    if tally.failures:
        sys.exit(1)


def kill_writers(folder: Path, runs: int, *, seed: int) -> Tally:
    """Kill a writer so many times, and look each time at what it left."""
    Library.create(folder, make_model(0)).close()
    tally, held = Tally(), Versions()
    rng = random.Random(seed)  # noqa: S311
    for run in range(runs):
        said = run_writer(folder, seed=seed + run, seconds=rng.uniform(0, LONGEST))
        possible = [held := replay(held, said, tally)]
        if said and "begin" in said[-1]:
            possible.append(changed(held, said[-1]))
        tally.killed_during[said[-1].get("begin", "nothing") if said else "opening"] += 1
        found, problems = look(folder)
        if found not in possible:
            problems.append(f"held is {_difference(found, possible[0])} of what was acknowledged")
        tally.kept_unacknowledged += found != possible[0]
        tally.failures += [f"run {run}: {problem}" for problem in problems]
        held, tally.runs, tally.items = found, run + 1, len(found)
    return tally


def run_writer(folder: Path, *, seed: int, seconds: float) -> list[dict[str, Any]]:
    """Start a writer, kill it so many seconds after it is ready, and return what it said."""
    command = [sys.executable, "-m", "lab.speed.faults_writer", str(folder), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=PROJECT, bufsize=0) as writer:
        if writer.stdout is None or not writer.stdout.readline():
            raise RuntimeError(f"the writer ended before it was ready, with exit code {writer.wait()}")
        try:
            writer.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            writer.kill()
        output, _ = writer.communicate()
    return [json.loads(line) for line in output.splitlines() if line.endswith(b"}")]


def replay(held: Versions, said: list[dict[str, Any]], tally: Tally) -> Versions:
    """What must be there after all that was acknowledged."""
    for begun, ended in itertools.pairwise(said):
        if "end" in ended:
            held = changed(held, begun)
            tally.acknowledged[begun["begin"]] += 1
    return held


def changed(held: Versions, begun: dict[str, Any]) -> Versions:
    """What is there after one more change."""
    if begun["begin"] == "remove":
        return {name: version for name, version in held.items() if name not in begun["ids"]}
    return held | dict.fromkeys(begun["ids"], begun["version"])


def look(folder: Path) -> tuple[Versions, list[str]]:
    """What a library holds, and whatever of it is not whole."""
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
            f"the item {item.id} is half there"
            for row, item in items.items()
            if not _whole(item, stored.get(row), model)
        ]
        queries = make_codes(list(items.values()), model)["text"]
        for query, (hit,) in zip(queries.ids, library.search(queries, 1, to="text", model=model), strict=True):
            if hit.distance:
                problems.append(f"the item {query} is not found by its own code")
    return {item.id: version_of(item) for item in items.values()}, [*problems, *verify(folder).problems]


def _whole(item: Any, codes: dict[str, bytes] | None, model: str) -> bool:
    version = version_of(item)
    wanted = {m: make_code(item, m, model) if m == "text" or version % 3 else None for m in MODALITIES}
    return item == make_item(item.id, version) and codes == wanted


def _difference(found: Versions, wanted: Versions) -> str:
    missing = wanted.keys() - found.keys()
    return f"{len(missing)} items short and {len(found.keys() - wanted.keys())} beyond"
