"""Tuning with equal effort: every method has the same number of trials on validation queries, and all are recorded.

A trial is a run on held-out training pairs with some options. The trial with the best NDCG, averaged over both
directions, gives the options of the method in Table 1. The database of a trial is its training subset, and NDCG is cut
at the same fraction of the database as in Table 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Self

import pandas as pd
import yaml
from pydantic import Field, model_validator

from lab.console import Tables, run_line
from lab.data import GRIDS, RESULTS, coco66k_place
from lab.grid import parse_at, read_mapping
from rmsh.compare.provenance import commit
from rmsh.compare.run import Run
from rmsh.compare.runner import make_runs, read_results
from rmsh.core.cache import cache_folder
from rmsh.core.config import Config
from rmsh.core.files import read_json, write_json, write_text


class Trials(Config):
    """The content of a trials file."""

    dataset: str = Field(description="name of the data set")
    bits: int = Field(64, ge=1, description="code length")
    train: int = Field(ge=3, description="training pairs of a trial")
    k: int = Field(500, ge=1, description="cut-off of NDCG")
    text: str = Field("minilm", description="text encoder")
    methods: dict[str, list[dict[str, Any]]] = Field(description="the options of each trial, by method")
    reduced: dict[str, dict[str, Any]] = Field({}, description="options by method that only make trials cheaper")

    @model_validator(mode="after")
    def _equal_numbers(self) -> Self:
        counts = {name: len(options) for name, options in self.methods.items()}
        if len({*counts.values()}) > 1:
            listed = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise ValueError(f"The numbers of trials differ: {listed}; give every method the same number.")
        return self

    def runs(self) -> list[Run]:
        """All trials, method by method in their order."""
        shared: dict[str, Any] = {"train": self.train, "text": self.text, "validation": True, "k": self.k}
        return [
            Run(self.dataset, method, self.bits, options={**self.reduced.get(method, {}), **options}, **shared)
            for method, trials in self.methods.items()
            for options in trials
        ]


def read_trials(path: Path) -> Trials:
    """Read a file of trials.

    Raises:
        ConfigError: the file is missing or not YAML, a key is unknown, or the numbers of trials differ.
    """
    return parse_at(Trials, read_mapping(path), str(path))


def trial_table(trials: Trials, results: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
    """The finished trials with their scores, by method, and which one was chosen.

    Nothing is chosen for a method before all its trials are done.

    Args:
        trials: the trials file.
        results: in the order of ``trials.runs()``.
    """
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in trials.methods}
    tried = [(method, options) for method, each in trials.methods.items() for options in each]
    for (method, options), result in zip(tried, results, strict=True):
        if result is not None:
            rows[method].append({"options": options, **_shown(result, f"ndcg@{trials.k}")})
    for method, made in rows.items():
        complete = len(made) == len(trials.methods[method])
        best = max(made, key=_mean, default=None)
        for row in made:
            row["chosen"] = complete and row is best and _mean(row) > 0  # none is if all failed
    settings = trials.model_dump(exclude={"methods"})
    return {"what": _WHAT, "settings": settings, "methods": {name: made for name, made in rows.items() if made}}


_WHAT = (
    "the same number of trials for every method, on validation queries held out of the training pairs; the chosen one "
    "has the best NDCG, the mean of both directions"
)


def _shown(result: Mapping[str, Any], ndcg: str) -> dict[str, Any]:
    if result["status"] != "done":
        return {"error": result["error"]}
    scores = {
        name: {direction: round(found[measure]["value"], 4) for direction, found in result["scores"].items()}
        for name, measure in (("ndcg", ndcg), ("map", "map@all"))
    }
    constant = max(len(audit["dead"]) + len(audit["nearly_constant"]) for audit in result["audit"].values())
    return {**scores, "constant_bits": constant, "cpu_seconds": result["seconds"]["fit_cpu"]}


def _mean(row: Mapping[str, Any]) -> float:
    return fmean(row["ndcg"].values()) if "ndcg" in row else 0.0


def chosen_options(table: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The options of the chosen trial of each method.

    Example:
        >>> chosen_options({"methods": {"scm": [{"options": {"ridge": 0.1}, "chosen": True}]}})
        {'scm': {'ridge': 0.1}}
    """
    return {
        method: next(row["options"] for row in tried if row["chosen"])
        for method, tried in table["methods"].items()
        if any(row["chosen"] for row in tried)
    }


def write_trials(table: Mapping[str, Any], path: Path, *, chosen: Path) -> None:
    """Write the table as JSON, and the chosen options as the YAML file that grids read."""
    write_json(path, {"commit": commit(), **table})
    heading = '# Options chosen on validation, see trials.yaml; written by `make lab ARGS="trials"`.\n'
    write_text(chosen, heading + yaml.safe_dump(chosen_options(table), sort_keys=True))


def main(*, tables: Tables = False) -> None:
    """Run the missing trials and write their table and the chosen options; then print the table."""
    path = RESULTS / "tuning" / "trials.json"
    if not tables:
        trials, folder = read_trials(GRIDS / "trials.yaml"), cache_folder() / "trials"
        runs = trials.runs()
        make_runs(runs, folder, data={"coco66k": coco66k_place()}, on_run=lambda report: print(run_line(report)))
        write_trials(trial_table(trials, read_results(runs, folder)), path, chosen=GRIDS / "chosen.yaml")
    print(trials_text(read_json(path)))


def trials_text(table: Mapping[str, Any]) -> str:
    """The table of trials as text."""
    rows = [{"method": method, **row} for method, tried in table["methods"].items() for row in tried]
    return str(pd.json_normalize(rows).to_string(index=False, na_rep="")) if rows else "no trials"
