"""What learning costs, a row a method."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from rmsh.reporting.outcomes import Outcome, done
from rmsh.reporting.tables.comparison import entries_of
from rmsh.reporting.tables.table import Cell, Row, Table

if TYPE_CHECKING:
    from rmsh.reporting.lineup import Lineup

__all__ = ["cost_table"]


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
