"""Results as tables and figures look at them: read from a folder, and grouped by what the runs have in common."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from rmsh.compare.grid import Run
from rmsh.compare.result import read_result, unpack_scores

if TYPE_CHECKING:
    from pathlib import Path

    from rmsh.core.types import ScoreArray

__all__ = [
    "DIRECTIONS",
    "MAP",
    "NDCG",
    "Outcome",
    "Sweep",
    "datasets",
    "done",
    "mean_score",
    "read_outcomes",
    "rest",
    "seeds_apart",
    "vary",
    "with_awaited",
]

DIRECTIONS = ("i2t", "t2i")
NDCG, MAP = "ndcg@500", "map@all"
# What a run has that its options may hide: noise, and the data it learns from.
_FIELDS = (
    "dataset",
    "method",
    "bits",
    "preset",
    "text",
    "train",
    "validation",
    "label_noise",
    "image_noise",
    "text_noise",
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """A run and the result it left.

    Args:
        run: its parameters.
        result: what the file has, see experiments/result.py.
    """

    run: Run
    result: dict[str, Any]

    @property
    def done(self) -> bool:
        """Whether it has scores."""
        return bool(self.result["status"] == "done")

    @property
    def failed(self) -> bool:
        """Whether it was run without success; what neither failed nor is done is awaited."""
        return bool(self.result["status"] == "failed")

    def score(self, direction: str, metric: str = NDCG) -> float:
        """The mean over queries."""
        return float(self.result["scores"][direction][metric]["value"])

    def chance(self, direction: str, metric: str = NDCG) -> float:
        """What a random ranking scores."""
        return float(self.result["scores"][direction][metric]["chance"])

    def per_query(self, direction: str) -> ScoreArray | None:
        """(Q,) NDCG of each query, NaN for a dropped one; None where it was not kept."""
        packed = self.result.get("per_query", {}).get(direction, {}).get(NDCG)
        return None if packed is None else unpack_scores(packed)

    def value(self, name: str) -> Any:
        """A parameter of the run, or an option of its method with its default; delta is the one that was used."""
        if name in _FIELDS:
            return getattr(self.run, name)
        if name == "delta":
            return self.result.get("facts", {}).get("delta", {}).get("delta")
        return self.result.get("config", {}).get(name, self.run.options.get(name))


def read_outcomes(folder: Path) -> list[Outcome]:
    """All results below a folder, in the order of their paths.

    Raises:
        FormatError: a file is damaged, or is no result.
    """
    results = (read_result(path) for path in sorted(folder.rglob("*.json")))
    return [Outcome(Run.from_json(result["run"]), result) for result in results]


def with_awaited(outcomes: Sequence[Outcome], wanted: Iterable[Run]) -> list[Outcome]:
    """The outcomes, and one without a result for each run of a grid that is not among them.

    Example:
        >>> (outcome,) = with_awaited([], [Run("d", "rmsh")])
        >>> outcome.done, outcome.failed
        (False, False)
    """
    there = {outcome.run.path for outcome in outcomes}
    return [*outcomes, *(Outcome(run, {"status": "awaited"}) for run in wanted if run.path not in there)]


def done(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Those with scores."""
    return [outcome for outcome in outcomes if outcome.done]


def datasets(outcomes: Iterable[Outcome]) -> list[str]:
    """The names of the data, sorted."""
    return sorted({outcome.run.dataset for outcome in outcomes})


def rest(run: Run, *without: str) -> str:
    """All parameters of a run but its seed and some others: runs with the same rest differ in those alone.

    Example:
        >>> one, two = Run("d", "rmsh", options={"delta": 3.0}), Run("d", "rmsh", seed=4)
        >>> rest(one) == rest(two), rest(one, "delta") == rest(two, "delta")
        (False, True)
    """
    fields = {name: getattr(run, name) for name in _FIELDS if name not in without}
    options = {name: value for name, value in run.options.items() if name not in without}
    return json.dumps([fields, options], sort_keys=True)


@dataclass(frozen=True, eq=False)
class Sweep:
    """Runs that differ in one parameter (and in their seeds).

    Args:
        name: of the parameter.
        run: one of the runs, for all that they have in common.
        points: value -> the runs with it, in the order of the values.
    """

    name: str
    run: Run
    points: dict[float, list[Outcome]]

    def means(self, direction: str) -> list[float]:
        """The score at each value, over seeds."""
        return [mean_score(outcomes, direction) for outcomes in self.points.values()]


def vary(outcomes: Iterable[Outcome], name: str, *, where: Callable[[Run], bool] = lambda _: True) -> list[Sweep]:
    """Groups of runs that differ in one parameter, those with the most values first; runs without scores are left out.

    Args:
        outcomes: to look through.
        name: a field of a run, or an option of its method.
        where: which runs to look at.
    """
    groups: dict[str, dict[float, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for outcome in done(outcomes):
        if where(outcome.run) and (value := outcome.value(name)) is not None:
            groups[rest(outcome.run, name)][float(value)].append(outcome)
    sweeps = [
        Sweep(name, next(iter(p.values()))[0].run, dict(sorted(p.items()))) for p in groups.values() if len(p) > 1
    ]
    return sorted(sweeps, key=lambda sweep: -len(sweep.points))


def mean_score(outcomes: Sequence[Outcome], direction: str, metric: str = NDCG) -> float:
    """The mean over seeds."""
    return fmean(outcome.score(direction, metric) for outcome in outcomes)


def seeds_apart(outcomes: Sequence[Outcome], direction: str, metric: str = NDCG) -> float | None:
    """The standard deviation over seeds, None for one seed.

    It is that of a sample: divided by one less than the number of seeds.
    """
    scores = [outcome.score(direction, metric) for outcome in outcomes]
    return stdev(scores) if len(scores) > 1 else None
