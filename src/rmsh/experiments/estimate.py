"""How long the rest of a grid takes, from the runs that are done: like runs take alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rmsh.experiments.run import Run

__all__ = ["seconds_left"]

# What makes two runs alike, the most telling first.
_LIKENESS = (("dataset", "method", "train", "bits"), ("dataset", "method", "train"), ("method",), ())


def seconds_left(missing: Sequence[Run], done: Sequence[Mapping[str, Any]]) -> float | None:
    """The time the missing runs will take, each as the mean of the runs most like it; None if there are none.

    Example:
        >>> from rmsh.experiments.run import Run
        >>> done = [{"run": Run("a", "scm").to_json(), "seconds": {"total": 3.0}}]
        >>> seconds_left([Run("a", "scm", bits=16), Run("a", "dcmh")], done)
        6.0
    """
    times = [(result["run"], result["seconds"]["total"]) for result in done if "total" in result.get("seconds", {})]
    if not times:
        return None
    return sum(_expected(run.to_json(), times) for run in missing)


def _expected(run: Mapping[str, Any], times: Sequence[tuple[Mapping[str, Any], float]]) -> float:
    for keys in _LIKENESS:
        alike = [seconds for other, seconds in times if all(other[key] == run[key] for key in keys)]
        if alike:
            return fmean(alike)
    return 0.0
