"""Tables of the trials, of GLINT and of few pairs, each generated from result files."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from lab.cells import CLEAR, DIRECTIONS, MAP, NDCG, both, chance, cpu_seconds, mean, mean_score, scores, select
from lab.data import GRIDS
from lab.grid import read_grid, read_mapping
from lab.markdown import table
from lab.paper.published import DIRECTION_TITLES, method_title
from lab.paper.results import RunResult
from lab.paper.significance import compare, noise_of
from lab.tuning.trials import read_records
from rmsh.compare.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lab.sources import Sources
    from rmsh.compare.result import Result

HASTY = {"epochs": 4, "hidden": 256, "dropout": 0.0, "learning_rate": 0.03}  # GLINT with less training


def trials(sources: Sources) -> str:  # noqa: ARG001  # the records are in one place
    """How many trials each method had, what they cost, and which of the chosen values are at an edge."""
    rows = [
        [
            method_title(name),
            str(record["trials"]),
            str(record["configurations"]),
            f"{record['cpu_seconds'] / 60:.0f}",
            *([f"{record['score']:.3f}", _edges(record)] if record["chosen"] is not None else ["not finished", ""]),
        ]
        for name, record in read_records().items()
    ]
    columns = ["method", "trials", "configurations", "CPU minutes", "NDCG on validation", "options at an edge"]
    complete, wanted = (
        [r for r in read_records().values() if r["chosen"] is not None],
        read_mapping(GRIDS / "trials.yaml"),
    )
    left = len(wanted["methods"]) - len(complete)
    unfinished = f"{left} of {len(wanted['methods'])} methods have unfinished trials; the tables have earlier options."
    return "\n\n".join([table(columns, rows)] * bool(rows) + [unfinished] * bool(left))


def _edges(record: Mapping[str, Any]) -> str:
    """The options at an edge: of the values tried, or of the time limit."""
    edges = [f"`{option}`" for option in record["edges"]]
    longest = max(trial["options"].get("epochs") or 0 for trial in record["tried"])
    if record["epochs"] is not None and record["chosen"]["epochs"] < record["epochs"] == longest:
        edges.append("`epochs` (time limit)")
    return ", ".join(edges) or "none"


def more_steps(sources: Sources) -> str:
    """Methods after the epochs of the tables, and after fewer or more, and how alike their bits are."""
    usual = sources.table_1(seed=0, preset=None) + sources.block("coco66k", "unseen", seed=0, preset=None)
    others, rows, worse = sources.block("coco66k", "shorter training", "longer training"), [], []
    for method, bits, epochs in sorted({(r["run"]["method"], r["run"]["bits"], _epochs(r)) for r in others}):
        pairs = {}
        for other in select(others, method=method, bits=bits):
            for result in usual:
                if _epochs(other) == epochs and _differ_in_epochs(other, result):
                    pairs[other["run"]["protocol"]] = sorted((other, result), key=_epochs)
        if len(pairs) == 2:
            paper, unseen = pairs["paper"], pairs["unseen"]
            cells = [(str(_epochs(r)) for r in paper), (scores([r], NDCG) for r in paper)]
            cells += [(scores([r], "ndcg@10") for r in unseen), (bit_correlation(r) for r in paper)]
            rows.append([method_title(method), str(bits), *(" → ".join(pair) for pair in cells)])
            for protocol, metric in (("paper", NDCG), ("unseen", "ndcg@10")):
                before, after = (mean_score([result], metric) for result in pairs[protocol])
                worse += [f"{method_title(method)} at {bits} bits (`{protocol}`)"] if after < before - CLEAR else []
    columns = ["method", "bits", "epochs", "`paper`: NDCG@500", "`unseen`: NDCG@10", "`paper`: correlation of two bits"]
    return f"{table(columns, rows)}\n\nMore than {CLEAR} less after more epochs: {', '.join(worse) or 'none'}."


def defaults(sources: Sources) -> str:
    """Methods with their own defaults and with the options of their trials: 64 bits, protocol of the paper."""
    rows = []
    for name in ("glint", "rmsh", "ssah"):
        with_defaults = sources.runs([Run("coco66k", name, seed=seed) for seed in range(5)])
        tuned = sources.table_1(method=name, bits=64, preset=None)
        for options, group in (("defaults", with_defaults), ("of the trials", tuned)):
            if with_defaults:
                rows.append([method_title(name), options, str(len(group)), *both(group)])
    return table(["method", "options", "seeds", "NDCG@500", "mAP@all"], rows)


def bit_correlation(*results: Result) -> str:
    """How alike the bits of the database are: the mean absolute correlation of two bits, means of both modalities."""
    audits = [audit for result in results for audit in result["audit"].values()]
    return f"{fmean(audit['mean_correlation'] for audit in audits):.2f}"


def long_codes(sources: Sources) -> str:
    """UCH, whose bits become alike in long codes, and what two of its terms and its epochs have to do with that."""
    grid = read_grid(GRIDS / "coco66k.yaml")
    variants, short = grid.block("long codes: UCH"), sources.runs(grid.block("long codes: UCH, 3 epochs"))
    lengths = {"UCH": sources.table_1(method="uch"), "UCH, 3 epochs": short}
    rows = [(name, bits, select(group, bits=bits)) for name, group in lengths.items() for bits in (64, 128)]
    rows += [(run.tag, run.bits, sources.runs([run])) for run in variants]
    cells = [[n, str(bits), str(len(g)), scores(g, NDCG), bit_correlation(*g)] for n, bits, g in rows if g]
    shown = table(["method", "bits", "seeds", "NDCG@500", "correlation of two bits"], cells)
    changes = [f"{name}: {found}." for name, group in lengths.items() if (found := _change(group, 64, 128))]
    return shown + f"\n\n128 bits minus 64 bits, with the margin of the seeds. {' '.join(changes)}" * bool(changes)


def _change(results: Sequence[Result], short: int, long: int) -> str:
    """What NDCG gains from one length to another in both directions, with the margin of the seeds."""
    one, other = ([RunResult(Run(**r["run"]), r) for r in select(results, bits=bits)] for bits in (long, short))
    changes = []
    for direction, title in DIRECTION_TITLES.items() if one and other else ():
        noise = noise_of(one, [one, other], direction, NDCG), noise_of(other, [one, other], direction, NDCG)
        changes.append(f"{compare(one, other, direction, metric=NDCG, noise=noise)} ({title})")
    return "; ".join(changes)


def _epochs(result: Result) -> int:
    return int(result["run"]["options"]["epochs"])


def _differ_in_epochs(one: Result, other: Result) -> bool:
    """Whether two runs differ in their epochs alone."""
    runs = [{**result["run"], "options": {**result["run"]["options"], "epochs": None}} for result in (one, other)]
    return runs[0] == runs[1]


def common_label(sources: Sources) -> str:
    """Scores of methods trained with all labels and without the most frequent one."""
    found = sources.file("tuning/common_label")
    rows = [
        [method_title(row["method"]), row["labels"], f"{row['ndcg']:.3f}", f"{row['map']:.3f}"] for row in found["rows"]
    ]
    shares = f"{found['share']:.0%} of the {found['pairs']:,} training pairs have the label `person`"
    every, others = (f"{found['similar'][name]:.0%}" for name in ("all", "others"))
    similar = f"{every} of all pairs of them share a label, {others} another one"
    return f"{shares}; {similar}.\n\n" + table(["method", "labels in training", "NDCG", "mAP@all"], rows)


def equal_bytes(sources: Sources) -> str:
    """Codes that need no training, or only canonical correlations, at equal bytes per item, plain and rescored."""
    found = sources.file("tuning/equal_bytes")
    rows = []
    for row in found["rows"]:
        cells = [row["name"], str(row["plain"]["bytes"])]
        for way in ("plain", "rescored"):
            cells += [
                " / ".join(f"{row[way][d][metric]:.3f}" for d in DIRECTIONS) for metric in ("ndcg@10", "recall@10")
            ]
        rows.append(cells)
    pairs, dimensions = f"{found['items']:,} pairs", found["dimensions"]
    space = f"{pairs}; {dimensions} dimensions, so rescoring takes {dimensions} bytes more per item."
    again = f"{found['candidates']} rescored"
    columns = ["codes", "bytes", "NDCG@10", "recall@10", f"NDCG@10, {again}", f"recall@10, {again}"]
    return f"{space}\n\n" + table(columns, sorted(rows, key=lambda cells: (int(cells[1]), cells[0])))


def study(method: str, **parameters: Any) -> list[Run]:
    """Three seeds of a method with its defaults on coco66k."""
    return [Run("coco66k", method, seed=seed, **parameters) for seed in range(3)]


def glint_lengths(sources: Sources) -> str:
    """GLINT beside two others by code length; 256 bits from its own study."""
    results = sources.table_1()
    groups = [
        (bits, select(results, method=method, bits=bits, preset=None))
        for bits in (16, 32, 64, 128)
        for method in ("glint", "classifier-itq", "rmsh")
    ]
    groups.append((256, sources.runs(study("glint", bits=256))))
    rows = [[str(bits), method_title(g[0]["run"]["method"]), str(len(g)), *both(g)] for bits, g in groups if g]
    columns = ["bits", "method", "seeds", f"NDCG@500, chance {chance(results, NDCG)}"]
    columns.append(f"mAP@all, chance {chance(results, MAP)}")
    return table(columns, rows)


def glint_cost(sources: Sources) -> str:
    """GLINT with its defaults and with less training, and RMSH."""
    rows = []
    cases: list[tuple[str, str, dict[str, Any]]] = [
        ("GLINT", "glint", {}),
        ("GLINT, less training", "glint", {"options": HASTY}),
        ("RMSH", "rmsh", {}),
    ]
    for title, method, parameters in cases:
        group = sources.runs(study(method, **parameters))
        rows.append([title, *both(group), cpu_seconds(group)])
    return table(["64 bits", "NDCG@500", "mAP@all", "training, CPU seconds"], rows)


def glint_sign(sources: Sources) -> str:
    """What the sign costs, and retrieval within a modality."""
    rows = []
    for bits, method in ((16, "glint"), (64, "glint"), (256, "glint"), (64, "rmsh")):
        group = sources.runs(study(method, bits=bits))
        lost = " / ".join(
            mean([r["relaxed"][d]["values"][NDCG] - r["relaxed"][d]["codes"][NDCG] for r in group]) for d in DIRECTIONS
        )
        within = scores(group, NDCG, directions=("i2i", "t2t"))
        rows.append([str(bits), method_title(method), scores(group, NDCG), lost, within])
    columns = ["bits", "method", "NDCG@500 I→T / T→I", "lost to the sign (first 1,000 queries)", "NDCG@500 I→I / T→T"]
    return table(columns, rows)


def glint_few_labels(sources: Sources) -> str:
    """GLINT and RMSH with fewer training pairs."""
    rows = []
    for train in (2000, 10000, None):
        for method in ("glint", "rmsh"):
            group = sources.runs(study(method, train=train))
            rows.append([f"{group[0]['training_pairs']:,}", method_title(method), *both(group)])
    return table(["training pairs", "method", "NDCG@500", "mAP@all"], rows)


def glint_noise(sources: Sources) -> str:
    """GLINT and RMSH with wrong labels."""
    rows = []
    unchecked = Run("coco66k", "glint", label_noise=0.4, options={"check_labels": False})
    cases = [(method, study(method, label_noise=noise)) for noise in (0.0, 0.2, 0.4) for method in ("glint", "rmsh")]
    for method, runs in [*cases, ("glint", [unchecked])]:
        group = sources.runs(runs)
        title = method_title(method) + (", `check_labels=False`" if runs == [unchecked] else "")
        rows.append([f"{runs[0].label_noise:.0%}", title, str(len(group)), *both(group)])
    return table(["wrong labels", "method", "seeds", "NDCG@500", "mAP@all"], rows)


def glint_alone(sources: Sources) -> str:
    """GLINT with items that have one modality only."""
    measured = sources.file("tuning/glint_alone")["measured"]
    rows = []
    for paired in (None, 10000):
        result = sources.run(Run("coco66k", "glint", train=paired))
        rows.append([f"{result['training_pairs']:,}", "0", "0", *both([result])])
    for one in measured:
        cells = [" / ".join(f"{one[d][metric]:.3f}" for d in DIRECTIONS) for metric in (NDCG, MAP)]
        images = one["alone"] // 2
        rows.append([f"{one['paired']:,}", f"{images:,}", f"{one['alone'] - images:,}", *cells])
    return table(["pairs", "images only", "texts only", "NDCG@500", "mAP@all"], rows)


def glint_scale(sources: Sources) -> str:
    """Time and memory of GLINT on generated pairs."""
    rows = [
        [
            f"{one['pairs']:,}",
            f"{one['classes']:,}",
            f"{one['cpu_seconds']:g}",
            f"{one['peak_memory_mb']:,}",
            *(f"{one[NDCG][kind]:.3f}" for kind in ("value", "chance")),
        ]
        for one in sources.file("speed/glint_scale")["measured"]
    ]
    return table(["pairs", "classes", "CPU seconds", "peak memory, MB", "NDCG@500", "chance"], rows)


def few_pairs(sources: Sources) -> str:
    """The bundled model and models trained on few pairs, on photographs and drawn scenes."""
    found = sources.file("tuning/few_pairs")["rows"]
    recall = {name: f"{fmean(row[d]['recall@10'] for d in DIRECTIONS):.2f}" for name, row in found.items()}
    sizes = sorted({int(name.split()[1]) for name in recall if name.endswith("pairs")})
    rows = []
    for data in ("photographs", "scenes"):
        rows.append([data, "bundled model", *[recall.get(f"{data}, wheel", "–")] * len(sizes)])
        for way, title in (("pairs", "trained on the pairs"), ("mined classes", "trained on mined classes")):
            rows.append([data, title, *(recall.get(f"{data}, {size} {way}", "–") for size in sizes)])
    return table(["images", "model", *(f"{size:,} pairs" for size in sizes)], rows)
