"""The tables of GLINT beside RMSH, from result files alone."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from lab.speed.tables import DIRECTIONS, markdown
from rmsh.core.files import write_text

Result = dict[str, Any]


def write(folder: Path) -> None:
    """Read all result files of a folder, print the tables and write them beside the files."""
    results = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    makers = (_lengths, _within, _unseen, _signs, _noise, _pairs, _epochs)
    text = "\n".join(filter(None, (make(results) for make in makers)))
    write_text(folder / "README.md", "# GLINT on coco66k, all database pairs, MiniLM texts, query set\n\n" + text)
    print(text)


def _grouped(results: list[Result], *keys: str, **wanted: Any) -> dict[tuple[Any, ...], list[Result]]:
    """Results whose run has the wanted values, by others of its values; options stand as text there."""
    groups: dict[tuple[Any, ...], list[Result]] = defaultdict(list)
    for result in results:
        run = result["run"]
        if all(run[name] == value for name, value in wanted.items()):
            groups[tuple(str(run[key]) if key == "options" else run[key] for key in keys)].append(result)
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
    measured = [{**r, "scores": r["unseen"]} for r in results if "unseen" in r]
    groups = _grouped(measured, "bits", "method", "options", label_noise=0.0, train=None)
    rows = [
        [str(bits), method, _options(group), *_both(group), str(len(group))]
        for (bits, method, _), group in groups.items()
    ]
    columns = ["bits", "method", "options", "NDCG@500", "mAP@all", "seeds"]
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
    groups = _grouped(results, "method", "options", "label_noise", bits=64, train=None)
    noisy = {(method, options) for method, options, share in groups if share}
    rows = [
        [method, _options(group), f"{100 * share:g} %", *_both(group), str(len(group))]
        for (method, options, share), group in groups.items()
        if (method, options) in noisy
    ]
    columns = ["method", "options", "label sets of other items", "NDCG@500", "mAP@all", "seeds"]
    return markdown("Noisy labels, 64 bits", columns, rows)


def _pairs(results: list[Result]) -> str:
    groups = _grouped(results, "train", "method", bits=64, options={}, label_noise=0.0)
    rows = [
        [f"{group[0]['training_pairs']:,}", method, *_both(group), _seconds(group), str(len(group))]
        for (_, method), group in groups.items()
    ]
    columns = ["pairs with labels", "method", "NDCG@500", "mAP@all", "CPU seconds", "seeds"]
    return markdown("Few labels: so many pairs are learned from, all are searched, 64 bits", columns, rows)


def _epochs(results: list[Result]) -> str:
    groups = _grouped(results, "method", "options", bits=64, label_noise=0.0, train=None)
    rows = [
        [method, _options(group), _seconds(group), *_both(group), str(len(group))]
        for (method, _), group in sorted(groups.items(), key=lambda item: fmean(r["cpu_seconds"] for r in item[1]))
    ]
    columns = ["method", "options", "CPU seconds", "NDCG@500", "mAP@all", "seeds"]
    return markdown("Time and quality, 64 bits", columns, rows)


def _both(results: list[Result]) -> tuple[str, str]:
    """NDCG and mAP."""
    return _cell(results, "ndcg@500"), _cell(results, "map@all")


def _options(results: list[Result]) -> str:
    """Of runs that differ in their seeds alone."""
    given = {"epochs": results[0]["facts"]["epochs"], **results[0]["run"]["options"]}
    return ", ".join(f"{name} {value}" for name, value in given.items())
