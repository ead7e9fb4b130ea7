"""The tables of docs/howto/machines.md: executors, loading of Milvus, and the plan for many items from these."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from statistics import fmean
from typing import TYPE_CHECKING, Any

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
        times = f"{way['cpu_ms']:.1f} ms", f"{way['empty_ms']:.1f} ms", f"{way['start']:.1f} s"
        rates = f"{rate:.1f} ({spread[0]:.1f} to {spread[-1]:.1f})", f"{rate / one:.2f}", f"{rate / two:.2f}"
        rows.append([title, *rates, *times, f"{max(way['memory_mb'])} MB"])
    columns = [
        "executor",
        "images/s",
        "of one process",
        "of two",
        "processor time per image",
        "shard without work",
        "first answer",
        "worker",
    ]
    return table(columns, rows) + (
        f"\n\n{found['scenes']:,} drawn scenes in {found['rounds']} rounds, shards of {found['shard']}; medians over "
        "rounds, in brackets the slowest and the fastest.\nAll executors wrote the same bytes: "
        f"{found['bytes_per_item']:,} per image with its features.{_others(found)}"
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
    return table(["measured", "value"], rows) + _others(found)


def _others(found: dict[str, Any]) -> str:
    """A sentence if other programs may have used the processors during a measurement."""
    load = found["load_before"]
    said = f"The load of the machine in the minute before was {load}, so other programs may have used the processors."
    return f"\n\n{said}" if load >= 0.5 else ""


def _hours(hours: float) -> str:
    return f"{hours * 60:.0f} min" if hours < 2 else f"{hours:,.0f} h" if hours < 72 else f"{hours / 24:,.0f} days"


def _size(size: float) -> str:
    return f"{size / 1e12:,.1f} TB" if size >= 1e12 else f"{size / 1e9:,.0f} GB"


def capacity(sources: Sources) -> str:
    """Bytes and times for many items, from measured rates."""
    encoding, loading = sources.file("speed/executors"), sources.file("speed/milvus_load")
    rate = encoding["executors"]["Ray"]["per_second"] / 2  # of one worker
    each = {n: (loading[n] - loading[f"{n}_empty"]) * 2**20 / loading["items"] for n in ("server_mb", "disk_mb")}
    of: dict[tuple[str, str], Callable[[int], str]] = {
        ("encode, processor hours", "linear"): lambda n: f"{n / rate / 3600:,.0f}",
        (f"encode on {_CORES} processors", "linear"): lambda n: _hours(n / rate / 3600 / _CORES),
        ("shards with features", "linear"): lambda n: _size(n * encoding["bytes_per_item"]),
        ("shards without: codes, vectors, IDs", "linear"): lambda n: _size(n * loading["bytes_per_item"]),
        (f"codes of {_BITS} bits alone", "linear"): lambda n: _size(n * _BITS / 8),
        ("train on a sample, one processor", "constant"): lambda _: f"{_training(sources)[0]:.0f} min",
        ("load Milvus, one client", "linear"): lambda n: _hours(n / loading["items_per_second"] / 3600),
        ("memory of Milvus", "linear"): lambda n: _size(n * each["server_mb"]),
        (f"its nodes of {_NODE_GB} GB", "linear"): lambda n: str(_nodes(n, each["server_mb"])),
        ("disk of Milvus", "linear"): lambda n: _size(n * each["disk_mb"]),
        ("first page by these nodes, if they scan as a library does", "with items per node"): lambda n: _seconds(
            _candidate_seconds(sources, n / _nodes(n, each["server_mb"]))
        ),
        ("first page by one machine", "linear, and a constant"): lambda n: _seconds(_first_page_seconds(sources, n)),
        ("codes alone, one thread, a query of a batch of 1,000", "linear"): lambda n: _seconds(
            n * _BITS / 64 / _huge(sources)["queries/s"]["1000"] / 10**8
        ),
    }
    rows = [[what, *map(value, _ITEMS.values()), growth] for (what, growth), value in of.items()]
    return table(["", *_ITEMS, "grows"], rows)


def _nodes(items: int, bytes_each: float) -> int:
    return ceil(items * bytes_each / (_NODE_GB * _USED * 1e9))


def _candidate_seconds(sources: Sources, items: float) -> float:
    """The candidates of a first page from a Milvus node: measured with a million, others scanned as in a library."""
    found = sources.file("speed/milvus_load")
    return float(found["milliseconds"]["candidates"]["p50"] / 1000 + (items - found["items"]) * _scan_seconds(sources))


def _first_page_seconds(sources: Sources, items: int) -> float:
    """A text query over HTTP to a library on one machine: measured with ten million, others scanned as they were."""
    (row,) = sources.file("speed/latency_images")["rows"]
    return float(row["p50"] / 1000 + (items - row["items"]) * _scan_seconds(sources))


def _scan_seconds(sources: Sources) -> float:
    """Seconds per item in a search of codes and vectors of ten million on two processors."""
    found = sources.file("speed/latency_images")
    return float(found["where_the_time_goes"]["search"]["mean_ms"] / 1000 / found["rows"][0]["items"])


def _huge(sources: Sources) -> dict[str, Any]:
    return dict(sources.file("speed/search")["huge 100000000 64"]["1 threads"])


def one_machine(sources: Sources) -> str:
    """What a single machine does with 100 million items."""
    huge, page = _huge(sources), _first_page_seconds(sources, 10**8)
    alone, batches = (huge["queries/s"][batch] for batch in ("1", "1000"))
    return (
        f"**One machine is often the better answer.** The codes of 100 million images, {_BITS} bits each, are a file\n"
        f"of {10**8 * _BITS / 8e9:.1f} GB. A memory-mapped file with as many codes of 64 bits opens in "
        f"{1000 * huge['seconds to open']:.0f} ms, and one thread answers\n{alone:.0f} queries per second one by one "
        f"and {batches:.0f} in batches of 1,000. A first page with vectors takes about {_seconds(page)} on two\n"
        "processors, without a network or a cluster to look after."
    )


def training(sources: Sources) -> str:
    """The sentence that training needs no cluster."""
    minutes, pairs = _training(sources)
    return (
        "**Training takes minutes and needs no cluster**: its input is features, and a sample is enough. On one\n"
        f"processor, {pairs:,} photographs with captions and labels take {minutes:.0f} minutes (NEST, {_BITS} bits), "
        "however many images are\nencoded with the model afterwards."
    )


def _seconds(seconds: float) -> str:
    return f"{1000 * seconds:,.0f} ms" if seconds < 2 else f"{seconds:,.1f} s"


def _training(sources: Sources) -> tuple[float, int]:
    """Minutes of one processor, and the number of pairs."""
    results = sources.runs(read_grid(GRIDS / "unseen.yaml").block("unseen: NEST"))
    return fmean(result["seconds"]["fit_cpu"] for result in results) / 60, results[0]["training_pairs"]
