"""A million items from shards into a Milvus server that is killed once: complete, verified, and how fast.

The items are images without texts: codes of 256 bits and vectors drawn at random, in the shards that `rmsh encode`
writes. The server is the one of `make test-milvus`, in a network namespace of its own, on the machine of the client.
It is killed when a third of the shards is loaded, and started again on its data.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from lab.console import Tables  # noqa: TC001  # typer reads it
from lab.data import PROJECT, RESULTS, write_measurement
from lab.speed.serving import memory_mb, percentiles
from rmsh.codes import Codes, hamming
from rmsh.compare.provenance import machine
from rmsh.core.files import read_json, write_json
from rmsh.library.items import CandidateQuery
from rmsh.models import wheel_model

if TYPE_CHECKING:
    from rmsh.core.progress import Progress

NAME = "speed/milvus_load"
ITEMS, SHARDS = 1_000_000, 100
_KILLED_AT = 1 / 3  # of the shards
_QUERIES = 50
_CHECKED = 5_000  # items whose codes are compared
_INSIDE = "RMSH_LAB_INSIDE"  # set in the network namespace


def main(
    *,
    items: Annotated[int, typer.Option(help="Number of items.")] = ITEMS,
    shards: Annotated[int, typer.Option(help="Number of shards.")] = SHARDS,
    tables: Tables = False,
) -> None:
    """Measure, write the result and print it; that of another number of items has a file of its own."""
    name = NAME if items == ITEMS else f"{NAME}_{items}"
    if not tables:
        tool = server_tool()
        if not os.environ.get(_INSIDE):
            tool.install()
            words = [*tool.namespace(), sys.executable, "-m", "lab", *sys.argv[1:]]
            os.execvpe(words[0], words, os.environ | {_INSIDE: "1"})  # noqa: S606
        tool.SERVER["COMMON_SESSION_TTL"] = "30"  # seconds that a server waits for the lease of one that was killed
        tool.raise_loopback()
        write_measurement(name, measure(items, shards, tool))
    print(json.dumps(read_json(RESULTS / f"{name}.json"), indent=1))


def server_tool() -> ModuleType:
    """tools/milvus_server.py."""
    spec = importlib.util.spec_from_file_location("milvus_server", PROJECT / "tools" / "milvus_server.py")
    assert spec is not None  # noqa: S101
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_shards(folder: Path, items: int, shards: int) -> None:
    """Shards of drawn images without texts, as `rmsh encode --no-features` writes them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from rmsh.shards import FORMAT, ROWS, VERSION

    model, rng, entries = wheel_model(), np.random.default_rng(0), []
    model.save(folder / "model")
    size = model.embed(np.zeros((1, 1280), np.float32), "image").shape[1]
    code, vector = pa.binary(-(-model.bits // 8)), pa.binary()
    fields = {"id": pa.string(), "text": pa.string(), "picture": pa.string(), "labels": pa.list_(pa.string())}
    fields |= {"image_code": code, "image_vector": vector, "text_code": code, "text_vector": vector}
    for number in range(shards):
        rows = range(items * number // shards, items * (number + 1) // shards)
        none = [None] * len(rows)
        columns: list[list[Any]] = [
            [f"{row:09}" for row in rows],
            none,
            [f"{row // 10000:05}/{row:09}.jpg" for row in rows],
            [[f"class {row % 80}"] for row in rows],
            [bytes(one) for one in rng.integers(0, 256, (len(rows), model.bits // 8), dtype=np.uint8)],
            [bytes(one) for one in rng.integers(-127, 128, (len(rows), size), dtype=np.int8)],
            none,
            none,
        ]
        path, schema = folder / f"part-{number:05}.parquet", pa.schema(list(fields.items()))
        arrays = [pa.array(values, kind) for values, kind in zip(columns, fields.values(), strict=True)]
        pq.write_table(pa.table(arrays, schema=schema), path, row_group_size=ROWS, use_dictionary=False)
        digest = sha256(path.read_bytes()).hexdigest()
        entries.append({"name": path.stem, "items": len(rows), "bytes": path.stat().st_size, "sha256": digest})
    about = {"id": "million", "model": model.fingerprint, "bits": model.bits, "encoders": {}, "items": items}
    write_json(folder / "manifest.json", {"format": FORMAT, "version": VERSION, **about, "shards": entries})


def measure(items: int, shards: int, tool: ModuleType) -> dict[str, Any]:
    """Load, kill, load on, verify."""
    from rmsh.milvus.push import push
    from rmsh.shards import Shards

    load = os.getloadavg()[0]  # of other programs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_shards(folder / "shards", items, shards)
        (folder / "server").mkdir()
        certificate = tool.certify(folder)
        os.environ.update(tool.client(certificate))
        address = f"{os.environ['MILVUS_URI']}/million"
        source, reached, memory = Shards.open(folder / "shards"), threading.Event(), list[int]()
        times: list[tuple[float, int]] = []

        def look(progress: Progress) -> None:
            times.append((time.perf_counter(), progress.done))
            memory.append(memory_mb(os.getpid()))
            if progress.done >= _KILLED_AT * shards:
                reached.set()

        with ThreadPoolExecutor(1) as pool:
            with tool.running(folder / "server", certificate):
                empty = {f"{name}_empty": size for name, size in _server_sizes(folder / "server").items()}
                begin = time.perf_counter()
                times.append((begin, 0))
                loading = pool.submit(push, source, address, on_progress=look)
                while not reached.wait(1) and not loading.done():
                    pass
            killed = time.perf_counter()
            print(f"killed after {killed - begin:.0f} s", flush=True)
            with tool.running(folder / "server", certificate):
                restarted = time.perf_counter()
                done = loading.result()
                seconds = time.perf_counter() - begin
                print(f"loaded after {seconds:.0f} s", flush=True)
                again = push(source, address)
                found: dict[str, Any] = {"written_again": again.written, "removed_again": again.removed}
                found |= _verify(source, address, folder / "shards" / "model", items)
                found |= empty | _server_sizes(folder / "server")
    before = [(moment, count) for moment, count in times if moment < killed]
    rate = items / shards * (before[-1][1] - before[0][1]) / (before[-1][0] - before[0][0])
    outage = next(moment for moment, count in times if moment > restarted) - killed
    tenths = [memory[min(len(memory) * tenth // 10, len(memory) - 1)] for tenth in range(11)]
    return {
        "machine": machine(),
        "load_before": round(load, 1),
        "items": items,
        "shards": shards,
        "bytes_per_item": round(sum(one["bytes"] for one in source.manifest["shards"]) / items),
        "seconds": round(seconds, 1),
        "items_per_second": round(rate),
        "killed_after": round(killed - begin, 1),
        "server_away": round(restarted - killed, 1),
        "no_progress": round(outage, 1),
        "written": done.written,
        "memory_mb": tenths,
        **found,
    }


def _verify(source: Any, address: str, model: Path, items: int) -> dict[str, Any]:
    """Compare codes of items, and the nearest codes of random queries, with the shards themselves."""
    from rmsh.milvus.collection import Collection

    coded = [one for number in range(len(source.manifest["shards"])) for block in source.read(number) for one in block]
    packed = np.frombuffer(b"".join(one.codes["image"] or b"" for one in coded), np.uint8).reshape(items, -1)
    chosen = random.Random(0).sample(range(items), min(_CHECKED, items))  # noqa: S311
    with Collection.open(address, model, consistency="Strong") as collection:
        stored = collection.codes([coded[row].item.id for row in chosen], "image")
        equal, count = bool((stored.packed == packed[chosen]).all()) and len(stored) == len(chosen), collection.count()
    with Collection.open(address, model) as collection:  # as users do: it does not wait for the latest writes
        fingerprint, rng, exact = collection.generation().fingerprint, np.random.default_rng(1), True
        times: dict[str, list[float]] = {"search": [], "candidates": []}
        for query in rng.integers(0, 256, (_QUERIES, packed.shape[1]), dtype=np.uint8):
            code = Codes(query[None], collection.generation().bits, np.array(["q"]))
            begin = time.perf_counter()
            (hits,) = collection.search(code, 10, to="image", model=fingerprint)
            times["search"].append(time.perf_counter() - begin)
            nearest = np.sort(np.concatenate([hamming(query[None], block)[0] for block in np.array_split(packed, 100)]))
            exact = exact and [hit.distance for hit in hits] == nearest[:10].tolist()
            begin = time.perf_counter()
            collection.candidates(CandidateQuery(code, 300, "image", fingerprint), len)
            times["candidates"].append(time.perf_counter() - begin)
    milliseconds = {name: percentiles(found) for name, found in times.items()}
    return {"count": count, "codes_equal": equal, "distances_equal": exact, "milliseconds": milliseconds}


def _server_sizes(data: Path) -> dict[str, int]:
    """Resident memory of the server's processes, and the size of its data on disk."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if str(data) in (folder / "cmdline").read_text():
                total += memory_mb(int(folder.name))
        except (OSError, IndexError):
            continue
    disk = int(subprocess.run(["du", "-sm", str(data / "data")], capture_output=True, text=True).stdout.split()[0])
    return {"server_mb": total, "disk_mb": disk}
