"""The tables of speed, serving and faults, generated from result files."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from lab.markdown import table

if TYPE_CHECKING:
    from lab.sources import Sources

DIRECTIONS = ("i2t", "t2i")
_DIFFERENT = "groups of different photographs"


def search_speed(sources: Sources) -> str:
    """Exact search beside faiss."""
    measured = sources.file("speed/search")
    cases = [name.split() for name, case in measured.items() if "one thread" in case]
    rows = []
    for kind, items, bits in sorted(cases, key=lambda case: (int(case[2]), int(case[1]), case[0])):
        case = measured[f"{kind} {items} {bits}"]
        rate = {(m["engine"], m["batch"]): m["queries_per_second"] for m in case["one thread"]}
        times = [f"{rate['scan', batch] / rate['faiss', batch]:.1f}" for batch in (1, 32, 1000)]
        reading = f"{rate['scan', 1] / rate['memory', 1]:.0%}"
        vectors = case["machine"].get("vectors", "AVX2")  # a Zen 3, before results named their instructions
        place = [f"{int(items) // 1_000_000} M", bits, kind, vectors]
        rows.append([*place, f"{rate['scan', 1]:,.0f}", reading, *times])
    columns = ["codes", "bits", "kind", "processor", "scan, queries/s", "of reading"]
    columns += ["scan × faiss", "batch of 32", "batch of 1,000"]
    huge = measured["huge 100000000 64"]["1 threads"]
    single, batch = (huge["queries/s"][size] for size in ("1", "1000"))
    return table(columns, rows) + (
        "\n\nA memory-mapped index of 100 million codes of 64 bits opens in "
        f"{huge['seconds to open'] * 1000:.0f} ms. One thread answers {single:.0f} queries per second\n"
        f"one by one and {batch:.0f} in batches of 1,000, with {huge['MB']['RssAnon']} MB besides the mapped file."
    )


def two_stages(sources: Sources) -> str:
    """Candidates by code, rescored, beside exhaustive search: scores and bytes by number of candidates."""
    measured = sources.file("speed/two_stages")
    every = {d: measured[d]["exhaustive"] for d in DIRECTIONS}
    scores = [" / ".join(f"{every[d][metric]:.3f}" for d in DIRECTIONS) for metric in ("ndcg@10", "recall@10")]
    rows = [["all vectors", f"{measured['items']:,}", *scores, "100%"]]
    both_ways = (measured[d]["two stages"] for d in DIRECTIONS)
    ways = [dict(zip(DIRECTIONS, way, strict=True)) for way in zip(*both_ways, strict=True)]
    for way in sorted(ways, key=lambda way: (way["i2t"]["bits"], way["i2t"]["candidates"])):
        bits, count = (way["i2t"][name] for name in ("bits", "candidates"))
        if bits in (64, 256):
            shares = [
                " / ".join(f"{way[d][metric] / every[d][metric]:.1%}" for d in DIRECTIONS)
                for metric in ("ndcg@10", "recall@10")
            ]
            rows.append([f"{bits} bits", f"{count:,}", *shares, f"{max(way[d]['bytes'] for d in DIRECTIONS):.1%}"])
    return table(["candidates by", "candidates", "NDCG@10", "recall@10", "bytes read"], rows)


def serving(sources: Sources) -> str:
    """The server under load."""
    found = sources.file("speed/serving")
    titles = {"words": "text", "words and filter": "text and filter", "picture": "image", "thumbnail": "thumbnail"}
    rows = [
        [title, *(f"{found['milliseconds'][name][p]:.0f} ms" for p in ("p50", "p95", "p99"))]
        for name, title in titles.items()
    ]
    spent = {name: part["mean_ms"] for name, part in found["where_the_time_goes"].items()}
    return table([f"{found['clients']} clients, {found['items']:,} items", "p50", "p95", "p99"], rows) + (
        f"\n\n{found['per_second']:.0f} requests per second, {len(found['errors'])} errors. "
        f"{found['where_the_time_goes']['wait']['share']:.0%} of the time of a request is spent waiting for its turn.\n"
        f"Encoding takes {spent['encode text']:.0f} ms for a text and {spent['encode picture']:.0f} ms for an image, "
        f"searching {spent['search']:.0f} ms, describing the hits {spent['describe']:.0f} ms,\n"
        f"a thumbnail {spent['thumbnail']:.0f} ms. Memory went from {found['memory_mb'][0]} to "
        f"{found['memory_mb'][-1]} MB."
    )


def faults(sources: Sources) -> str:
    """Damaged files, killed writers, lost power, and the long run if there was one."""
    damage, kills, power = (sources.file(f"faults/{name}") for name in ("corruption", "kills", "power_loss"))
    kinds = {"same": "same answers", "refused": "refused", "left out": "items left out", "text index": "words differ"}
    kinds |= {"wrong": "wrong", "traceback": "tracebacks"}
    whole = Counter[str]()
    for row in damage["files"].values():
        whole.update(row)
    rows = []
    for name, row in (damage["files"] | {"all": whole}).items():
        counts = [row.get(kind, 0) for kind in kinds]
        rows.append([name, *map(str, (sum(counts), *counts, row.get("reported", 0)))])
    operations = sorted(kills["killed_during"] | power["during"])
    during = [
        [name, *(str(each.get(name, 0)) for each in (kills["killed_during"], power["during"]))] for name in operations
    ]
    return (
        table(["damaged file", "cases", *kinds.values(), "found by `verify`"], rows)
        + "\n\n"
        + table(["interrupted operation", "killed", "power lost"], during)
        + f"\n\n{kills['runs']} kills, {sum(kills['acknowledged'].values()):,} acknowledged operations, "
        f"{len(kills['failures'])} failures. {power['points']} losses of power among\n{power['changes']:,} recorded "
        f"changes to files, {len(power['failures'])} failures.{_soak(sources)}"
    )


def _soak(sources: Sources) -> str:
    if not (sources.folder / "faults" / "soak.json").exists():
        return ""
    found = sources.file("faults/soak")
    made, parts, errors = found["operations"], found["parts"], sum(found["errors"].values())
    (before, memory), (after, more) = ((part["p50"], part["memory_mb"]) for part in (parts[0], parts[-1]))
    return (
        f"\n\n{found['minutes']:g} minutes of a server with {found['items']:,} items, {made['items added']:,} items "
        f"added, {made['items removed']:,} removed, {made['recodes']} recodes:\n"
        f"{sum(part['count'] for part in parts):,} requests, {errors} errors; median from {before:.0f} to {after:.0f} "
        f"ms, memory from {memory} to {more} MB."
    )


def latency(sources: Sources) -> str:
    """Text searches over HTTP."""
    found = {title: sources.file(f"speed/latency_{title.split()[-1]}") for title in ("images", "images and captions")}
    rows = [
        [f"{row['items']:,} {title}", str(row.get("workers") or "–"), str(row["clients"]), f"{row['per_second']:.0f}"]
        + [f"{row[p]:.1f} ms" for p in ("p50", "p95", "p99")]
        + [f"{row['memory_mb'][0]} to {row['memory_mb'][-1]} MB"]
        for title, result in found.items()
        for row in result["rows"]
    ]
    spent = found["images and captions"]["where_the_time_goes"]
    where = ", ".join(f"{stage} {part['mean_ms']:.1f} ms" for stage, part in spent.items())
    columns = ["items", "`--workers`", "clients", "requests/s", "p50", "p95", "p99", "memory"]
    return table(columns, rows) + f"\n\nOne client, captions: {where}."


def text_encoder(sources: Sources) -> str:
    """The 8-bit copy of the text encoder beside the network itself."""
    found = sources.file("speed/text_encoder")
    rows = [[name, f"{found['ms'][name]:.2f} ms", f"{found['recall@10'][name]:.4f}"] for name in ("float", "8 bit")]
    faster, cosine = found["times as fast"], found["cosine"]
    return (
        table(["weights", "one text", "recall@10 of its image by codes"], rows)
        + f"\n\n{faster:.1f} times as fast. Cosine between both vectors of a text: mean {cosine['mean']:.4f}, least "
        + f"{cosine['least']:.3f}."
    )


def photos_mixed(sources: Sources) -> str:
    """Mixed files through a build and two syncs: what was planned, and what was done."""
    found = sources.file("photos/mixed")
    first, second = found["first sync"], found["second sync"]
    rows = [["image files", f"{sum(found['kinds'].values()):,}", f"{found['built']:,} items"]]
    rows += [[f"skipped: {reason}", "–", f"{count:,}"] for reason, count in found["skipped"].items()]
    rows += [[name, f"{count:,}", f"{first[name]:,}"] for name, count in found["planned"].items()]
    rows.append(["removed by the second sync", f"{found['planned']['missing']:,}", f"{second['removed']:,}"])
    wrong = ("neither items nor explained", "codes changed by a move")
    rows += [[name, "0", f"{found[name]:,}"] for name in wrong]
    rows += [
        [f"{kind} files at the end (`verify --images`)", "0", f"{n:,}"] for kind, n in found["wrong files"].items()
    ]
    return table(["files", "planned", "found"], rows)


def photos_duplicates(sources: Sources) -> str:
    """Recall of planted copies, and precision."""
    found = sources.file("photos/duplicates")
    rows = [[f"recall, {kind}", f"{value:.3f}"] for kind, value in found["recall"].items()]
    rows.append(["precision", f"{found['precision']:.3f}"])
    rows.append(["groups, and those of different photographs", f"{found['groups']:,}, {found[_DIFFERENT]:,}"])
    return table(["copies", "found"], [*rows, ["seconds", f"{found['seconds']:g}"]])


def photos_speed(sources: Sources) -> str:
    """Pairs among a million perceptual hashes, and a sync that finds nothing to do."""
    looks, sync = sources.file("photos/looks"), sources.file("photos/sync")
    rows = [
        [f"{looks['planted']:,} pairs among {looks['looks']:,} perceptual hashes: recall", f"{looks['recall']:.3f}"],
        ["seconds", f"{looks['seconds']:g}"],
        ["additional memory, MB", f"{looks['more memory in MB']:,}"],
        [f"sync of {sync['files']:,} files without changes, seconds", f"{sync['seconds']:g}"],
        ["first sync of these files, seconds", f"{sync['first, in seconds']:g}"],
    ]
    return table(["measured", "value"], rows)
