"""Fair trials: every method tried the same number of times on validation; the table, and the options it chooses."""

from __future__ import annotations

import argparse

from lab.paper.tables.trials import trials_markdown
from lab.speed.data import GRIDS, RESULTS, coco66k_root
from lab.tuning.quality import tell
from lab.tuning.trials import read_trials, trial_table, write_trials
from rmsh.compare.runner import make_runs, read_results
from rmsh.core.cache import cache_folder
from rmsh.core.files import write_text


def main(arguments: argparse.Namespace) -> None:
    """Make the missing trials, then write the table and the options it chooses."""
    trials, folder = read_trials(GRIDS / "trials.yaml"), cache_folder() / "trials"
    runs = trials.runs()
    if not arguments.tables:
        make_runs(runs, folder, data={"coco66k": f"coco66k:{coco66k_root()}"}, on_run=tell)
    table = trial_table(trials, read_results(runs, folder))
    write_trials(table, RESULTS / "trials.json", chosen=GRIDS / "chosen.yaml")
    write_text(RESULTS / "trials.md", trials_markdown(table))
    print(trials_markdown(table))
