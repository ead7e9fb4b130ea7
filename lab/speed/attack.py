"""The server under attack: hostile images and connections, while ordinary clients search and health is checked.

The attacker (hostile.py) uses loopback addresses of its own, so that limits per client apply to it alone. Server,
attacker and clients share the processors of the machine. Memory is the proportional set size of the server and its
decoder processes together: what they share is counted once.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from lab.console import Seed  # noqa: TC001  # typer reads it
from lab.data import PROJECT, write_measurement
from lab.speed.serving import (
    SHARES,
    family_memory_mb,
    make_library,
    make_request,
    meanwhile,
    percentiles,
    start_server,
)
from rmsh.serve.limits import Connection

CLIENTS, PAUSE = 4, 0.1  # ordinary clients, and the seconds between their requests
CHECKS = ("/healthz", "/metrics")
WARM_UP, PARTS = 5.0, 4  # seconds before the attack; percentiles are taken in each part of it
MOST_MEMORY_MB, MOST_MILLISECONDS = 1000, 1000.0
# One second to end a connection and one for a busy machine; an upload waits for up to three turns and is decoded.
MOST_SECONDS = {"connections": Connection.request_seconds + 2, "images": 80.0}


class Answered(NamedTuple):
    """A request of an ordinary client: its kind, when it was sent, its response time and status (0: none)."""

    kind: str
    sent: float
    seconds: float
    status: int


def main(
    *,
    images: Annotated[int, typer.Option(min=1, help="Number of hostile images.")] = 300,
    connections: Annotated[int, typer.Option(min=1, help="Number of hostile connections held open.")] = 200,
    seconds: Annotated[int, typer.Option(min=1, help="Longest duration of the uploads.")] = 600,
    seed: Seed = 0,
) -> None:
    """Attack, write the result and print the tables; the exit code is 1 if a limit was exceeded."""
    with tempfile.TemporaryDirectory() as folder:
        queries = make_library(Path(folder))
        attack = (images, connections, seconds, seed)
        found = measure(Path(folder) / "library", *queries, attack=attack)
    write_measurement("speed/attack", found)
    for part in ("images", "connections"):
        print(f"{part:18}| count | longest s | statuses")
        for name, row in found[part].items():
            print(f"{name:18}| {row['count']:5} | {row['longest_seconds']:9.1f} | {row['statuses']}")
    print(f"{'ordinary clients':18}| count | p50 ms | p99 ms | worst p99 | longest")
    for name, row in found["milliseconds"].items():
        figures = " | ".join(f"{row[key]:6.0f}" for key in ("p50", "p99", "worst_p99", "longest"))
        print(f"{name:18}| {row['count']:5} | {figures}")
    print(f"{found['seconds']:.0f} s, load before {found['load_before']}; memory in MB {found['memory_mb']}")
    print("\n".join(found["exceeded"]) or "no limit was exceeded")
    if found["exceeded"]:
        sys.exit(1)


def measure(
    library: Path, captions: list[str], pictures: list[bytes], *, attack: tuple[int, int, int, int]
) -> dict[str, Any]:
    """Start a server, attack it with so many images and connections for some seconds with a seed, and summarise."""
    answered: list[Answered] = []
    memory: list[int] = []
    load = os.getloadavg()[0]  # of everything else on the machine
    with start_server(library) as (pid, port):

        def search(stop: threading.Event) -> None:
            chance = random.Random(threading.get_ident())  # noqa: S311
            while not stop.wait(PAUSE):
                (kind,) = chance.choices(list(SHARES), list(SHARES.values()))
                answered.append(_ask(port, kind, make_request(kind, chance, captions, pictures)))

        def check(stop: threading.Event) -> None:
            while not stop.wait(PAUSE):
                answered.extend(_ask(port, path, ("GET", path)) for path in CHECKS)

        def weigh(stop: threading.Event) -> None:
            while not stop.wait(0.1):
                memory.append(family_memory_mb(pid))

        ordinary = [*[search] * CLIENTS, check, weigh]
        meanwhile(ordinary, lambda: time.sleep(WARM_UP))
        before = max(memory)
        answered.clear()
        words = [sys.executable, "-m", "lab.speed.hostile", str(port), *map(str, attack)]
        start, longest = time.perf_counter(), attack[2] + 300
        told = meanwhile(ordinary, lambda: subprocess.check_output(words, cwd=PROJECT, text=True, timeout=longest))
        spent = time.perf_counter() - start
    found: dict[str, Any] = {
        "seed": attack[-1],
        "clients": CLIENTS,
        "load_before": round(load, 1),
        "seconds": round(spent, 1),
        **json.loads(told),
        "errors": Counter(f"{one.kind} {one.status}" for one in answered if one.status != 200),
        "milliseconds": {kind: _percentiles(answered, kind) for kind in (*SHARES, *CHECKS)},
        "memory_mb": {"before": before, "peak": max(memory)},
    }
    return found | {"exceeded": exceeded(found)}


def _ask(port: int, kind: str, request: tuple[Any, ...]) -> Answered:
    """Send a request on a connection of its own, as a client does that has not been here before."""
    start, status = time.perf_counter(), 0
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
    try:
        connection.request(*request)
        response = connection.getresponse()
        response.read()
        status = response.status
    except (OSError, http.client.HTTPException):
        pass
    finally:
        connection.close()
    return Answered(kind, start, time.perf_counter() - start, status)


def _percentiles(answered: list[Answered], kind: str) -> dict[str, float]:
    """Percentiles of the response time, and the largest p99 of all parts of the attack."""
    begin, end = (choose(one.sent for one in answered) for choose in (min, max))
    length = (end - begin) / PARTS + 1e-9
    parts: list[list[float]] = [[] for _ in range(PARTS)]
    for one in answered:
        if one.kind == kind:
            parts[int((one.sent - begin) / length)].append(one.seconds)
    whole = [seconds for part in parts for seconds in part]
    worst = max(percentiles(part)["p99"] for part in parts if part)
    return percentiles(whole) | {"worst_p99": worst, "longest": round(1000 * max(whole), 1)}


def exceeded(found: dict[str, Any]) -> list[str]:
    """A line for each limit that was exceeded."""
    rows = found["milliseconds"]
    values = {f"p99 of {kind} in ms": (row["worst_p99"], MOST_MILLISECONDS) for kind, row in rows.items()}
    values |= {f"longest {kind} in ms": (rows[kind]["longest"], MOST_MILLISECONDS) for kind in CHECKS}
    values["memory in MB"] = found["memory_mb"]["peak"], MOST_MEMORY_MB
    for part, most in MOST_SECONDS.items():
        values |= {f"seconds of {kind}": (row["longest_seconds"], most) for kind, row in found[part].items()}
    values["errors of ordinary clients"] = sum(found["errors"].values()), 0
    return [f"{name}: {value:g}, at most {most:g}" for name, (value, most) in values.items() if value > most]
