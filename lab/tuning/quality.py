"""Quality of RMSH on coco66k: its presets, ablations and options, from the grid rmsh.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pandas as pd

from lab.console import Only, Tables, run_line
from lab.data import GRIDS, RUNS, coco66k_place
from lab.grid import read_grid
from rmsh.compare.runner import make_runs, read_results

if TYPE_CHECKING:
    from rmsh.compare.run import Run


def main(*, only: Only = "", tables: Tables = False) -> None:
    """Run what is missing of the runs whose file name or tag matches, then print the scores of each block."""
    grid = read_grid(GRIDS / "rmsh.yaml")
    wanted = [run for run in grid.runs() if re.search(only, f"{run.path.name} {run.tag}")]
    if not tables:
        make_runs(wanted, RUNS, data={"coco66k": coco66k_place()}, on_run=lambda report: print(run_line(report)))
    for block in grid.blocks:
        print(f"\n{block.name}\n{score_table(grid.block(block.name))}")


def score_table(runs: Iterable[Run]) -> str:
    """NDCG@500 and mAP@all of runs, means and deviations over seeds, as text."""
    runs = list(runs)
    rows = []
    for run, result in zip(runs, read_results(runs, RUNS), strict=True):
        if result is None or result["status"] != "done":
            continue
        options = ", ".join(f"{name} {value}" for name, value in run.options.items())
        row = {"method": run.method, "bits": run.bits, "variant": run.tag or options, "text": run.text}
        row |= {"label noise": run.label_noise, "training pairs": result["training_pairs"]}
        for metric in ("ndcg@500", "map@all"):
            row |= {f"{metric} {d}": result["scores"][d][metric]["value"] for d in ("i2t", "t2i")}
        rows.append(row | {"CPU seconds": result.get("seconds", {}).get("fit_cpu")})
    if not rows:
        return "no results"
    frame = pd.DataFrame(rows)
    keys = [name for name in list(frame)[:6] if frame[name].nunique() > 1] or ["method"]
    scores = frame.groupby(keys, sort=False)[list(frame)[6:]]
    shown = scores.mean().join(scores.std().iloc[:, :2].add_suffix(" std"))
    return str(shown.assign(seeds=scores.size()).round(4).to_string(na_rep="–"))
