"""Cells of the tables that pages print: scores of some results, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from lab.paper.published import READING
from lab.paper.results import Method
from rmsh.compare.run import Run

if TYPE_CHECKING:
    from rmsh.compare.result import Result

DIRECTIONS = ("i2t", "t2i")
NDCG, MAP = "ndcg@500", "map@all"
CLEAR = 0.01  # a difference of NDCG beyond the usual noise of the seeds


def mean(values: Sequence[float], digits: int = 3, *, spread: bool = True) -> str:
    """The mean with the standard deviation over seeds, if there are several.

    Example:
        >>> mean([0.5, 0.7]), mean([0.5])
        ('0.600 ± 0.141', '0.500')
    """
    deviation = f" ± {stdev(values):.{digits}f}" if spread and len(values) > 1 else ""
    return f"{fmean(values):.{digits}f}{deviation}"


def scores(
    results: Sequence[Result], metric: str, *, directions: Sequence[str] = DIRECTIONS, spread: bool = True
) -> str:
    """Both directions of a metric, means over seeds; a dash without results."""
    values = [[result["scores"][d][metric]["value"] for result in results] for d in directions if results]
    return " / ".join(mean(some, spread=spread) for some in values) or "–"


def both(results: Sequence[Result]) -> list[str]:
    """The cells of NDCG and mAP."""
    return [scores(results, metric) for metric in (NDCG, MAP)]


def chance(results: Sequence[Result], metric: str) -> str:
    """The value of a random ranking, which is the same for all results of one database."""
    found = {result["scores"][d][metric]["chance"] for result in results for d in DIRECTIONS}
    values = {f"{value:.3f}" if value >= 0.0005 else f"{value:.4f}" for value in found}
    return " or ".join(sorted(values)) or "not measured"


def cpu_seconds(results: Sequence[Result]) -> str:
    """Mean CPU seconds of training; a dash without results."""
    return f"{fmean(result['seconds']['fit_cpu'] for result in results):,.0f}" if results else "–"


def select(results: Sequence[Result], **wanted: Any) -> list[Result]:
    """The results of runs with these parameters."""
    return [result for result in results if all(result["run"][key] == value for key, value in wanted.items())]


def row_title(run: Mapping[str, Any] | Run) -> str:
    """The name of a row, see Method."""
    return Method.of(run.to_json() if isinstance(run, Run) else run).title


def rows_of(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Results by the name of their row, best NDCG first; readings of methods without a source are not ranked."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(row_title(result["run"]), []).append(result)
    return dict(sorted(groups.items(), key=lambda group: (READING in group[0], -mean_ndcg(group[1]))))


def mean_ndcg(results: Sequence[Result]) -> float:
    """NDCG of both directions, the mean over seeds, by which rows are ordered."""
    return mean_score(results, NDCG if results[0]["run"]["protocol"] == "paper" else "ndcg@10")


def mean_score(results: Sequence[Result], metric: str) -> float:
    """A metric of both directions, the mean over seeds."""
    return fmean(result["scores"][d][metric]["value"] for result in results for d in DIRECTIONS)


def lost(results: Sequence[Result]) -> str:
    """What the sign costs: NDCG by relaxed values minus NDCG by codes, for the same queries."""
    found = [result["relaxed"] for result in results if result.get("relaxed")]
    losses = [[r[d]["values"][NDCG] - r[d]["codes"][NDCG] for r in found] for d in DIRECTIONS if found]
    return " / ".join(f"{fmean(each):z.3f}" for each in losses) or "–"


def constant_bits(results: Sequence[Result]) -> str:
    """The share of bits that have one value on more than 98 % of the database, in the worst modality and run."""
    audits = [audit for result in results for audit in result.get("audit", {}).values()]
    shares = [(len(audit["dead"]) + len(audit["nearly_constant"])) / audit["bits"] for audit in audits]
    return f"{max(shares):.0%}" if shares else "–"
