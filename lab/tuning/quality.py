"""Quality of RMSH on coco66k: its presets, ablations and options; one result file a run, tables from the files.

A run whose file exists is not made again, and several processes may share the work.
"""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from lab.speed import tables
from lab.speed.data import GRIDS, RESULTS, coco66k_root
from rmsh.compare.grid import read_grid
from rmsh.compare.runner import make_runs

if TYPE_CHECKING:
    from rmsh.compare.runner import Report

FOLDER = RESULTS / "quality"


def main(arguments: argparse.Namespace) -> None:
    """Make the missing runs whose path or name is asked for, then build the tables."""
    grid = read_grid(GRIDS / "rmsh.yaml")
    wanted = [run for run in grid.runs() if re.search(arguments.only, f"{run.path.name} {run.tag}")]
    if not arguments.tables:
        make_runs(wanted, FOLDER, data={"coco66k": f"coco66k:{coco66k_root()}"}, on_run=tell)
    tables.write_quality(grid, FOLDER)


def tell(report: Report) -> None:
    """Say which run ended, and how long the rest will take."""
    left = "" if report.seconds_left is None else f", about {report.seconds_left / 60:.0f} min left"
    print(f"{report.done}/{report.total} {report.run.path} {report.result['status']}{left}", flush=True)
