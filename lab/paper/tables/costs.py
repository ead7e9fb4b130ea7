"""What learning costs, a row a method."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from lab.paper.outcomes import Outcome, done
from lab.paper.tables.cells import absence
from lab.paper.tables.comparison import entries_of
from lab.paper.tables.table import Cell, Row, Table

if TYPE_CHECKING:
    from lab.paper.lineup import Lineup

__all__ = ["cost_table"]

_COLUMNS = {"cpu_seconds": "processor seconds", "memory_mb": "memory, MB"}


def cost_table(lineup: Lineup) -> Table | None:
    """What learning costs: processor seconds and memory at the length that most methods have; None without runs."""
    if not lineup.bits:
        return None
    bits = lineup.usual_bits
    groups = {entry.title: group for entry in entries_of(lineup) if (group := lineup.cell(entry, bits))}
    costs = {title: _cost(done(group)) for title, group in groups.items()}
    records = [{"name": title, "bits": bits, **cost} for title, cost in costs.items()]
    rows = tuple(
        Row(title, tuple(Cell(f"{cost[key]:,.0f}" if cost else absence(groups[title])) for key in _COLUMNS))
        for title, cost in costs.items()
    )
    return Table(
        f"costs-{lineup.dataset}",
        f"What learning costs on {lineup.dataset}, {bits} bits",
        "method",
        {"learning": tuple(_COLUMNS.values())},
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
