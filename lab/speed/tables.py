"""Tables of RMSH's quality from result files alone: mean and deviation over seeds, chance beside every score."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from rmsh.compare.runner import read_results
from rmsh.core.files import write_text

if TYPE_CHECKING:
    from rmsh.compare.grid import Grid, Run

DIRECTIONS = ("i2t", "t2i")

Done = tuple["Run", dict[str, Any]]  # a run and its result


def write_quality(grid: Grid, folder: Path) -> None:
    """Read the results of a grid, print the tables and write them beside the files."""
    done = {block.name: _done(grid, block.name, folder) for block in grid.blocks}
    parts = [
        _code_lengths([*done["default"], *done["presets"]]),
        _texts([*done["default"], *done["bag of words"]]),
        _ablation(done["default"], done["ablation"]),
        _choices(done["choices"]),
    ]
    text = "\n".join(part for part in parts if part)
    write_text(folder / "README.md", "# Quality on coco66k\n\n" + text)
    print(text)


def _done(grid: Grid, block: str, folder: Path) -> list[Done]:
    runs = grid.block(block)
    results = zip(runs, read_results(runs, folder), strict=True)
    return [(run, result) for run, result in results if result is not None and result["status"] == "done"]


def _grouped(done: Iterable[Done], *fields: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for run, result in done:
        groups[tuple(getattr(run, name) or "default" for name in fields)].append(result)
    return groups


def _score(results: list[dict[str, Any]], metric: str = "ndcg@500") -> str:
    """I->T / T->I, with the deviation over seeds where there are several."""
    cells = []
    for direction in DIRECTIONS:
        values = [result["scores"][direction][metric]["value"] for result in results]
        cells.append(f"{fmean(values):.4f}" + (f" ± {stdev(values):.4f}" if len(values) > 1 else ""))
    return " / ".join(cells)


def markdown(title: str, columns: list[str], rows: list[list[str]]) -> str:
    """A titled table, or nothing where it has no rows."""
    if not rows:
        return ""
    lines = [f"## {title}", "", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows), ""])


def _code_lengths(done: list[Done]) -> str:
    rows = []
    for (bits, preset), group in sorted(_grouped(done, "bits", "preset").items()):
        chance = group[0]["scores"]["i2t"]
        constant = max(len(audit["nearly_constant"]) for r in group for audit in r["audit"].values())
        row = [str(bits), preset, str(len(group)), _score(group), f"{chance['ndcg@500']['chance']:.3f}"]
        row += [
            _score(group, "map@all"),
            f"{chance['map@all']['chance']:.3f}",
            f"{group[0]['facts']['delta']['delta']:g}",
        ]
        spent = [r["seconds"]["fit_cpu"] for r in group if "seconds" in r]
        rows.append([*row, str(constant), f"{fmean(spent):.0f}" if spent else "–"])
    columns = ["bits", "preset", "seeds", "NDCG@500 I→T / T→I", "chance", "mAP@all I→T / T→I", "chance", "δ"]
    return markdown(
        "All database pairs, MiniLM texts", [*columns, "bits > 98 % constant", "training, CPU seconds"], rows
    )


def _texts(done: list[Done]) -> str:
    rows = [
        [text, str(len(group)), _score(group), _score(group, "map@all")]
        for (text, bits), group in sorted(_grouped(done, "text", "bits").items())
        if bits == 64
    ]
    return markdown("Text features, 64 bits", ["texts", "seeds", "NDCG@500", "mAP@all"], rows)


def _ablation(whole: list[Done], variants: list[Done]) -> str:
    """Each ablation against RMSH, paired over seeds: the mean difference with its 95 % interval."""
    by_seed = {run.seed: result for run, result in whole if run.bits == 64}
    rows = []
    for (name,), group in _grouped([(run, r) for run, r in variants if run.seed in by_seed], "tag").items():
        if len(group) < 2:
            continue
        differences = [_interval([_ndcg(by_seed[_seed(r)], d) - _ndcg(r, d) for r in group]) for d in DIRECTIONS]
        rows.append([name, str(len(group)), _score(group), " / ".join(differences)])
    if rows:
        rows.append(["RMSH", str(len(by_seed)), _score(list(by_seed.values())), ""])
    return markdown(
        "Ablation, 64 bits, paired over seeds", ["variant", "seeds", "NDCG@500", "RMSH minus variant"], rows
    )


def _seed(result: dict[str, Any]) -> int:
    return int(result["run"]["seed"])


def _ndcg(result: dict[str, Any], direction: str) -> float:
    return float(result["scores"][direction]["ndcg@500"]["value"])


# Two-sided 95 % points of Student's t for 1 to 9 degrees of freedom.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def _interval(differences: list[float]) -> str:
    n = len(differences)
    return f"{fmean(differences):+.4f} ± {_STUDENT[n - 2] * stdev(differences) / n**0.5:.4f}"


def _choices(done: list[Done]) -> str:
    found = {run.tag: result for run, result in done}
    start = found.get("the beginning")
    if start is None:
        return ""
    rows = [
        [name, _score([r]), " / ".join(f"{_ndcg(r, d) - _ndcg(start, d):+.4f}" for d in DIRECTIONS)]
        for name, r in sorted(found.items())
    ]
    title = "What each open choice is worth: 20,000 training pairs, 8 epochs, 64 bits, validation queries"
    return markdown(title, ["choice", "NDCG@500", "difference from the beginning"], rows)
