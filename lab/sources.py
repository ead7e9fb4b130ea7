"""Reads the results behind the tables of pages, and remembers which runs were read, so that pages can name old ones."""

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
        failed: runs without scores.
    """

    folder: Path = RESULTS
    used: list[Result] = field(default_factory=list)
    failed: list[Result] = field(default_factory=list)

    def run(self, run: Run) -> Result:
        """The result of a run that is done."""
        (result,) = self.runs([run])
        return result

    def runs(self, runs: Iterable[Run]) -> list[Result]:
        """The results of those runs that are done, each once."""
        paths = dict.fromkeys(self.folder / "runs" / run.path for run in runs)
        results = [read_result(path) for path in paths if path.exists()]
        done = [result for result in results if result["status"] == "done"]
        self.used += done
        self.failed += [result for result in results if result["status"] != "done"]
        return done

    def block(self, grid: str, *kinds: str, **wanted: Any) -> list[Result]:
        """The results of the blocks of some kinds (see lab/paper/results.py), restricted to these parameters."""
        content = read_grid(GRIDS / f"{grid}.yaml")
        names = [block.name for block in content.blocks if block.name.partition(":")[0] in kinds]
        runs = (run for name in names for run in content.block(name))
        return self.runs(run for run in runs if all(getattr(run, key) == value for key, value in wanted.items()))

    def table_1(self, **wanted: Any) -> list[Result]:
        """The results of Table 1 on coco66k."""
        return self.block("coco66k", "table 1", **wanted)

    def file(self, name: str) -> Any:
        """The content of another result file, such as speed/serving."""
        return read_json(self.folder / f"{name}.json")
