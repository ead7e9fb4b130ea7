"""Summarise results: one row per protocol, method and length, means over seeds, scores beside chance, costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rmsh.compare.result import with_prefixes
from rmsh.metrics.counterparts import RECALL_RANKS
from rmsh.metrics.evaluate import UNSEEN_RANKS, shown_name

PROTOCOL_TITLES = {"paper": "the database is the training set", "unseen": "the database was not trained on"}
COST_COLUMNS = ("method", "bits", "training, CPU s", "memory, MB", "constant bits", "distinct codes")
_DIRECTIONS = ("i2t", "t2i")


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    protocol: str
    method: str  # with its preset if it has one
    bits: int  # 0 for a reference line
    prefix_of: int | None  # length of the codes whose first bits these are
    seeds: int  # number of runs in the means
    failed: int  # number of failed runs, which are not in the means
    scores: Mapping[str, Mapping[str, Mapping[str, float]]]  # value and chance by metric and direction
    relaxed: Mapping[str, float]  # the first score by direction, ranked by the values before the sign; may be empty
    database: int  # items that are ranked; 0 if no run is done
    seconds: float | None  # CPU seconds of training, which other processes on the machine do not affect
    memory_mb: int | None  # peak memory of a run's process
    constant_bits: int | None  # bits that are the same on more than 98 % of the database, in the worst modality and run
    distinct_codes: int | None  # distinct codes in the database, in the worst modality and run
    error: str  # reason of the first failure

    @property
    def name_cells(self) -> list[str]:
        return [self.method, f"{self.bits} of {self.prefix_of}" if self.prefix_of else str(self.bits or "–")]


def metrics_of(run: Mapping[str, Any]) -> list[str]:
    """The scores that a table shows of a run, by their names in a result file.

    Example:
        >>> metrics_of({"protocol": "paper", "k": 500})
        ['ndcg@500', 'map@all']
    """
    if run["protocol"] == "paper":
        return [f"ndcg@{run['k']}", "map@all"]
    return [*(f"ndcg@{k}" for k in UNSEEN_RANKS), "map@all", *(f"recall@{k}" for k in RECALL_RANKS)]


def summarise(results: Iterable[Mapping[str, Any]]) -> list[Row]:
    """One row for each protocol, method, preset and length, in the order of the results."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for result in (part for whole in results for part in with_prefixes(whole)):
        key = tuple(result["run"].get(name) for name in ("protocol", "method", "preset", "bits", "prefix_of"))
        groups.setdefault(key, []).append(result)
    return [_row(group) for group in groups.values()]


def _row(results: Sequence[Mapping[str, Any]]) -> Row:
    run = results[0]["run"]
    done = [result for result in results if result["status"] == "done"]
    errors = [result["error"] for result in results if result["status"] == "failed"]
    audits = [audit for result in done for audit in result.get("audit", {}).values()]
    times = [result["seconds"]["fit_cpu"] for result in done if "fit_cpu" in result.get("seconds", {})]
    scores: dict[str, dict[str, dict[str, float]]] = {metric: {} for metric in metrics_of(run)}
    for metric, by_direction in scores.items():
        for direction in _DIRECTIONS if done else ():
            found = [result["scores"][direction][metric] for result in done]
            by_direction[direction] = {kind: fmean(score[kind] for score in found) for kind in ("value", "chance")}
    relaxed = [result["relaxed"] for result in done if result.get("relaxed")]
    return Row(
        protocol=run["protocol"],
        method=run["method"] if run["preset"] is None else f"{run['method']} ({run['preset']})",
        bits=run["bits"],
        prefix_of=run.get("prefix_of"),
        seeds=len(done),
        failed=len(errors),
        scores=scores,
        relaxed={d: fmean(r[d]["values"][metrics_of(run)[0]] for r in relaxed) for d in _DIRECTIONS} if relaxed else {},
        database=done[0]["queries"]["i2t"]["database"] if done else 0,
        seconds=fmean(times) if times else None,
        memory_mb=max((result["peak_memory_mb"] for result in done if result.get("peak_memory_mb")), default=None),
        constant_bits=max((len(a["dead"]) + len(a["nearly_constant"]) for a in audits), default=None),
        distinct_codes=min((audit["distinct"] for audit in audits), default=None),
        error=errors[0] if errors else "",
    )


def score_table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Column titles and cells of rows of one protocol: both directions of each score, chance in the last line.

    The first score is also given for the values before the sign, see ``relaxed`` in a result file. Chance depends only
    on the data. A score without a finished run is a dash.
    """
    done = next((row for row in rows if row.seeds), rows[0])
    titles = [shown_name(_title(metric), done.database) if done.database else _title(metric) for metric in done.scores]
    lines = []
    for row in rows:
        runs = f"{row.seeds}/{row.seeds + row.failed}" if row.failed else str(row.seeds)
        first, *others = _cells(row, "value")
        relaxed = " / ".join(f"{value:.4f}" for value in row.relaxed.values()) or "–"
        lines.append([*row.name_cells, runs, first, relaxed, *others])
    first, *others = _cells(done, "chance")
    columns = ["method", "bits", "runs", titles[0], f"relaxed {titles[0]}", *titles[1:]]
    return columns, [*lines, ["chance", "", "", first, "", *others]]


def _title(metric: str) -> str:
    return metric.replace("ndcg", "NDCG").replace("map", "mAP")


def _cells(row: Row, kind: str) -> list[str]:
    return [" / ".join(f"{score[kind]:.4f}" for score in by.values()) or "–" for by in row.scores.values()]


def cost_cells(row: Row) -> list[str]:
    """The cells of ``COST_COLUMNS``; a dash for what was not measured."""
    counts = [row.memory_mb, row.constant_bits, row.distinct_codes]
    seconds = "–" if row.seconds is None else f"{row.seconds:.1f}"
    return [*row.name_cells, seconds, *("–" if count is None else f"{count:,}" for count in counts)]
