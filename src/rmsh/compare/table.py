"""Summarise results: one row per method and length with means over seeds; scores beside chance, costs, and bits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

SCORE_COLUMNS = ("method", "bits", "runs", "NDCG@500 I→T", "T→I", "mAP@all I→T", "T→I")
COST_COLUMNS = ("method", "bits", "training, CPU s", "memory, MB", "constant bits", "distinct codes")
_SCORES = (("i2t", "ndcg@500"), ("t2i", "ndcg@500"), ("i2t", "map@all"), ("t2i", "map@all"))


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    method: str  # with its preset if it has one
    bits: int  # 0 for a reference line
    seeds: int  # number of runs in the means
    failed: int  # number of failed runs, which are not in the means
    scores: Mapping[str, Mapping[str, Mapping[str, float]]]  # value and chance by direction and metric
    seconds: float | None  # CPU seconds of training, which other processes on the machine do not affect
    memory_mb: int | None  # peak memory of a run's process
    constant_bits: int | None  # bits that are the same on more than 98 % of the database, in the worst modality and run
    distinct_codes: int | None  # distinct codes in the database, in the worst modality and run
    error: str  # reason of the first failure

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def summarise(results: Iterable[Mapping[str, Any]]) -> list[Row]:
    """One row for each method, preset and length, in the order of the results."""
    groups: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for result in results:
        run = result["run"]
        name = run["method"] if run["preset"] is None else f"{run['method']} ({run['preset']})"
        groups.setdefault((name, run["bits"]), []).append(result)
    return [_row(name, bits, group) for (name, bits), group in groups.items()]


def _row(name: str, bits: int, results: Sequence[Mapping[str, Any]]) -> Row:
    done = [result for result in results if result["status"] == "done"]
    errors = [result["error"] for result in results if result["status"] == "failed"]
    audits = [audit for result in done for audit in result.get("audit", {}).values()]
    times = [result["seconds"]["fit_cpu"] for result in done if "fit_cpu" in result.get("seconds", {})]
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for direction, metric in _SCORES if done else ():
        found = [result["scores"][direction][metric] for result in done]
        means = {kind: fmean(score[kind] for score in found) for kind in ("value", "chance")}
        scores.setdefault(direction, {})[metric] = means
    return Row(
        method=name,
        bits=bits,
        seeds=len(done),
        failed=len(errors),
        scores=scores,
        seconds=fmean(times) if times else None,
        memory_mb=max((result["peak_memory_mb"] for result in done if result.get("peak_memory_mb")), default=None),
        constant_bits=max((len(a["dead"]) + len(a["nearly_constant"]) for a in audits), default=None),
        distinct_codes=min((audit["distinct"] for audit in audits), default=None),
        error=errors[0] if errors else "",
    )


def score_cells(row: Row) -> list[str]:
    """The cells of ``SCORE_COLUMNS``; dashes if no run is done."""
    runs = f"{row.seeds}/{row.seeds + row.failed}" if row.failed else str(row.seeds)
    values = [f"{row.scores[d][m]['value']:.4f}" for d, m in _SCORES] if row.seeds else ["–"] * len(_SCORES)
    return [row.method, str(row.bits or "–"), runs, *values]


def chance_cells(rows: Sequence[Row]) -> list[str]:
    """The scores of a random ranking as a row of the same table; they depend only on the data."""
    done = next((row for row in rows if row.seeds), None)
    values = ["–"] * len(_SCORES) if done is None else [f"{done.scores[d][m]['chance']:.4f}" for d, m in _SCORES]
    return ["chance", "", "", *values]


def cost_cells(row: Row) -> list[str]:
    """The cells of ``COST_COLUMNS``; a dash for what was not measured."""
    counts = [row.memory_mb, row.constant_bits, row.distinct_codes]
    seconds = "–" if row.seconds is None else f"{row.seconds:.1f}"
    return [row.method, str(row.bits or "–"), seconds, *("–" if count is None else f"{count:,}" for count in counts)]
