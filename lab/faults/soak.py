"""A long run: a server at moderate load while items are added and removed, and the library is recoded twice.

No request may fail, and neither memory nor response times may grow. Items with random codes come and go in the same
number; their texts and images are drawn scenes, the encoders are real. The writer is another process than the server,
on the same processors, so parts with a recode are slower; they are marked and not compared.
"""

from __future__ import annotations

import itertools
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from lab.console import Seed  # noqa: TC001  # typer reads it
from lab.data import write_measurement
from lab.speed import serving
from lab.speed.attack import Answered, _ask
from lab.speed.serving import family_memory_mb
from rmsh.codes import Codes
from rmsh.core.types import MODALITIES
from rmsh.library import Item, Library
from rmsh.library.recode import recode
from rmsh.library.verify import verify

if TYPE_CHECKING:
    from rmsh.core.types import Modality

CLIENTS, PAUSE = 2, 0.2  # clients, and the seconds between their requests
BATCH, EVERY = 50, 2.0  # items that are added and removed, and the seconds in between
PARTS = 12  # in the 5th and 9th of them the library is recoded
RECODED = (4, 8)
WARM_UP = 20.0  # seconds
MOST_GROWTH = {"memory_mb": 1.10, "p50": 1.25, "p95": 1.25}  # of the last third against the first


@dataclass
class Writer:
    """Changes a library while it is served."""

    folder: Path
    captions: list[str]
    chance: np.random.Generator
    operations: Counter[str] = field(default_factory=Counter)
    names: list[str] = field(default_factory=list)  # of the items that were added
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def add_and_remove(self, stop: threading.Event) -> None:
        """Add a batch and remove an older one, again and again."""
        with Library.open(self.folder, writable=True) as library:
            while not stop.wait(EVERY):
                new = [f"soak-{number}" for number in itertools.islice(self.numbers, BATCH)]
                items = [Item(name, self.captions[len(self.names) % len(self.captions)]) for name in new]
                library.add(items, self._codes(items), model=library.generation().fingerprint)
                self.operations["items added"] += len(new)
                self.names += new
                if len(self.names) > 10 * BATCH:
                    library.remove(self.names[:BATCH])
                    self.operations["items removed"] += BATCH
                    del self.names[:BATCH]

    def recode(self) -> float:
        """Recode the library with another model; returns the seconds that it took."""
        start = time.perf_counter()
        with Library.open(self.folder, writable=True) as library:
            recode(library, serving.random_model(int(self.chance.integers(1 << 30))), encode=self._codes)
        self.operations["recodes"] += 1
        return time.perf_counter() - start

    def _codes(self, items: Any) -> dict[Modality, Codes]:
        names = np.array([item.id for item in items])
        packed = self.chance.integers(0, 256, (2, len(names), serving.BITS // 8), dtype=np.uint8)
        return {modality: Codes(packed[i], serving.BITS, names) for i, modality in enumerate(MODALITIES)}


def main(
    *,
    minutes: Annotated[float, typer.Option(min=0.5, help="Duration in minutes.")] = 30.0,
    seed: Seed = 0,
) -> None:
    """Run, write the result and print the table; the exit code is 1 if a limit was exceeded."""
    with tempfile.TemporaryDirectory() as folder:
        queries = serving.make_library(Path(folder))
        found = measure(Path(folder) / "library", *queries, seconds=minutes * 60, seed=seed)
    write_measurement("faults/soak", found)
    print("minute | requests | p50 ms | p95 ms | p99 ms | memory MB")
    for part in found["parts"]:
        times = " | ".join(f"{part[key]:6.1f}" for key in ("p50", "p95", "p99"))
        print(
            f"{part['minute']:6.1f} | {part['count']:8} | {times} | {part['memory_mb']:6} {'recode' * part['recode']}"
        )
    print(f"{found['operations']}, errors {found['errors']}, growth {found['growth']}")
    print("\n".join(found["exceeded"]) or "no limit was exceeded")
    if found["exceeded"]:
        sys.exit(1)


def measure(
    folder: Path, captions: list[str], pictures: list[bytes], *, seconds: float, seed: int = 0
) -> dict[str, Any]:
    """Serve a library for so many seconds while it is searched and changed, and summarise."""
    answered: list[Answered] = []
    writer, load = Writer(folder, captions, np.random.default_rng(seed)), os.getloadavg()[0]
    parts: list[dict[str, Any]] = []
    with serving.start_server(folder) as (pid, port):

        def search(stop: threading.Event) -> None:
            chance = random.Random(threading.get_ident())  # noqa: S311
            while not stop.wait(PAUSE):
                (kind,) = chance.choices(list(serving.SHARES), list(serving.SHARES.values()))
                answered.append(_ask(port, kind, serving.make_request(kind, chance, captions, pictures)))

        def run() -> None:
            time.sleep(WARM_UP)
            start = time.perf_counter()
            for number in range(PARTS):
                first, recoded = len(answered), number in RECODED
                if recoded:
                    writer.recode()
                time.sleep(max(0.0, start + seconds * (number + 1) / PARTS - time.perf_counter()))
                times = serving.percentiles([one.seconds for one in answered[first:]])
                minute = round((time.perf_counter() - start) / 60, 1)
                parts.append({"minute": minute, "recode": recoded, "memory_mb": family_memory_mb(pid), **times})

        serving.meanwhile([*[search] * CLIENTS, writer.add_and_remove], run)
    found: dict[str, Any] = {
        "seed": seed,
        "minutes": round(seconds / 60, 1),
        "items": serving.ITEMS,
        "clients": CLIENTS,
        "load_before": round(load, 1),
        "operations": writer.operations,
        "errors": Counter(f"{one.kind} {one.status}" for one in answered if one.status != 200),
        "problems": list(verify(folder).problems),
        "parts": parts,
        "growth": {name: growth(parts, name) for name in MOST_GROWTH},
    }
    return found | {"exceeded": exceeded(found)}


def growth(parts: list[dict[str, Any]], name: str) -> float:
    """The median of the last third without recodes, divided by that of the first."""
    calm = [part[name] for part in parts if not part["recode"]]
    third = max(1, len(calm) // 3)
    return round(float(np.median(calm[-third:]) / np.median(calm[:third])), 2)


def exceeded(found: dict[str, Any]) -> list[str]:
    """The limits that a run has exceeded."""
    lines = [f"{count} requests failed: {kind}" for kind, count in found["errors"].items()]
    lines += [f"verify: {problem}" for problem in found["problems"]]
    if found["operations"]["recodes"] < len(RECODED):
        lines.append(f"{found['operations']['recodes']} recodes were made, {len(RECODED)} were intended")
    return lines + [
        f"{name} has grown to {found['growth'][name]} times, {most} are allowed"
        for name, most in MOST_GROWTH.items()
        if found["growth"][name] > most
    ]
