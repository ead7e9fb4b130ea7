"""The tables and the plot of search speed, from the result file alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.speed.tables import markdown
from rmsh.core.files import write_text


def write_tables(results: dict[str, Any], path: Path) -> None:
    """Print the tables and write them to a file."""
    measured = {name: result for name, result in results.items() if "one thread" in result}
    parts = [_one_query(measured), _batches(measured), _hashing(measured), _two_threads(measured), _huge(results)]
    text = "\n".join(part for part in parts if part)
    write_text(path, "# Search speed: exact top 100\n\n" + text)
    print(text)


def _rates(result: dict[str, Any], threads: str = "one thread") -> dict[tuple[str, int], float]:
    return {(m["engine"], m["batch"]): m["queries_per_second"] for m in result[threads]}


def _label(name: str) -> list[str]:
    kind, items, bits = name.split()
    return [kind, f"{int(items) // 1_000_000}M", bits]


def _one_query(measured: dict[str, Any]) -> str:
    rows = []
    for name, result in measured.items():
        rate = _rates(result)
        scan, faiss, memory = (rate[engine, 1] for engine in ("scan", "faiss", "memory"))
        cells = [f"{scan:,.0f}", f"{faiss:,.0f}", f"{rate['usearch', 1]:,.1f}", f"{scan / faiss:.2f}"]
        rows.append([*_label(name), *cells, f"{scan / memory:.0%}"])
    columns = ["codes", "items", "bits", "scan", "faiss", "usearch", "scan / faiss", "of the bandwidth"]
    return markdown("One query, one thread: queries a second", columns, rows)


def _batches(measured: dict[str, Any]) -> str:
    rows = []
    for name, result in measured.items():
        rate, cells = _rates(result), []
        for batch in (32, 1000):
            scan, faiss = rate["scan", batch], rate["faiss", batch]
            cells += [f"{scan:,.0f}", f"{faiss:,.0f}", f"{scan / faiss:.1f}"]
        rows.append([*_label(name), *cells])
    columns = [
        "codes",
        "items",
        "bits",
        *(f"{what} {batch}" for batch in (32, 1000) for what in ("scan", "faiss", "×")),
    ]
    return markdown("Batches of 32 and 1,000, one thread: queries a second", columns, rows)


def _hashing(measured: dict[str, Any]) -> str:
    rows = []
    for name, result in measured.items():
        rate = _rates(result)
        for batch in (1, 32, 1000):
            scan, mih = rate["scan", batch], rate.get(("mih", batch))
            hashing = [f"{mih:,.0f}", f"{mih / scan:.2f}"] if mih else ["–", "–"]
            rows.append([*_label(name), str(batch), f"{scan:,.0f}", *hashing])
    columns = ["codes", "items", "bits", "batch", "scan", "mih", "mih / scan"]
    return markdown("Multi-index hashing: queries a second", columns, rows)


def _two_threads(measured: dict[str, Any]) -> str:
    rows = []
    for name, result in measured.items():
        one, two = _rates(result), _rates(result, "two threads")
        scan, memory = two["scan", 1], two["memory", 1]
        gain = [f"{scan:,.0f}", f"{scan / one['scan', 1]:.2f}", f"{memory / one['memory', 1]:.2f}"]
        rows.append([*_label(name), *gain, f"{scan / memory:.0%}"])
    columns = ["codes", "items", "bits", "scan", "× one thread", "memory × one thread", "of the bandwidth of two"]
    return markdown("One query, two threads: queries a second", columns, rows)


def _huge(results: dict[str, Any]) -> str:
    rows = []
    for name, result in results.items():
        for threads in ("1 threads", "2 threads") if name.startswith("huge") else ():
            found = result[threads]
            seconds = [f"{found[f'seconds to {what}'] * 1e3:,.0f} ms" for what in ("open", "first hit")]
            memory = f"{found['MB']['RssAnon']} MB, and {found['MB']['RssFile']} MB of the mapped file"
            rows.append([threads[0], *seconds, memory, *(f"{rate:,.1f}" for rate in found["queries/s"].values())])
    columns = ["threads", "to open", "to the first hit", "memory", "1 query", "batch 32", "batch 1,000"]
    return markdown("100 million uniform codes of 64 bits, memory-mapped: queries a second", columns, rows)


def write_plot(results: dict[str, Any], path: Path) -> None:
    """How many times as fast as faiss the scan is, for each case and batch."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    measured = {name: _rates(result) for name, result in results.items() if "one thread" in result}
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
    for panel, bits, bars in zip(panels, ("64", "128"), ((2.5, 10, 10), (1.8, 4.5, 4.5)), strict=True):
        names = [name for name in measured if name.endswith(f" {bits}")]
        for i, (batch, bar) in enumerate(zip((1, 32, 1000), bars, strict=True)):
            at = [j + 0.26 * (i - 1) for j in range(len(names))]
            ratios = [measured[name]["scan", batch] / measured[name]["faiss", batch] for name in names]
            shown = panel.bar(
                at, ratios, width=0.24, color=f"C{i}", label=f"batch of {batch:,}" if batch > 1 else "one query"
            )
            panel.bar_label(shown, fmt="%.1f", fontsize=7)
            for x in at:
                panel.plot([x - 0.12, x + 0.12], [bar, bar], color="black", linewidth=1)
        panel.set_xticks(range(len(names)), ["\n".join(_label(name)[:2]) for name in names])
        panel.set_title(f"{bits} bits")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("queries a second, times faiss")
    panels[1].legend(*panels[0].get_legend_handles_labels(), frameon=False, title="black line: aim")
    figure.savefig(path, dpi=150)
    plt.close(figure)
