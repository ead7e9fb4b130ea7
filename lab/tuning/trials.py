"""Fair trials: every method, ours included, has the same number of tries on the validation split, and all are shown.

A trial is a run on held-out training pairs with some options. The trial whose NDCG is best, the mean of both
directions, gives the options that the method is trained with on all pairs, once, for the table. A trial learns from
some of the pairs and searches them, and NDCG cuts its ranking as deep, in proportion, as that of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Self

import yaml
from pydantic import Field, model_validator

from rmsh.compare.grid import Run, parse_at, read_mapping
from rmsh.core.config import Config
from rmsh.core.files import write_json, write_text

__all__ = ["Trials", "chosen_options", "read_trials", "trial_table", "write_trials"]


class Trials(Config):
    """What is tried."""

    dataset: str = Field(description="the name of the data")
    bits: int = Field(64, ge=1, description="length of a code")
    train: int = Field(ge=3, description="pairs a trial learns from")
    k: int = Field(500, ge=1, description="where NDCG cuts: as deep in the trial's database as 500 in the whole one")
    text: str = Field("minilm", description="the encoder of raw texts")
    methods: dict[str, list[dict[str, Any]]] = Field(description="the options of each trial, by method")
    reduced: dict[str, dict[str, Any]] = Field({}, description="options by method that make trials cheaper, not chosen")

    @model_validator(mode="after")
    def _as_many_for_each(self) -> Self:
        counts = {name: len(options) for name, options in self.methods.items()}
        if len({*counts.values()}) > 1:
            listed = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise ValueError(f"Every method must have as many trials as the others; these are given: {listed}.")
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
        ConfigError: the file is missing or no YAML, a key is unknown, or one method has more trials than another.
    """
    return parse_at(Trials, read_mapping(path), str(path))


def trial_table(trials: Trials, results: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
    """All trials with their scores, by method, and which was chosen; one that is not done is left out.

    Nothing is chosen for a method before all its trials are done: it would have had fewer than the others.

    Args:
        trials: what was tried.
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
            row["chosen"] = complete and row is best and _mean(row) > 0  # where all failed, none is
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
    """Write the table as JSON, and the chosen options as the YAML that a grid reads."""
    write_json(path, table)
    heading = '# Options chosen on validation, see trials.yaml; written by `make lab ARGS="trials"`.\n'
    write_text(chosen, heading + yaml.safe_dump(chosen_options(table), sort_keys=True))
