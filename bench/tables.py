"""Tables from result files alone: mean and deviation over seeds, chance beside every score."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from rmsh.files import write_text

DIRECTIONS = ("i2t", "t2i")


def write_quality(folder: Path) -> None:
    """Read all result files of a folder, print the tables and write them beside the files."""
    results = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    parts = [_code_lengths(results), _texts(results), _ablation(results), _choices(results)]
    text = "\n".join(part for part in parts if part)
    write_text(folder / "README.md", "# Quality on coco66k\n\n" + text)
    print(text)


def _by(results: list[dict[str, Any]], *keys: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for result in results:
        groups[tuple(result[key] for key in keys)].append(result)
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


def _full(results: list[dict[str, Any]], names: tuple[str, ...], text: str = "minilm") -> list[dict[str, Any]]:
    return [result for result in results if result["run"] in names and result["text"] == text]


def _code_lengths(results: list[dict[str, Any]]) -> str:
    names = ("default", "paper", "paper-literal")
    rows = []
    for (bits, name), group in sorted(_by(_full(results, names), "bits", "run").items()):
        chance = group[0]["scores"]["i2t"]
        constant = max(len(audit["nearly_constant"]) for r in group for audit in r["audit"].values())
        row = [str(bits), name, str(len(group)), _score(group), f"{chance['ndcg@500']['chance']:.3f}"]
        row += [
            _score(group, "map@all"),
            f"{chance['map@all']['chance']:.3f}",
            f"{group[0]['facts']['delta']['delta']:g}",
        ]
        spent = [r["cpu_seconds"] for r in group if "cpu_seconds" in r]
        rows.append([*row, str(constant), f"{fmean(spent):.0f}" if spent else "–"])
    columns = ["bits", "preset", "seeds", "NDCG@500 I→T / T→I", "chance", "mAP@all I→T / T→I", "chance", "δ"]
    return markdown(
        "All database pairs, MiniLM texts", [*columns, "bits > 98 % constant", "training, CPU seconds"], rows
    )


def _texts(results: list[dict[str, Any]]) -> str:
    rows = [
        [text, str(len(group)), _score(group), _score(group, "map@all")]
        for (text, bits), group in sorted(_by([r for r in results if r["run"] == "default"], "text", "bits").items())
        if bits == 64
    ]
    return markdown("Text features, 64 bits", ["texts", "seeds", "NDCG@500", "mAP@all"], rows)


def _ablation(results: list[dict[str, Any]]) -> str:
    """Each ablation against RMSH, paired over seeds: the mean difference with its 95 % interval."""
    by_seed = {r["seed"]: r for r in _full(results, ("default",)) if r["bits"] == 64}
    rows = []
    for name, title in (("rmsh-t", "RMSH-T"), ("rmsh-c", "RMSH-C"), ("rmsh-p", "RMSH-P")):
        group = [r for r in _full(results, (name,)) if r["seed"] in by_seed and r["bits"] == 64]
        if len(group) < 2:
            continue
        differences = [_interval([_ndcg(by_seed[r["seed"]], d) - _ndcg(r, d) for r in group]) for d in DIRECTIONS]
        rows.append([title, str(len(group)), _score(group), " / ".join(differences)])
    if rows:
        rows.append(["RMSH", str(len(by_seed)), _score(list(by_seed.values())), ""])
    return markdown(
        "Ablation, 64 bits, paired over seeds", ["variant", "seeds", "NDCG@500", "RMSH minus variant"], rows
    )


def _ndcg(result: dict[str, Any], direction: str) -> float:
    return float(result["scores"][direction]["ndcg@500"]["value"])


# Two-sided 95 % points of Student's t for 1 to 9 degrees of freedom.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def _interval(differences: list[float]) -> str:
    n = len(differences)
    return f"{fmean(differences):+.4f} ± {_STUDENT[n - 2] * stdev(differences) / n**0.5:.4f}"


def _choices(results: list[dict[str, Any]]) -> str:
    found = {r["run"].removeprefix("choice "): r for r in results if r["run"].startswith("choice ")}
    if "default" not in found:
        return ""
    rows = [
        [name, _score([r]), " / ".join(f"{_ndcg(r, d) - _ndcg(found['default'], d):+.4f}" for d in DIRECTIONS)]
        for name, r in found.items()
    ]
    title = "What each open choice is worth: 20,000 training pairs, 8 epochs, 64 bits, validation queries"
    return markdown(title, ["choice", "NDCG@500", "difference from the default"], rows)
