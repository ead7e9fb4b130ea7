"""Reads the results behind the tables of pages, and remembers which runs were read, so that stale ones are found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.data import GRIDS, RESULTS
from lab.grid import read_grid
from rmsh.compare.result import Result, read_result
from rmsh.core.files import read_json

if TYPE_CHECKING:
    from rmsh.compare.run import Run


@dataclass
class Sources:
    """Reads result files, and remembers the runs that it has read.

    Args:
        folder: the folder of the results.
        used: the results of runs, in the order of reading.
    """

    folder: Path = RESULTS
    used: list[Result] = field(default_factory=list)

    def run(self, run: Run) -> Result:
        """The result of a run that is done."""
        result = read_result(self.folder / "runs" / run.path)
        if result["status"] != "done":
            raise SystemExit(f"{run.path} failed, so no page can show it: {result['error']}")
        self.used.append(result)
        return result

    def runs(self, runs: Iterable[Run]) -> list[Result]:
        """The results of several runs."""
        return [self.run(run) for run in runs]

    def found(self, runs: Iterable[Run]) -> list[Result]:
        """The results of those runs that have one."""
        return self.runs(run for run in runs if (self.folder / "runs" / run.path).exists())

    def block(self, grid: str, *names: str, **wanted: Any) -> list[Result]:
        """The results of some blocks of a grid, restricted to runs with these parameters."""
        runs = (run for name in names for run in read_grid(GRIDS / f"{grid}.yaml").block(name))
        return self.runs(run for run in runs if all(getattr(run, key) == value for key, value in wanted.items()))

    def table_1(self, **wanted: Any) -> list[Result]:
        """The results of Table 1 on coco66k."""
        return self.block("coco66k", "table 1", "table 1: GLINT, three seeds", **wanted)

    def file(self, name: str) -> Any:
        """The content of another result file, such as speed/serving."""
        return read_json(self.folder / f"{name}.json")
