"""All tables of some results, and their files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from rmsh.experiments.ablation_table import ablation_table
from rmsh.experiments.latex import to_latex
from rmsh.experiments.lineup import Lineup, line_up
from rmsh.experiments.method_table import comparison_table, entries_of
from rmsh.experiments.outcomes import Outcome, datasets, done
from rmsh.experiments.table import Cell, Row, Table, to_csv, to_html, to_markdown
from rmsh.files import write_text

__all__ = ["cost_table", "make_tables", "write_table"]


def make_tables(outcomes: Sequence[Outcome]) -> dict[str, list[Table]]:
    """For each dataset the tables that its results have something for."""
    tables: dict[str, list[Table]] = {}
    for dataset in datasets(outcomes):
        lineup = line_up(outcomes, dataset)
        made = [comparison_table(lineup), ablation_table(outcomes, dataset), cost_table(lineup)]
        tables[dataset] = [table for table in made if table is not None]
    return tables


def write_table(table: Table, folder: Path) -> list[Path]:
    """Write a table in four forms into a folder, and return the files."""
    forms = {"md": to_markdown, "csv": to_csv, "tex": to_latex, "html": to_html}
    paths = [folder / f"{table.name}.{suffix}" for suffix in forms]
    for path, form in zip(paths, forms.values(), strict=True):
        write_text(path, form(table))
    return paths


def cost_table(lineup: Lineup) -> Table | None:
    """What learning costs: processor seconds and memory at the length that most methods have; None without runs."""
    if not lineup.bits:
        return None
    bits = lineup.usual_bits
    entries = [entry for entry in entries_of(lineup) if lineup.cell(entry, bits)]
    records = [{"name": entry.title, "bits": bits, **_cost(done(lineup.cell(entry, bits)))} for entry in entries]
    rows = tuple(
        Row(
            str(r["name"]),
            tuple(Cell(f"{r[key]:,.0f}" if key in r else "failed") for key in ("cpu_seconds", "memory_mb")),
        )
        for r in records
    )
    return Table(
        f"costs-{lineup.dataset}",
        f"What learning costs, {lineup.dataset}, {bits} bits",
        "method",
        {"learning": ("processor seconds", "memory, MB")},
        rows,
        ("Processor seconds of all threads; memory is the peak of the run's own process, data included.",),
        tuple(records),
    )


def _cost(outcomes: Sequence[Outcome]) -> dict[str, float]:
    results = [outcome.result for outcome in outcomes if outcome.result.get("peak_memory_mb")]
    if not results:
        return {}
    return {
        "cpu_seconds": round(fmean(result["seconds"]["fit_cpu"] for result in results), 1),
        "memory_mb": max(result["peak_memory_mb"] for result in results),
    }
