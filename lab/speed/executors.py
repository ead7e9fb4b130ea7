"""How fast executors encode: one process, two processes, and a Ray cluster of two nodes, with one thread each.

Drawn scenes are encoded into shards, round after round, in each round by all executors in turns, with the workers
running already; all must write the same bytes. Besides: the time that an executor spends on a shard without work, the
time until its first answer, and the processor time and memory of a worker with its decoder. Needs the environment of
`make test-ray`.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from lab.console import Tables  # noqa: TC001  # typer reads it
from lab.data import PROJECT, RESULTS, write_measurement
from lab.scenes import write_scenes
from rmsh.compare.provenance import machine
from rmsh.core.errors import RmshError
from rmsh.core.files import read_json
from rmsh.features.executors import Processes, Ray, run
from rmsh.models import wheel_model
from rmsh.shards import encode_shards

if TYPE_CHECKING:
    from rmsh.features.executors import Executor

NAME = "speed/executors"
SCENES, ROUNDS, SHARD = 20_000, 5, 250
_EMPTY = 400  # shards without work
_PYTHON = PROJECT / ".venv-ray" / "bin" / "python"


def main(
    *,
    scenes: Annotated[int, typer.Option(help="Number of drawn scenes.")] = SCENES,
    rounds: Annotated[int, typer.Option(help="Number of rounds.")] = ROUNDS,
    shard: Annotated[int, typer.Option(help="Scenes per shard.")] = SHARD,
    tables: Tables = False,
) -> None:
    """Measure, write the result and print it."""
    if not tables:
        if find_spec("ray") is None:
            if not _PYTHON.exists():
                raise RmshError("Ray is not installed; run `make test-ray` first, which installs it.")
            os.execv(_PYTHON, [str(_PYTHON), "-m", "lab", "executors", *sys.argv[2:]])  # noqa: S606
        write_measurement(NAME, measure(scenes, rounds, shard))
    print(text(read_json(RESULTS / f"{NAME}.json")))


def text(result: dict[str, Any]) -> str:
    """One line per executor."""
    columns = ("images/s", "of one", "CPU ms/image", "ms per shard", "first answer", "MB per worker")
    lines = ["           " + " ".join(f"{column:>13}" for column in columns)]
    for name, one in result["executors"].items():
        share = one["per_second"] / result["executors"]["one"]["per_second"]
        values = (one["per_second"], share, one["cpu_ms"], one["empty_ms"], one["start"], max(one["memory_mb"]))
        lines.append(f"{name:10} " + " ".join(f"{value:13.2f}" for value in values))
    return "\n".join(lines)


def measure(scenes: int, rounds: int, shard: int) -> dict[str, Any]:
    """Rates as medians over rounds; AssertionError if the bytes differ."""
    load = round(os.getloadavg()[0], 1)  # of other programs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = np.asarray(write_scenes(folder / "scenes", scenes).images).tolist()
        parts = {str(number): paths[number::rounds] for number in range(rounds)}
        for number, part in (parts | {"first": paths[:64]}).items():
            (folder / number).mkdir()
            for path in part:
                os.link(path, folder / number / Path(path).name)
        os.environ["PYTHONPATH"] = os.pathsep.join([str(PROJECT), str(PROJECT / "src")])
        with _cluster() as address:
            found = _measure(folder, rounds, shard, {"one": "1", "two": "2", "Ray": address})
    counts = {"scenes": scenes, "rounds": rounds, "shard": shard}
    return {"machine": machine(), "load_before": load, **counts, **found, "equal_bytes": True}


@contextmanager
def _cluster() -> Iterator[str]:
    """A head without processors and two nodes with one each, on loopback."""
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # as there, everything stays on loopback
    from ray.cluster_utils import Cluster

    small: dict[str, Any] = {"object_store_memory": 80 << 20}
    cluster = Cluster(initialize_head=True, head_node_args=small | {"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=1, **small)
    try:
        yield cluster.address
    finally:
        cluster.shutdown()


def _measure(folder: Path, rounds: int, shard: int, ways: dict[str, str]) -> dict[str, Any]:
    executors: dict[str, Executor] = {}
    found: dict[str, Any] = {}
    for name, given in ways.items():
        begin = time.perf_counter()
        executors[name] = Ray(given) if name == "Ray" else Processes(int(given))
        _empty(executors[name], 1)
        found[name] = {"start": round(time.perf_counter() - begin, 2), "seconds": []}
        found[name]["empty_ms"] = round(1000 * _empty(executors[name], _EMPTY) / _EMPTY, 2)
    for name, executor in executors.items():  # the first shards load the network
        encode_shards(wheel_model(), str(folder / "first"), str(folder / f"first {name}"), size=8, executor=executor)
    count, size, manifest = 0, 0, dict[str, Any]()
    for number in range(rounds):
        data, hashes = str(folder / f"{number}"), set()
        for name, executor in executors.items():
            out, begin = str(folder / f"{number} {name}"), time.perf_counter()
            manifest, _ = encode_shards(wheel_model(), data, out, size=shard, executor=executor)
            found[name]["seconds"].append(round(time.perf_counter() - begin, 3))
            hashes.add(tuple(one["sha256"] for one in manifest["shards"]))
            rate = manifest["items"] / found[name]["seconds"][-1]
            print(f"round {number + 1}, {name}: {rate:.1f} images/s", flush=True)
        assert len(hashes) == 1, "the executors wrote different bytes"  # noqa: S101
        count, size = manifest["items"], sum(one["bytes"] for one in manifest["shards"])
    for name, executor in executors.items():
        found[name]["per_second"] = round(count / median(found[name]["seconds"]), 2)
        tasks = {str(n): {"number": n} for n in range(8)}
        told = run(executor, "lab.speed.executors:used", tasks, check="builtins:bool")
        workers = {process: used for _, (process, *used) in told}.values()
        found[name]["memory_mb"] = sorted(memory for memory, _ in workers)
        found[name]["cpu_ms"] = round(1000 * sum(seconds for _, seconds in workers) / (rounds * count), 2)  # per image
        executor.close()
    return {"executors": found, "bytes_per_item": round(size / count)}


def _empty(executor: Executor, count: int) -> float:
    """The seconds that some tasks without work take."""
    begin = time.perf_counter()
    list(run(executor, "builtins:len", {str(n): [n] for n in range(count)}, check="builtins:bool"))
    return time.perf_counter() - begin


def used(_task: Any) -> tuple[int, int, float]:
    """In a worker: its process ID, and what it and its children use: resident memory in MB, and processor seconds."""
    time.sleep(0.2)  # so that every worker gets a task
    ids, total, seconds = [os.getpid()], 0, 0.0
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    ids += [int(child) for file in children for child in file.read_text().split()]
    for process in ids:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        total += pages * os.sysconf("SC_PAGE_SIZE")
        after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        seconds += sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")  # in the program and in the system
    return os.getpid(), total >> 20, seconds
