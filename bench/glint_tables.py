"""The tables of GLINT beside RMSH, from result files alone."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from bench.tables import DIRECTIONS, markdown
from rmsh.files import write_text

Result = dict[str, Any]


def write(folder: Path) -> None:
    """Read all result files of a folder, print the tables and write them beside the files."""
    results = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    makers = (_lengths, _within, _unseen, _signs, _noise, _pairs, _epochs)
    text = "\n".join(filter(None, (make(results) for make in makers)))
    write_text(folder / "README.md", "# GLINT on coco66k, all database pairs, MiniLM texts, query set\n\n" + text)
    print(text)


def _grouped(results: list[Result], *keys: str, **wanted: Any) -> dict[tuple[Any, ...], list[Result]]:
    """Results whose run has the wanted values, by others of its values."""
    groups: dict[tuple[Any, ...], list[Result]] = defaultdict(list)
    for result in results:
        run = result["run"]
        if all(run[name] == value for name, value in wanted.items()):
            groups[tuple(run[key] for key in keys)].append(result)
    # None stands for all training pairs, more than any number.
    return dict(sorted(groups.items(), key=lambda item: tuple((key is None, key) for key in item[0])))


def _cell(results: list[Result], metric: str, part: str | None = None, directions: tuple[str, ...] = DIRECTIONS) -> str:
    """I→T / T→I, with the deviation over seeds where there are several."""
    cells = []
    for direction in directions:
        scores = [r["scores"][direction] for r in results]
        values = [(score[part] if part else score)[metric] for score in scores]
        cells.append(f"{fmean(values):.4f}" + (f" ± {stdev(values):.4f}" if len(values) > 1 else ""))
    return " / ".join(cells)


def _seconds(results: list[Result]) -> str:
    return f"{fmean(r['cpu_seconds'] for r in results):.0f}"


def _lengths(results: list[Result]) -> str:
    groups = _grouped(results, "bits", "method", label_noise=0.0, options={}, train=None)
    rows = [
        [str(bits), method, str(len(group)), _cell(group, "ndcg@500"), _cell(group, "map@all"), _seconds(group)]
        for (bits, method), group in groups.items()
    ]
    columns = ["bits", "method", "seeds", "NDCG@500 I→T / T→I", "mAP@all I→T / T→I", "training, CPU seconds"]
    return markdown("Code lengths", columns, rows)


def _within(results: list[Result]) -> str:
    measured, within = [r for r in results if "i2i" in r["scores"]], ("i2i", "t2t")
    groups = _grouped(measured, "bits", "method", label_noise=0.0, options={}, train=None)
    rows = [
        [str(bits), method, *(_cell(group, metric, directions=within) for metric in ("ndcg@500", "map@all"))]
        for (bits, method), group in groups.items()
    ]
    return markdown("Within a modality", ["bits", "method", "NDCG@500 I→I / T→T", "mAP@all I→I / T→T"], rows)


def _unseen(results: list[Result]) -> str:
    measured = [{**r, "scores": r["unseen"]} for r in results if "unseen" in r and _is_plain(r)]
    rows = [[str(r["run"]["bits"]), r["run"]["method"], _options(r), *_both(r)] for r in measured]
    columns = ["bits", "method", "options", "NDCG@500", "mAP@all"]
    return markdown("A database that was not learned from: every other query", columns, rows)


def _signs(results: list[Result]) -> str:
    rows = [
        [str(bits), method, _cell(group, "ndcg@500", "some"), _cell(group, "ndcg@500", "relaxed"), _gap(group)]
        for (bits, method), group in _grouped(
            results, "bits", "method", label_noise=0.0, options={}, train=None
        ).items()
    ]
    columns = ["bits", "method", "by codes", "by relaxed values", "lost to the sign"]
    return markdown("The loss to the sign: NDCG@500 of the first 1,000 queries", columns, rows)


def _gap(results: list[Result]) -> str:
    scores = [[r["scores"][d] for r in results] for d in DIRECTIONS]
    lost = [fmean(s["relaxed"]["ndcg@500"] - s["some"]["ndcg@500"] for s in several) for several in scores]
    return " / ".join(f"{value:.4f}" for value in lost)


def _noise(results: list[Result]) -> str:
    runs = [r["run"] for r in results]
    noisy = {(run["method"], str(run["options"])) for run in runs if run["label_noise"]}
    rows = [
        [r["run"]["method"], _options(r), f"{100 * r['run']['label_noise']:g} %", *_both(r)]
        for r in sorted(results, key=lambda r: (r["run"]["method"], str(r["run"]["options"]), r["run"]["label_noise"]))
        if (r["run"]["method"], str(r["run"]["options"])) in noisy and _is_usual(r) and r["run"]["train"] is None
    ]
    columns = ["method", "options", "label sets of other items", "NDCG@500", "mAP@all"]
    return markdown("Noisy labels, 64 bits, seed 0", columns, rows)


def _pairs(results: list[Result]) -> str:
    groups = _grouped(results, "train", "method", bits=64, seed=0, options={}, label_noise=0.0)
    rows = [
        [f"{group[0]['training_pairs']:,}", method, _cell(group, "ndcg@500"), _cell(group, "map@all"), _seconds(group)]
        for (_, method), group in groups.items()
    ]
    columns = ["pairs with labels", "method", "NDCG@500", "mAP@all", "CPU seconds"]
    return markdown("Few labels: so many pairs are learned from, all are searched, 64 bits, seed 0", columns, rows)


def _epochs(results: list[Result]) -> str:
    runs = [r for r in results if _is_usual(r) and _is_plain(r)]
    rows = [
        [r["run"]["method"], _options(r), _seconds([r]), *_both(r)]
        for r in sorted(runs, key=lambda r: r["cpu_seconds"])
    ]
    columns = ["method", "options", "CPU seconds", "NDCG@500", "mAP@all"]
    return markdown("Time and quality, 64 bits, seed 0", columns, rows)


def _both(result: Result) -> tuple[str, str]:
    """NDCG and mAP of one run."""
    return _cell([result], "ndcg@500"), _cell([result], "map@all")


def _is_usual(result: Result) -> bool:
    """Whether the codes have 64 bits, and the seed is the first."""
    return bool(result["run"]["bits"] == 64 and result["run"]["seed"] == 0)


def _is_plain(result: Result) -> bool:
    """Whether all pairs were learned from, with their own labels."""
    return not result["run"]["label_noise"] and result["run"]["train"] is None


def _options(result: Result) -> str:
    given = {"epochs": result["facts"]["epochs"], **result["run"]["options"]}
    return ", ".join(f"{name} {value}" for name, value in given.items())
