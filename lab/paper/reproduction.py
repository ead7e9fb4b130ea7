"""From the files of runs to everything a reader sees: tables, figures and the report, all in one folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lab.paper.figures.catalogue import draw_figures
from lab.paper.outcomes import done, read_outcomes, with_awaited
from lab.paper.report import render_report
from lab.paper.tables.catalogue import make_tables, write_table
from rmsh.core.errors import DataError
from rmsh.core.files import write_text

if TYPE_CHECKING:
    from pathlib import Path

    from rmsh.compare.grid import Run

__all__ = ["write_report"]


def write_report(folder: Path, *, title: str, wanted: Sequence[Run] = ()) -> dict[str, Any]:
    """Write ``tables/``, ``figures/`` and ``report.html`` from what ``runs/`` and ``showcase/`` hold.

    Args:
        folder: with the results.
        title: of the report.
        wanted: all runs of the grid, to say which are missing.

    Returns:
        The files, and how many runs are done and failed.

    Raises:
        DataError: there is no result of any run.
        FormatError: a result is damaged.
    """
    made = read_outcomes(folder / "runs")
    if not made:
        raise DataError(f"{folder / 'runs'} holds no result of a run; make the runs first.")
    outcomes = with_awaited(made, wanted)
    tables = make_tables(outcomes)
    files = [path for own in tables.values() for table in own for path in write_table(table, folder / "tables")]
    figures = draw_figures(outcomes, folder / "figures", showcase=folder / "showcase")
    remarks = folder / "remarks.md"
    page = render_report(
        title,
        outcomes,
        tables=tables,
        figures=figures,
        remarks=remarks.read_text(encoding="utf-8") if remarks.is_file() else "",
    )
    write_text(folder / "report.html", page)
    return {
        "report": str(folder / "report.html"),
        "done": len(done(made)),
        "failed": len(made) - len(done(made)),
        "tables": [str(path) for path in files],
        "figures": [str(path) for drawn in figures for path in drawn.files],
    }
