"""The tables of docs/howto/machines.md: executors, loading of Milvus, and the plan for many items from these."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from statistics import fmean
from typing import TYPE_CHECKING

from lab.data import GRIDS
from lab.grid import read_grid
from lab.markdown import table

if TYPE_CHECKING:
    from lab.sources import Sources

_ITEMS = {"100 million": 10**8, "1 billion": 10**9}
_CORES = 64  # of the cluster in the plan
_NODE_GB, _USED = 64, 0.75  # memory of a Milvus node, and the share of it that holds items
_BITS = 256


def executors(sources: Sources) -> str:
    """Rates of executors, and what a shard and a worker cost."""
    found = sources.file("speed/executors")
    titles = {"one": "one process", "two": "two processes", "Ray": "Ray, two nodes of one processor"}
    one, two = (found["executors"][name]["per_second"] for name in ("one", "two"))
    rows = []
    for name, title in titles.items():
        way = found["executors"][name]
        rate, spread = way["per_second"], sorted(found["scenes"] / found["rounds"] / s for s in way["seconds"])
        cost = f"{way['empty_ms']:.1f} ms", f"{way['start']:.1f} s", f"{max(way['memory_mb'])} MB"
        rates = f"{rate:.1f} ({spread[0]:.1f} to {spread[-1]:.1f})", f"{rate / one:.2f}", f"{rate / two:.2f}"
        rows.append([title, *rates, *cost])
    columns = ["executor", "images/s", "of one process", "of two", "shard without work", "first answer", "worker"]
    return table(columns, rows) + (
        f"\n\n{found['scenes']:,} drawn scenes in {found['rounds']} rounds, shards of {found['shard']}; medians over "
        "rounds, in brackets the slowest and the fastest.\nAll executors wrote the same bytes: "
        f"{found['bytes_per_item']:,} per image with its features."
    )


def milvus_load(sources: Sources) -> str:
    """A million items into a server that is killed once."""
    found = sources.file("speed/milvus_load")
    memory = found["memory_mb"]
    rows = [
        ["items, and codes written", f"{found['items']:,}, {found['written']:,}"],
        ["rate before the server was killed", f"{found['items_per_second']:,} items/s"],
        ["whole push", f"{found['seconds']:,.0f} s"],
        ["server killed, and ready again", f"after {found['killed_after']:.0f} s, {found['server_away']:.0f} s later"],
        ["without progress", f"{found['no_progress']:.0f} s"],
        ["items afterwards", f"{found['count']:,}"],
        ["codes compared with the shards", "equal" if found["codes_equal"] else "different"],
        ["nearest ten of random codes", "as by brute force" if found["distances_equal"] else "different"],
        ["written and removed by a second push", f"{found['written_again']:,} and {found['removed_again']:,}"],
        ["memory of the client, by tenths", ", ".join(map(str, memory)) + " MB"],
        ["memory of the server, empty and filled", f"{found['server_mb_empty']:,} and {found['server_mb']:,} MB"],
        ["nearest ten, median", f"{found['milliseconds']['search']['p50']:.0f} ms"],
        ["candidates of a first page with vectors, median", f"{found['milliseconds']['candidates']['p50']:.0f} ms"],
    ]
    return table(["measured", "value"], rows)


def _hours(hours: float) -> str:
    return f"{hours * 60:.0f} min" if hours < 2 else f"{hours:,.0f} h" if hours < 72 else f"{hours / 24:,.0f} days"


def _size(size: float) -> str:
    return f"{size / 1e12:,.1f} TB" if size >= 1e12 else f"{size / 1e9:,.0f} GB"


def capacity(sources: Sources) -> str:
    """Bytes and times for many items, from measured rates."""
    encoding, loading = sources.file("speed/executors"), sources.file("speed/milvus_load")
    rate = encoding["executors"]["Ray"]["per_second"] / 2  # of one worker
    each = {"memory": (loading["server_mb"] - loading["server_mb_empty"]) * 2**20, "disk": loading["disk_mb"] * 2**20}
    each = {name: size / loading["items"] for name, size in each.items()}
    huge = sources.file("speed/search")["huge 100000000 64"]["1 threads"]["queries/s"]
    scan = {batch: _BITS / 64 / huge[batch] / 10**8 for batch in ("1", "1000")}  # seconds per code
    of: dict[tuple[str, str], Callable[[int], str]] = {
        ("encode, processor hours", "linear"): lambda n: f"{n / rate / 3600:,.0f}",
        (f"encode on {_CORES} processors", "linear"): lambda n: _hours(n / rate / 3600 / _CORES),
        ("shards with features", "linear"): lambda n: _size(n * encoding["bytes_per_item"]),
        ("shards without", "linear"): lambda n: _size(n * loading["bytes_per_item"]),
        (f"codes of {_BITS} bits alone", "linear"): lambda n: _size(n * _BITS / 8),
        ("train, processor time", "constant: a sample is enough"): lambda _: _training(sources),
        ("load Milvus, one client", "linear"): lambda n: _hours(n / loading["items_per_second"] / 3600),
        ("memory of Milvus", "linear"): lambda n: _size(n * each["memory"]),
        (f"its nodes of {_NODE_GB} GB", "linear"): lambda n: str(ceil(n * each["memory"] / (_NODE_GB * _USED * 1e9))),
        ("disk of Milvus", "linear"): lambda n: _size(n * each["disk"]),
        ("one machine, one thread: one query", "linear"): lambda n: _seconds(n * scan["1"]),
        ("one machine, one thread: a query of 1,000", "linear"): lambda n: _seconds(n * scan["1000"]),
    }
    rows = [[what, *map(value, _ITEMS.values()), growth] for (what, growth), value in of.items()]
    return table(["", *_ITEMS, "grows"], rows)


def _seconds(seconds: float) -> str:
    return f"{1000 * seconds:,.0f} ms" if seconds < 2 else f"{seconds:,.1f} s"


def _training(sources: Sources) -> str:
    runs = read_grid(GRIDS / "unseen.yaml").block("unseen: NEST")
    seconds = fmean(result["seconds"]["fit_cpu"] for result in sources.runs(runs))
    return f"{seconds / 60:.0f} min for 61,903 pairs"
