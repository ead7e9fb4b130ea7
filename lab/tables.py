"""The tables that pages print, each generated from result files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from lab.data import GRIDS, RESULTS
from lab.grid import read_grid
from rmsh.compare.result import Result, changed_options, read_result, with_prefixes
from rmsh.compare.run import Run
from rmsh.core.files import read_json

DIRECTIONS = ("i2t", "t2i")
NDCG, MAP = "ndcg@500", "map@all"
HASTY = {"epochs": 4, "hidden": 256, "dropout": 0.0, "learning_rate": 0.03}  # GLINT with less training
_TITLES = {
    "glint": "GLINT",
    "nest": "NEST",
    "rmsh": "RMSH",
    "classifier-itq": "classifier-ITQ",
    "cca-itq": "CCA-ITQ",
    "scm": "SCM",
    "cmfh": "CMFH",
    "seph": "SePH",
    "uch": "UCH",
    "svhn": "SVHN",
    "ssah": "SSAH",
    "dcmh": "DCMH",
    "tdh": "TDH",
    "cca-cosine": "no codes: CCA, cosine",
    "logistic": "no codes: logistic regression",
    "mlp": "no codes: MLP classifier",
}


@dataclass
class Sources:
    """Reads result files, and remembers the runs that it has read.

    Args:
        folder: the folder of the results.
        used: the results of runs, in the order of reading.
    """

    folder: Path = RESULTS
    used: list[Result] = field(default_factory=list)

    def run(self, run: Run) -> Result:
        """The result of a run that is done."""
        result = read_result(self.folder / "runs" / run.path)
        if result["status"] != "done":
            raise SystemExit(f"{run.path} failed, so no page can show it: {result['error']}")
        self.used.append(result)
        return result

    def runs(self, runs: Iterable[Run]) -> list[Result]:
        """The results of several runs."""
        return [self.run(run) for run in runs]

    def found(self, runs: Iterable[Run]) -> list[Result]:
        """The results of those runs that have one."""
        return self.runs(run for run in runs if (self.folder / "runs" / run.path).exists())

    def block(self, grid: str, *names: str, **wanted: Any) -> list[Result]:
        """The results of some blocks of a grid, restricted to runs with these parameters."""
        runs = (run for name in names for run in read_grid(GRIDS / f"{grid}.yaml").block(name))
        return self.runs(run for run in runs if all(getattr(run, key) == value for key, value in wanted.items()))

    def table_1(self, **wanted: Any) -> list[Result]:
        """The results of Table 1 on coco66k."""
        return self.block("coco66k", "table 1", "table 1: GLINT, three seeds", **wanted)

    def file(self, name: str) -> Any:
        """The content of another result file, such as speed/serving."""
        return read_json(self.folder / f"{name}.json")


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table.

    Example:
        >>> print(table(["a", "b"], [["1", "2"]]))
        | a | b |
        |---|---|
        | 1 | 2 |
    """
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def mean(values: Sequence[float], digits: int = 3) -> str:
    """The mean with the standard deviation over seeds, if there are several.

    Example:
        >>> mean([0.5, 0.7]), mean([0.5])
        ('0.600 ± 0.141', '0.500')
    """
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{fmean(values):.{digits}f}{spread}"


def scores(results: Sequence[Result], metric: str, *, directions: Sequence[str] = DIRECTIONS) -> str:
    """Both directions of a metric, means over seeds."""
    return " / ".join(mean([result["scores"][d][metric]["value"] for result in results]) for d in directions)


def both(results: Sequence[Result]) -> list[str]:
    """The cells of NDCG and mAP."""
    return [scores(results, metric) for metric in (NDCG, MAP)]


def chance(results: Sequence[Result], metric: str) -> str:
    """The value of a random ranking, which is the same for all results of one database."""
    (value,) = {f"{result['scores'][d][metric]['chance']:.3f}" for result in results for d in DIRECTIONS}
    return value


def cpu_seconds(results: Sequence[Result]) -> str:
    """Mean CPU seconds of training."""
    return f"{fmean(result['seconds']['fit_cpu'] for result in results):,.0f}"


def select(results: Sequence[Result], **wanted: Any) -> list[Result]:
    """The results of runs with these parameters."""
    return [result for result in results if all(result["run"][key] == value for key, value in wanted.items())]


def remarks(results: Sequence[Result]) -> str:
    """One sentence per method whose results were made with other defaults than it has now; empty if there are none."""
    changed: dict[str, set[str]] = {}
    for result in results:
        changed.setdefault(_TITLES[result["run"]["method"]], set()).update(changed_options(result))
    lists = {title: " and ".join(f"`{name}`" for name in sorted(names)) for title, names in changed.items() if names}
    return "".join(
        f"\n\nThe runs of {title} predate the current defaults of {names}." for title, names in lists.items()
    )


def table_1(sources: Sources) -> str:
    """README: selected methods by code length."""
    results, lengths = sources.table_1(), (16, 32, 64, 128)
    methods = ("glint", "rmsh", "classifier-itq", "cca-itq", "cmfh")
    shown = [result for name in methods for result in select(results, method=name)]
    parts = [
        table(
            [f"{title}, chance {chance(shown, metric)}", *(f"{bits} bits" for bits in lengths)],
            [
                [_TITLES[name], *(scores(select(shown, method=name, bits=bits), metric) for bits in lengths)]
                for name in methods
            ],
        )
        for title, metric in (("NDCG@500", NDCG), ("mAP@all", MAP))
    ]
    return "\n\n".join(parts) + remarks(shown)


def unseen(sources: Sources) -> str:
    """Methods on a database that was never trained on, best first."""
    grid = read_grid(GRIDS / "unseen.yaml")
    groups = _by_length(
        sources, (run for b in grid.blocks if b.name.startswith("unseen") for run in grid.block(b.name))
    )
    if not groups:
        return "These runs have not been made yet; `lab/grids/unseen.yaml` describes them."
    ranked = sorted(
        groups.items(), key=lambda g: -fmean(r["scores"][d]["ndcg@10"]["value"] for r in g[1] for d in DIRECTIONS)
    )
    results = [result for _, group in ranked for result in group]
    parts = [
        table(
            ["method", "bits", *(f"{title}, chance {chance(results, metric)}" for title, metric in shown), *more],
            [
                [*names, *(scores(group, metric) for _, metric in shown), *([cpu_seconds(group)] if more else [])]
                for names, group in ranked
            ],
        )
        for shown, more in (
            ((("NDCG@10", "ndcg@10"), ("NDCG@100", "ndcg@100"), ("mAP@all", MAP)), ["training, CPU seconds"]),
            ([(name, name) for name in ("recall@1", "recall@5", "recall@10")], []),
        )
    ]
    return "\n\n".join(parts)


def protocols(sources: Sources) -> str:
    """README: selected methods at 64 bits, and NEST at 256, under both protocols."""
    grid = read_grid(GRIDS / "unseen.yaml")
    unseen_runs, paper_runs = (
        _by_length(sources, (run for b in grid.blocks if b.name in names for run in grid.block(b.name)))
        for names in (("unseen", "unseen: NEST", "unseen: pairs alone"), ("paper: NEST",))
    )
    paper = {(_TITLES[name], "64"): sources.table_1(method=name, bits=64) for name in ("glint", "rmsh", "cca-itq")}
    paper |= {("classifier-ITQ", "64"): sources.table_1(method="classifier-itq", bits=64)} | paper_runs
    shown = [("NEST", "256"), ("NEST", "64 of 256"), ("NEST, pairs alone", "256")]
    shown += [(title, "64") for title in ("GLINT", "RMSH", "classifier-ITQ", "CCA-ITQ")]
    rows = []
    for key in shown:
        found, in_paper = unseen_runs[key], paper.get(key)
        cells = [scores(found, "ndcg@10"), scores(found, "recall@10"), scores(in_paper, NDCG) if in_paper else "–"]
        rows.append([*key, *cells, cpu_seconds(found)])
    known = [result for key in shown for result in unseen_runs[key]]
    columns = [f"`unseen`: {name}, chance {chance(known, metric)}" for name, metric in _UNSEEN]
    columns.append(f"`paper`: NDCG@500, chance {chance(paper['CCA-ITQ', '64'], NDCG)}")
    return table(["method", "bits", *columns, "training, CPU seconds"], rows)


_UNSEEN = (("NDCG@10", "ndcg@10"), ("recall@10", "recall@10"))


def _by_length(sources: Sources, runs: Iterable[Run]) -> dict[tuple[str, str], list[Any]]:
    """The results of runs by title and length; prefixes of a code have lengths of their own."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for run in runs:
        for result in (part for whole in sources.found([run]) for part in with_prefixes(whole)):
            bits = result["run"]["bits"]
            length = f"{bits} of {run.bits}" if bits < run.bits else str(bits)
            groups.setdefault((run.tag or _TITLES[run.method], length), []).append(result)
    return groups


def nest_paper(sources: Sources) -> str:
    """NEST by code length in the protocol of the paper, beside GLINT and RMSH."""
    groups = _by_length(sources, read_grid(GRIDS / "unseen.yaml").block("paper: NEST"))
    others = [(_TITLES[name], select(sources.table_1(bits=64), method=name)) for name in ("glint", "rmsh")]
    rows = [["NEST", bits, str(len(group)), *both(group), cpu_seconds(group)] for (_, bits), group in groups.items()]
    rows += [[title, "64", str(len(group)), *both(group), cpu_seconds(group)] for title, group in others]
    return table(["method", "bits", "seeds", "NDCG@500", "mAP@all", "training, CPU seconds"], rows)


def nest_robustness(sources: Sources) -> str:
    """Wrong labels and few pairs at 64 bits, NDCG@10 on the protocol unseen and NDCG@500 on that of the paper."""
    grid = read_grid(GRIDS / "unseen.yaml")
    cases = {"all pairs": (0.0, None), "20 % wrong": (0.2, None), "40 % wrong": (0.4, None), "2,000 pairs": (0.0, 2000)}
    rows = []
    for name, case in cases.items():
        runs = [run for run in grid.runs() if (run.label_noise, run.train) == case and not run.tag]
        row = [name]
        for protocol, metric in (("unseen", "ndcg@10"), ("paper", NDCG)):
            nest = [run for run in runs if (run.method, run.bits, run.protocol) == ("nest", 256, protocol)]
            rmsh = [run for run in runs if (run.method, run.protocol) == ("rmsh", protocol)]
            if not rmsh:  # its study has them with its defaults
                rmsh = _study("rmsh", label_noise=case[0])
            groups = _by_length(sources, nest).get(("NEST", "64 of 256"), []), sources.found(rmsh)
            row += [f"{scores(group, metric)} ({len(group)})" if group else "not measured" for group in groups]
        rows.append(row)
    columns = [f"{method}, `{protocol}`" for protocol in ("unseen", "paper") for method in ("NEST", "RMSH")]
    return table(["training data", *columns], rows)


def nest_ablation(sources: Sources) -> str:
    """NEST without some of its parts, on the protocol unseen."""
    groups = _by_length(sources, read_grid(GRIDS / "unseen.yaml").block("ablation of NEST"))
    if not groups:
        return "These runs have not been made yet; `lab/grids/unseen.yaml` describes them."
    rows = [[*names, str(len(g)), scores(g, "ndcg@10"), scores(g, "recall@10")] for names, g in groups.items()]
    return table(["method", "bits", "seeds", "NDCG@10", "recall@10"], rows)


def all_methods(sources: Sources) -> str:
    """Every method and reference line at 64 bits."""
    results = sources.table_1(bits=64) + sources.table_1(bits=0)
    groups = [group for name in _TITLES if (group := select(results, method=name))]
    groups.sort(key=lambda group: -fmean(r["scores"][d][NDCG]["value"] for r in group for d in DIRECTIONS))
    rows = [[_TITLES[g[0]["run"]["method"]], str(len(g)), *both(g), cpu_seconds(g)] for g in groups]
    rows.append(["chance", "", chance(results, NDCG), chance(results, MAP), ""])
    return table(["method", "seeds", "NDCG@500", "mAP@all", "training, CPU seconds"], rows) + remarks(results)


def rmsh_presets(sources: Sources) -> str:
    """RMSH with its defaults and with the presets of the paper."""
    results = sources.block("rmsh", "default", "presets")
    rows = []
    for bits in (16, 32, 64, 128):
        for preset in (None, "paper", "paper-literal"):
            group = select(results, bits=bits, preset=preset)
            name = f"`{preset}`" if preset else "defaults"
            rows.append([str(bits), name, str(len(group)), *both(group), f"{group[0]['facts']['delta']['delta']:g}"])
    columns = ["bits", "options", "seeds", f"NDCG@500, chance {chance(results, NDCG)}"]
    return table([*columns, f"mAP@all, chance {chance(results, MAP)}", "δ"], rows)


def rmsh_ablation(sources: Sources) -> str:
    """What the parts of RMSH are worth, paired over seeds."""
    whole = sources.block("rmsh", "default", bits=64)
    rows = [["RMSH", str(len(whole)), scores(whole, NDCG), ""]]
    grid = read_grid(GRIDS / "rmsh.yaml")
    for variant in ("RMSH-T", "RMSH-C", "RMSH-P"):
        group = sources.runs(run for run in grid.block("ablation") if run.tag == variant)
        differences = [
            mean([_ndcg(one, d) - _ndcg(other, d) for one, other in zip(whole, group, strict=True)]) for d in DIRECTIONS
        ]
        rows.append([variant, str(len(group)), scores(group, NDCG), " / ".join(differences)])
    return table(["variant", "seeds", f"NDCG@500, chance {chance(whole, NDCG)}", "RMSH minus variant"], rows)


def _ndcg(result: Result, direction: str) -> float:
    return float(result["scores"][direction][NDCG]["value"])


def _seeds(run: Run, count: int = 3) -> list[Run]:
    return [replace(run, seed=seed) for seed in range(count)]


def _study(method: str, **parameters: Any) -> list[Run]:
    """Three seeds of a method with its defaults on coco66k."""
    return _seeds(Run("coco66k", method, **parameters))


def glint_lengths(sources: Sources) -> str:
    """GLINT beside two others by code length; 256 bits from its own study."""
    results = sources.table_1()
    groups = [
        (bits, select(results, method=method, bits=bits))
        for bits in (16, 32, 64, 128)
        for method in ("glint", "classifier-itq", "rmsh")
    ]
    groups.append((256, sources.runs(_study("glint", bits=256))))
    rows = [[str(bits), _TITLES[g[0]["run"]["method"]], str(len(g)), *both(g), cpu_seconds(g)] for bits, g in groups]
    columns = ["bits", "method", "seeds", f"NDCG@500, chance {chance(results, NDCG)}"]
    columns += [f"mAP@all, chance {chance(results, MAP)}", "training, CPU seconds"]
    shown = [result for bits, group in groups if bits < 256 for result in group]
    return table(columns, rows) + remarks(shown)


def glint_cost(sources: Sources) -> str:
    """GLINT with its defaults and with less training, and RMSH."""
    rows = []
    cases: list[tuple[str, str, dict[str, Any]]] = [
        ("GLINT", "glint", {}),
        ("GLINT, less training", "glint", {"options": HASTY}),
        ("RMSH", "rmsh", {}),
    ]
    for title, method, parameters in cases:
        group = sources.runs(_study(method, **parameters))
        rows.append([title, *both(group), cpu_seconds(group)])
    return table(["64 bits", "NDCG@500", "mAP@all", "training, CPU seconds"], rows)


def glint_sign(sources: Sources) -> str:
    """What the sign costs, and retrieval within a modality."""
    rows = []
    for bits, method in ((16, "glint"), (64, "glint"), (256, "glint"), (64, "rmsh")):
        group = sources.runs(_study(method, bits=bits))
        lost = " / ".join(
            mean([r["relaxed"][d]["values"][NDCG] - r["relaxed"][d]["codes"][NDCG] for r in group]) for d in DIRECTIONS
        )
        within = scores(group, NDCG, directions=("i2i", "t2t"))
        rows.append([str(bits), _TITLES[method], scores(group, NDCG), lost, within])
    columns = ["bits", "method", "NDCG@500 I→T / T→I", "lost to the sign (first 1,000 queries)", "NDCG@500 I→I / T→T"]
    return table(columns, rows)


def glint_few_labels(sources: Sources) -> str:
    """GLINT and RMSH with fewer training pairs."""
    rows = []
    for train in (2000, 10000, None):
        for method in ("glint", "rmsh"):
            group = sources.runs(_study(method, train=train))
            rows.append([f"{group[0]['training_pairs']:,}", _TITLES[method], *both(group)])
    return table(["training pairs", "method", "NDCG@500", "mAP@all"], rows)


def glint_noise(sources: Sources) -> str:
    """GLINT and RMSH with wrong labels."""
    rows = []
    unchecked = Run("coco66k", "glint", label_noise=0.4, options={"check_labels": False})
    cases = [(method, _study(method, label_noise=noise)) for noise in (0.0, 0.2, 0.4) for method in ("glint", "rmsh")]
    for method, runs in [*cases, ("glint", [unchecked])]:
        group = sources.runs(runs)
        title = _TITLES[method] + (", `check_labels=False`" if runs == [unchecked] else "")
        rows.append([f"{runs[0].label_noise:.0%}", title, str(len(group)), *both(group)])
    return table(["wrong labels", "method", "seeds", "NDCG@500", "mAP@all"], rows)


def glint_alone(sources: Sources) -> str:
    """GLINT with items that have one modality only."""
    measured = sources.file("tuning/glint_alone")["measured"]
    rows = []
    for paired in (None, 10000):
        (result,) = sources.runs(_seeds(Run("coco66k", "glint", train=paired), 1))
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


def search_speed(sources: Sources) -> str:
    """Exact search beside faiss."""
    measured = sources.file("speed/search")
    cases = [name.split() for name, case in measured.items() if "one thread" in case]
    rows = []
    for kind, items, bits in sorted(cases, key=lambda case: (int(case[2]), int(case[1]), case[0])):
        name = f"{kind} {items} {bits}"
        rate = {(m["engine"], m["batch"]): m["queries_per_second"] for m in measured[name]["one thread"]}
        times = [f"{rate['scan', batch] / rate['faiss', batch]:.1f}" for batch in (1, 32, 1000)]
        hashing = f"{rate['mih', 1] / rate['scan', 1]:.1f}"
        reading = f"{rate['scan', 1] / rate['memory', 1]:.0%}"
        rows.append([f"{int(items) // 1_000_000} M", bits, kind, f"{rate['scan', 1]:,.0f}", reading, *times, hashing])
    columns = [
        "codes",
        "bits",
        "kind",
        "scan, queries/s",
        "of reading",
        "scan × faiss",
        "batch of 32",
        "batch of 1,000",
        "mih × scan",
    ]
    huge = measured["huge 100000000 64"]["1 threads"]
    single, batch = (huge["queries/s"][size] for size in ("1", "1000"))
    return table(columns, rows) + (
        "\n\nA memory-mapped index of 100 million codes of 64 bits opens in "
        f"{huge['seconds to open'] * 1000:.0f} ms. One thread answers {single:.0f} queries per second\n"
        f"one by one and {batch:.0f} in batches of 1,000, with {huge['MB']['RssAnon']} MB besides the mapped file."
    )


def serving(sources: Sources) -> str:
    """The server under load."""
    found = sources.file("speed/serving")
    titles = {"words": "text", "words and filter": "text and filter", "picture": "image", "thumbnail": "thumbnail"}
    rows = [
        [title, *(f"{found['milliseconds'][name][p]:.0f} ms" for p in ("p50", "p95", "p99"))]
        for name, title in titles.items()
    ]
    spent = {name: part["mean_ms"] for name, part in found["where_the_time_goes"].items()}
    return table([f"{found['clients']} clients, {found['items']:,} items", "p50", "p95", "p99"], rows) + (
        f"\n\n{found['per_second']:.0f} requests per second, {len(found['errors'])} errors. "
        f"{found['where_the_time_goes']['wait']['share']:.0%} of the time of a request is spent waiting for its turn.\n"
        f"Encoding takes {spent['encode text']:.0f} ms for a text and {spent['encode picture']:.0f} ms for an image, "
        f"searching {spent['search']:.0f} ms, describing the hits {spent['describe']:.0f} ms,\n"
        f"a thumbnail {spent['thumbnail']:.0f} ms. Memory went from {found['memory_mb'][0]} to "
        f"{found['memory_mb'][-1]} MB."
    )


def composed(sources: Sources) -> str:
    """What composed queries find, by a model that has not seen the photographs."""
    found = [row for row in sources.file("first_page/composed")["rows"] if row["model"] == "twin"]
    sides = ("A", "B", "both")
    rows = [[row["A, B"], row["query"], *(f"{row[s]:.2f} ({row[f'{s} chance']:.2f})" for s in sides)] for row in found]
    return table(["A and B", "query", "show A (chance)", "show B (chance)", "show both (chance)"], rows)


def cut_off(sources: Sources) -> str:
    """How many queries with and without an answer have weak hits only."""
    rows = [
        [
            row["library"],
            row["part"],
            f"{row['cut-off']:.1f}",
            *(f"{row[f'{kind} weak']} of {row[f'{kind} queries']}" for kind in ("unanswered", "answered")),
        ]
        for row in sources.file("first_page/cut_off")["rows"]
    ]
    return table(["library", "queries", "cut-off", "no answer: called weak", "an answer: called weak"], rows)


def first_page(sources: Sources) -> str:
    """The first ten hits of judged queries, by ranking and kind of query."""
    found = sources.file("first_page/library")
    kinds = list(dict.fromkeys(row["kind"] for row in found["rows"]))
    by_ranking: dict[str, dict[str, Any]] = {}
    for row in found["rows"]:
        by_ranking.setdefault(row["ranking"], {})[row["kind"]] = row
    titles = {
        "library": "rmsh, images with captions",
        "library, images alone": "rmsh, images alone",
        "cosine": "cosine of caption vectors",
        "fts5": "keywords in captions (FTS5)",
        "best order": "best possible order",
    }
    rows = []
    for ranking, title in titles.items():
        cells = [f"{by_ranking[ranking][kind]['precision@10']['value']:.2f}" for kind in kinds]
        rows.append([title, *cells, f"{by_ranking[ranking]['all']['first right']['value']:.0%}"])
    return table(["share of right images among ten", *kinds, "first hit right"], rows)


def few_pairs(sources: Sources) -> str:
    """The model of the wheel and models trained on few pairs, on photographs and drawn scenes."""
    found = sources.file("tuning/few_pairs")["rows"]
    recall = {name: f"{fmean(row[d]['recall@10'] for d in DIRECTIONS):.2f}" for name, row in found.items()}
    sizes = sorted({int(name.split()[1]) for name in recall if name.endswith("pairs")})
    rows = []
    for data in ("photographs", "scenes"):
        rows.append([data, "model of the wheel", *[recall.get(f"{data}, wheel", "–")] * len(sizes)])
        for way, title in (("pairs", "trained on the pairs"), ("mined classes", "trained on mined classes")):
            rows.append([data, title, *(recall.get(f"{data}, {size} {way}", "–") for size in sizes)])
    return table(["images", "model", *(f"{size:,} pairs" for size in sizes)], rows)


BLOCKS: dict[str, Callable[[Sources], str]] = {
    "table-1": table_1,
    "unseen": unseen,
    "protocols": protocols,
    "nest-paper": nest_paper,
    "nest-robustness": nest_robustness,
    "nest-ablation": nest_ablation,
    "all-methods": all_methods,
    "rmsh-presets": rmsh_presets,
    "rmsh-ablation": rmsh_ablation,
    "glint-lengths": glint_lengths,
    "glint-cost": glint_cost,
    "glint-sign": glint_sign,
    "glint-few-labels": glint_few_labels,
    "glint-noise": glint_noise,
    "glint-alone": glint_alone,
    "glint-scale": glint_scale,
    "search-speed": search_speed,
    "serving": serving,
    "composed": composed,
    "cut-off": cut_off,
    "few-pairs": few_pairs,
    "first-page": first_page,
}
