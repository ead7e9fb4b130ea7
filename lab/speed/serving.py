"""The server under load: clients on loopback search by text and by image, with and without filters.

The library has 100,000 items of generated scenes with random codes; the encoders are real. Server and clients share the
processors of the machine.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar
from urllib.parse import quote_plus

import numpy as np
import typer

from lab.data import write_measurement
from lab.scenes import write_scenes
from rmsh.codes import Codes
from rmsh.features.efficientnet import EfficientNet
from rmsh.features.minilm import MiniLM
from rmsh.hash_function import HashFunction, Layer
from rmsh.library import Item, Library
from rmsh.model import Model

if TYPE_CHECKING:
    from rmsh.core.types import Modality
    from rmsh.features.base import Encoder

T = TypeVar("T")

ITEMS, SCENES, BITS, CLIENTS = 100_000, 500, 64, 16
SHARES = {"words": 50, "words and filter": 20, "picture": 20, "thumbnail": 10}  # of a hundred requests
WARM_UP = 5.0  # seconds before requests are counted
PARTS = 6  # memory is measured between them
PROGRAM: Sequence[str] = ("-m", "rmsh")  # arguments of the interpreter that runs the server
END_SECONDS = 20.0  # for a server to end by itself
_PROCESSOR = "process_cpu_seconds_total"
_THREAD_SECONDS = 150.0  # that a client may take for its last request


class Seen(NamedTuple):
    """The kind of a request, its response time and status."""

    kind: str
    seconds: float
    status: int


def main(*, seconds: Annotated[float, typer.Option(min=1, help="Duration in seconds.")] = 60.0) -> None:
    """Measure, write the result and print the table."""
    with tempfile.TemporaryDirectory() as folder:
        captions, pictures = make_library(Path(folder))
        result = measure(Path(folder) / "library", captions, pictures, seconds=seconds)
    write_measurement("speed/serving", result)
    print(
        f"{result['requests']} requests in {result['seconds']:.0f} s, {result['per_second']:.0f} per second; ", end=""
    )
    print(f"{sum(result['errors'].values())} errors; memory in MB {result['memory_mb']}")
    print(f"{'':18}| count | p50 ms | p95 ms | p99 ms")
    for kind, row in result["milliseconds"].items():
        print(f"{kind:18}| {row['count']:5} | {row['p50']:6.1f} | {row['p95']:6.1f} | {row['p99']:6.1f}")
    print(f"{result['processor_seconds_a_second']:.2f} processors are busy in the server; where its time goes:")
    for stage, row in result["where_the_time_goes"].items():
        print(f"{stage:18}| {row['share']:6.1%} | {row['mean_ms']:6.1f} ms each")


def make_library(folder: Path) -> tuple[list[str], list[bytes]]:
    """A library of many items; returns texts and images to search with."""
    pairs = write_scenes(folder / "library.pictures", SCENES)
    captions = np.asarray(pairs.texts).tolist()
    files = [str(Path(path).relative_to(folder / "library.pictures")) for path in np.asarray(pairs.images).tolist()]
    labels = [tuple(pairs.class_names[c] for c in np.flatnonzero(row)) for row in np.asarray(pairs.labels)]
    model = random_model()
    with Library.create(folder / "library", model, source=folder / "library.pictures") as library:
        for first in range(0, ITEMS, 10_000):
            rows = range(first, min(first + 10_000, ITEMS))
            items = [Item(str(i), captions[i % SCENES], files[i % SCENES], labels[i % SCENES]) for i in rows]
            packed = np.random.default_rng(first).integers(0, 256, (2, len(rows), BITS // 8), dtype=np.uint8)
            ids = np.array([item.id for item in items])
            codes: dict[Modality, Codes] = {"image": Codes(packed[0], BITS, ids), "text": Codes(packed[1], BITS, ids)}
            library.add(items, codes, model=model.fingerprint)
        library.write_snapshot()
    return captions, [(folder / "library.pictures" / name).read_bytes() for name in files[:100]]


def random_model(seed: int = 0) -> Model:
    """A model with the encoders of a build and random hash functions."""
    encoders: dict[Modality, Encoder] = {"image": EfficientNet(), "text": MiniLM()}
    chance = np.random.default_rng(seed)
    functions = {
        modality: HashFunction((Layer(chance.normal(size=(e.dim, BITS)).astype("f4"), np.zeros(BITS, "f4"), "none"),))
        for modality, e in encoders.items()
    }
    return Model(functions, "random", {}, encoders={m: e.describe() for m, e in encoders.items()})


@contextmanager
def start_server(library: Path, *options: str) -> Iterator[tuple[int, int]]:
    """Run a server; yields its process id and port. Afterwards it and its decoder processes have ended."""
    command = [sys.executable, *PROGRAM, "serve", str(library), "--port", "0", "--json", "--quiet", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101
            yield process.pid, int(json.loads(process.stdout.readline())["url"].rstrip("/").rpartition(":")[2])
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(END_SECONDS)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def meanwhile(workers: Sequence[Callable[[threading.Event], None]], action: Callable[[], T]) -> T:
    """Run an action while each worker runs in a thread of its own; returns the result of the action."""
    stop = threading.Event()
    threads = [threading.Thread(target=worker, args=(stop,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        return action()
    finally:
        stop.set()
        deadline = time.monotonic() + _THREAD_SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if hanging := [thread for thread in threads if thread.is_alive()]:
            raise RuntimeError(f"{len(hanging)} of {len(threads)} clients did not end in {_THREAD_SECONDS:g} seconds")


def measure(library: Path, captions: list[str], pictures: list[bytes], *, seconds: float) -> dict[str, Any]:
    """Start a server, send requests, and summarise the responses."""
    with start_server(library) as (pid, port):
        _load(port, captions, pictures, seconds=WARM_UP)
        before, memory, start = read_metrics(port), [memory_mb(pid)], time.perf_counter()
        seen: list[Seen] = []
        for _ in range(PARTS):
            seen += _load(port, captions, pictures, seconds=seconds / PARTS)
            memory.append(memory_mb(pid))
        spent, after = time.perf_counter() - start, read_metrics(port)
    return {
        "items": ITEMS,
        "clients": CLIENTS,
        "seconds": spent,
        "requests": len(seen),
        "per_second": len(seen) / spent,
        "errors": Counter(str(one.status) for one in seen if one.status != 200),
        "memory_mb": memory,
        "milliseconds": {kind: percentiles([one.seconds for one in seen if one.kind == kind]) for kind in SHARES},
        "processor_seconds_a_second": (after[_PROCESSOR] - before[_PROCESSOR]) / spent,
        "where_the_time_goes": stages(before, after),
    }


def percentiles(values: list[float]) -> dict[str, float]:
    p50, p95, p99 = np.percentile(np.array(values) * 1000, [50, 95, 99]).round(1).tolist()
    return {"count": len(values), "p50": p50, "p95": p95, "p99": p99}


def memory_mb(pid: int) -> int:
    """Resident memory of a process in MB."""
    return int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[0]) >> 10


def family_memory_mb(pid: int) -> int:
    """Proportional set size of a process and its children in MB; what has just ended counts as nothing."""
    total = 0
    for process in (pid, *_children(pid)):
        with suppress(OSError, IndexError):
            total += int(re.findall(r"Pss:\s+(\d+)", Path(f"/proc/{process}/smaps_rollup").read_text())[0])
    return total >> 10


def _children(pid: int) -> list[str]:
    found: list[str] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found += file.read_text().split()
    return found


def _load(port: int, captions: list[str], pictures: list[bytes], *, seconds: float) -> list[Seen]:
    """Let all clients send requests for some seconds, each as soon as the previous one is answered."""
    seen: list[Seen] = []
    seeds = count()

    def send(stop: threading.Event) -> None:
        chance = random.Random(f"{next(seeds)} {port}")  # noqa: S311
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while not stop.is_set():
            (kind,) = chance.choices(list(SHARES), list(SHARES.values()))
            start = time.perf_counter()
            connection.request(*make_request(kind, chance, captions, pictures))
            answer = connection.getresponse()
            answer.read()
            seen.append(Seen(kind, time.perf_counter() - start, answer.status))

    meanwhile([send] * CLIENTS, lambda: time.sleep(seconds))
    return seen


def make_request(kind: str, chance: random.Random, captions: list[str], pictures: list[bytes]) -> tuple[Any, ...]:
    """Method, path, body and headers of a request."""
    if kind == "thumbnail":
        return "GET", f"/api/picture?id={chance.randrange(ITEMS)}&side=640"
    if kind == "picture":
        head = b'--x\r\nContent-Disposition: form-data; name="picture"; filename="q.jpg"\r\n\r\n'
        body = head + chance.choice(pictures) + b"\r\n--x--\r\n"
        return "POST", "/api/search?to=text", body, {"Content-Type": "multipart/form-data; boundary=x"}
    where = "&where=" + quote_plus("not label=animals") if kind == "words and filter" else ""
    return "GET", f"/api/search?text={quote_plus(chance.choice(captions))}{where}"


def read_metrics(port: int) -> dict[str, float]:
    """The metrics of the server by name."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    return {name: float(value) for name, value in re.findall(r"^(\w[^ ]*(?:\{.*\})?) (\S+)$", text, re.MULTILINE)}


def stages(before: dict[str, float], after: dict[str, float]) -> dict[str, dict[str, float]]:
    """Share of the request time and mean milliseconds of each stage, and of the rest."""
    grown = {name: value - before.get(name, 0.0) for name, value in after.items()}
    whole = sum(grown[name] for name in grown if name.startswith("rmsh_request_seconds_sum{") and "/api/" in name)
    requests = sum(grown[name] for name in grown if name.startswith("rmsh_request_seconds_count{") and "/api/" in name)
    found: dict[str, dict[str, float]] = {}
    for stage in sorted(re.findall(r'rmsh_stage_seconds_sum\{stage="([^"]+)"\}', "\n".join(grown))):
        spent, count = (grown[f'rmsh_stage_seconds_{part}{{stage="{stage}"}}'] for part in ("sum", "count"))
        found[stage] = {"share": spent / whole, "mean_ms": 1000 * spent / count}
    rest = 1 - sum(row["share"] for row in found.values())
    return found | {"HTTP and the rest": {"share": rest, "mean_ms": 1000 * rest * whole / requests}}
