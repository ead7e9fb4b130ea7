"""The tables that pages print, each generated from result files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from lab.data import GRIDS, RESULTS
from lab.first_page import tables as first_page
from lab.grid import read_grid, read_mapping
from lab.markdown import table
from lab.paper.claims import check_ablation, check_claims, label_free_sentences
from lab.paper.published import method_title
from lab.paper.results import ABLATIONS, PRINTED, STUDIES, TABLE_1, Method, done, read_experiments
from lab.speed import scale
from lab.speed.tables import (
    faults,
    latency,
    photos_duplicates,
    photos_mixed,
    photos_speed,
    search_speed,
    serving,
    text_encoder,
    two_stages,
)
from lab.tuning.trials import read_records
from rmsh.compare.result import Result, with_prefixes
from rmsh.compare.run import Run
from rmsh.core.files import read_json

if TYPE_CHECKING:
    from lab.paper.results import Experiment
    from lab.sources import Sources

DIRECTIONS = ("i2t", "t2i")
NDCG, MAP = "ndcg@500", "map@all"
HASTY = {"epochs": 4, "hidden": 256, "dropout": 0.0, "learning_rate": 0.03}  # GLINT with less training


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
    values = {f"{result['scores'][d][metric]['chance']:.3f}" for result in results for d in DIRECTIONS}
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
    return dict(sorted(groups.items(), key=lambda group: (group[0].endswith("a reading"), -_ndcg(group[1]))))


def _ndcg(results: Sequence[Result]) -> float:
    metric = NDCG if results[0]["run"]["protocol"] == "paper" else "ndcg@10"
    return fmean(result["scores"][d][metric]["value"] for result in results for d in DIRECTIONS)


def lost(results: Sequence[Result]) -> str:
    """What the sign costs: NDCG by relaxed values minus NDCG by codes, for the same queries."""
    found = [result["relaxed"] for result in results if result.get("relaxed")]
    losses = [[r[d]["values"][NDCG] - r[d]["codes"][NDCG] for r in found] for d in DIRECTIONS if found]
    return " / ".join(f"{fmean(each):.3f}" for each in losses) or "–"


def constant_bits(results: Sequence[Result]) -> str:
    """The share of bits that have one value on more than 98 % of the database, in the worst modality and run."""
    audits = [audit for result in results for audit in result.get("audit", {}).values()]
    shares = [(len(audit["dead"]) + len(audit["nearly_constant"])) / audit["bits"] for audit in audits]
    return f"{max(shares):.0%}" if shares else "–"


def trials_made(results: Sequence[Result]) -> str:
    """The number of trials in which the options of a row were chosen; 0 for defaults and presets."""
    run = results[0]["run"]
    if not run["bits"]:
        return "–"
    record = read_records().get(run["method"])
    options = {name: value for name, value in run["options"].items() if name != "database_codes"}  # never tuned
    if record is not None and record["chosen"] == options:
        return str(record["trials"])
    earlier = read_json(RESULTS / "tuning" / "trials.json")["methods"].get(run["method"], [])
    chosen = any(trial["chosen"] and trial["options"] == options for trial in earlier)
    return f"{len(earlier)}, earlier" if chosen and run["preset"] is None else "0"


def fair_table(sources: Sources) -> str:
    """All methods at 64 bits under both protocols, with what was spent on them; best NDCG@500 first."""
    paper = sources.table_1(bits=64) + sources.table_1(bits=0)
    unseen = sources.block("coco66k", "unseen", bits=64)
    rows = []
    for title, group in rows_of(_rows_shown(paper)).items():
        new = [result for result in unseen if row_title(result["run"]) == title]
        cells = [trials_made(group), str(len(group)), scores(group, NDCG), lost(group), scores(group, MAP)]
        cells += [scores(new, "ndcg@10"), scores(new, "recall@10"), constant_bits(group), cpu_seconds(group)]
        rows.append([title, *cells])
    levels = [chance(paper, NDCG), "", chance(paper, MAP), chance(unseen, "ndcg@10"), chance(unseen, "recall@10")]
    rows.append(["chance", "", "", *levels, "", ""])
    columns = ["method", "trials", "seeds", "`paper`: NDCG@500", "lost to the sign", "`paper`: mAP@all"]
    columns += ["`unseen`: NDCG@10", "`unseen`: recall@10", "constant bits", "training, CPU seconds"]
    return table(columns, rows) + _limited(paper)


def _rows_shown(results: Sequence[Result]) -> list[Result]:
    """Without presets other than that of RMSH as printed."""
    return [result for result in results if result["run"]["preset"] in (None, PRINTED)]


def _limited(results: Sequence[Result]) -> str:
    """Which methods trained for fewer epochs than their trials chose, to stay below the time limit."""
    cut = [
        f"{method_title(name)} ({record['chosen']['epochs']} of {record['epochs']} epochs)"
        for name, record in read_records().items()
        if record["chosen"] is not None and record["chosen"].get("epochs") != record["epochs"]
        if select(results, method=name, options=record["chosen"])
    ]
    return f"\n\nStopped before convergence by the limit of 30 CPU minutes: {', '.join(cut)}." if cut else ""


def table_1(sources: Sources) -> str:
    """All methods by code length."""
    results, lengths = sources.table_1(), (16, 32, 64, 128)
    groups = rows_of(_rows_shown(select(results, bits=64)))
    coded = {title: [r for r in results if row_title(r["run"]) == title] for title in groups}
    return "\n\n".join(
        table(
            [f"{title}, chance {chance(results, metric)}", *(f"{bits} bits" for bits in lengths)],
            [[name, *(scores(select(g, bits=bits), metric) for bits in lengths)] for name, g in coded.items()],
        )
        for title, metric in (("NDCG@500", NDCG), ("mAP@all", MAP))
    )


def unseen(sources: Sources) -> str:
    """Methods on a database that was never trained on, best first."""
    groups = _by_length(sources, _unseen_runs())
    ranked = sorted(groups.items(), key=lambda group: -_ndcg(group[1]))
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


def _unseen_runs() -> list[Run]:
    """The runs of all blocks about unseen pairs: those of the table of all methods, and those of NEST."""
    grids = [read_grid(GRIDS / f"{name}.yaml") for name in ("coco66k", "unseen")]
    return [run for g in grids for b in g.blocks if b.name.startswith("unseen") for run in g.block(b.name)]


_Groups = dict[tuple[str, str], list[Any]]  # results by title and length


def _both_protocols(sources: Sources) -> tuple[_Groups, _Groups]:
    """Results under `unseen`, and those of selected methods at 64 bits, and of NEST, under `paper`."""
    printed = ("rmsh", "paper")
    others = [("glint", None), ("rmsh", None), printed, ("classifier-itq", None), ("cca-itq", None)]
    trained: _Groups = {
        (Method(name, preset or "").title, "64"): sources.table_1(method=name, preset=preset, bits=64)
        for name, preset in others
    }
    nest = _by_length(sources, read_grid(GRIDS / "unseen.yaml").block("paper: NEST"))
    return _by_length(sources, _unseen_runs()), trained | nest


def summary(sources: Sources) -> str:
    """README: one row per question, rmsh beside simpler or earlier ways and chance."""
    _, lines = first_page.page(sources.file("first_page/library"))
    among = {line[0]: line[-3] for line in lines}  # of all kinds of queries
    new, trained = _both_protocols(sources)

    def row(question: str, groups: _Groups, metric: str, *methods: tuple[str, str]) -> list[str]:
        best, *others = [scores(groups[key], metric, spread=False) for key in methods]
        cells = [f"{title} {value}" for (title, _), value in zip(methods[1:], others, strict=True)]
        level = chance([result for key in methods for result in groups[key]], metric)
        return [question, best, ", ".join([*cells, f"chance {level}"])]

    captions, alone = among["rmsh, images with captions"], among["rmsh, images alone"]
    cosine, keywords = among["cosine of caption vectors"], among["keywords in captions (FTS5)"]
    best = among["best possible order"]
    nest, rmsh, cca, glint = ("NEST", "64 of 256"), ("RMSH", "64"), ("CCA-ITQ", "64"), ("GLINT", "64")
    rows = [
        [
            "share of right images among the first ten",
            f"{captions} with captions, {alone} images alone",
            f"cosine of captions {cosine}, keywords {keywords}, best possible order {best}",
        ],
        row("`unseen`: NDCG@10", new, "ndcg@10", nest, rmsh, cca),
        row("`unseen`: recall@10", new, "recall@10", nest, rmsh, cca),
        row("`paper`: NDCG@500", trained, NDCG, nest, rmsh, glint, cca),
    ]
    return table(["measure", "rmsh", "for comparison"], rows)


def protocols(sources: Sources) -> str:
    """Selected methods at 64 bits, and NEST at 256, under both protocols."""
    new, trained = _both_protocols(sources)
    shown = [("NEST", "256"), ("NEST", "64 of 256"), ("NEST, pairs alone", "256")]
    shown += [key for key in trained if key[0] != "NEST"]
    rows = []
    for key in shown:
        found, in_paper = new.get(key, []), trained.get(key, [])
        cells = [scores(found, "ndcg@10"), scores(found, "recall@10"), scores(in_paper, NDCG)]
        rows.append([*key, *cells, cpu_seconds(found or in_paper)])
    known = [result for key in shown for result in new.get(key, [])]
    metrics = {"NDCG@10": "ndcg@10", "recall@10": "recall@10"}
    columns = [f"`unseen`: {name}, chance {chance(known, metric)}" for name, metric in metrics.items()]
    columns.append(f"`paper`: NDCG@500, chance {chance([r for g in trained.values() for r in g], NDCG)}")
    return table(["method", "bits", *columns, "training, CPU seconds"], rows)


def _by_length(sources: Sources, runs: Iterable[Run]) -> dict[tuple[str, str], list[Any]]:
    """The results of runs by title and length; prefixes of a code have lengths of their own."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for run in {run.path: run for run in runs}.values():
        title = run.tag if run.tag and run.tag != run.preset else row_title(run)
        for result in (part for whole in sources.runs([run]) for part in with_prefixes(whole)):
            bits = result["run"]["bits"]
            length = f"{bits} of {run.bits}" if bits < run.bits else str(bits)
            groups.setdefault((title, length), []).append(result)
    return groups


def nest_paper(sources: Sources) -> str:
    """NEST by code length in the protocol of the paper, beside GLINT and RMSH."""
    groups = _by_length(sources, read_grid(GRIDS / "unseen.yaml").block("paper: NEST"))
    others = [(method_title(name), sources.table_1(bits=64, method=name, preset=None)) for name in ("glint", "rmsh")]
    rows = [["NEST", bits, str(len(group)), *both(group), cpu_seconds(group)] for (_, bits), group in groups.items()]
    rows += [[title, "64", str(len(group)), *both(group), cpu_seconds(group)] for title, group in others]
    return table(["method", "bits", "seeds", "NDCG@500", "mAP@all", "training, CPU seconds"], rows)


def nest_robustness(sources: Sources) -> str:
    """Wrong labels and few pairs at 64 bits, NDCG@10 on the protocol unseen and NDCG@500 on that of the paper."""
    grid = read_grid(GRIDS / "unseen.yaml")
    cases = {"all pairs": (0.0, None), "20 % wrong": (0.2, None), "40 % wrong": (0.4, None), "2,000 pairs": (0.0, 2000)}
    rows = []
    for name, case in cases.items():
        every = [*grid.runs(), *_unseen_runs()]
        runs = [run for run in every if (run.label_noise, run.train) == case and not run.tag]
        row = [name]
        for protocol, metric in (("unseen", "ndcg@10"), ("paper", NDCG)):
            nest = [run for run in runs if (run.method, run.bits, run.protocol) == ("nest", 256, protocol)]
            rmsh = [run for run in runs if (run.method, run.protocol, run.bits) == ("rmsh", protocol, 64)]
            if not rmsh:  # its study has them with its defaults
                rmsh = _study("rmsh", label_noise=case[0])
            groups = _by_length(sources, nest).get(("NEST", "64 of 256"), []), sources.runs(rmsh)
            row += [f"{scores(group, metric)} ({len(group)})" if group else "not measured" for group in groups]
        rows.append(row)
    columns = [f"{method}, `{protocol}`" for protocol in ("unseen", "paper") for method in ("NEST", "RMSH")]
    return table(["training data", *columns], rows)


def nest_ablation(sources: Sources) -> str:
    """NEST without some of its parts, on the protocol unseen."""
    groups = _by_length(sources, read_grid(GRIDS / "unseen.yaml").block("ablation of NEST"))
    rows = [[*names, str(len(g)), scores(g, "ndcg@10"), scores(g, "recall@10")] for names, g in groups.items()]
    return table(["method", "bits", "seeds", "NDCG@10", "recall@10"], rows)


def rmsh_presets(sources: Sources) -> str:
    """RMSH with its defaults and with the presets of the paper."""
    results = sources.block("rmsh", "default", "presets")
    rows = []
    for bits in (16, 32, 64, 128):
        for preset in (None, "paper", "paper-literal"):
            if group := select(results, bits=bits, preset=preset):
                name, delta = f"`{preset}`" if preset else "defaults", group[0]["facts"]["delta"]["delta"]
                rows.append([str(bits), name, str(len(group)), *both(group), f"{delta:g}"])
    columns = ["bits", "options", "seeds", f"NDCG@500, chance {chance(results, NDCG)}"]
    return table([*columns, f"mAP@all, chance {chance(results, MAP)}", "δ"], rows)


def rmsh_ablation(sources: Sources) -> str:
    """What the parts of RMSH are worth, paired over seeds."""
    whole = sources.block("rmsh", "default", bits=64)
    rows = [["RMSH", str(len(whole)), scores(whole, NDCG), ""]]
    grid = read_grid(GRIDS / "rmsh.yaml")
    for variant in ABLATIONS:
        group = sources.runs(run for run in grid.block("ablation") if run.tag == variant)
        pairs = list(zip(whole, group, strict=True))
        differences = [
            mean([one["scores"][d][NDCG]["value"] - other["scores"][d][NDCG]["value"] for one, other in pairs])
            for d in DIRECTIONS
        ]
        rows.append([variant, str(len(group)), scores(group, NDCG), " / ".join(differences)])
    return table(["variant", "seeds", f"NDCG@500, chance {chance(whole, NDCG)}", "RMSH minus variant"], rows)


def _experiment(sources: Sources, *kinds: str) -> Experiment:
    """The results of coco66k.yaml; those of the kinds count as used."""
    (experiment,) = read_experiments(read_grid(GRIDS / "coco66k.yaml"), sources.folder / "runs")
    sources.used += [dict(found.result) for kind in kinds for found in done(experiment.blocks.get(kind, []))]
    return experiment


def rmsh_printed(sources: Sources) -> str:
    """RMSH as printed beside the label-free baseline, in words, and without its parts at four lengths."""
    experiment = _experiment(sources, "ablation").as_printed
    results = sources.table_1(method="rmsh", preset="paper") + sources.table_1(method="cca-itq")
    rows = [
        [title, *(scores(select(group, bits=bits), NDCG) for bits in (16, 32, 64, 128))]
        for title, group in rows_of(results).items()
    ]
    parts = [table(["NDCG@500", *(f"{bits} bits" for bits in (16, 32, 64, 128))], rows)]
    parts += label_free_sentences(experiment.comparison)
    claim = check_ablation(experiment)
    listed = "\n".join(f"- {detail}" for detail in claim.details)
    parts.append(
        f"*{claim.statement}* {claim.verdict.capitalize()}: {claim.summary}" + (f"\n\n{listed}" if listed else "")
    )
    return "\n\n".join(parts)


def claims(sources: Sources) -> str:
    """The verdicts on the claims of the paper on coco66k."""
    experiment = _experiment(sources, TABLE_1, *STUDIES)
    found = [claim for each in (experiment.as_printed, experiment) for claim in check_claims(each)]
    return table(["claim", "verdict", "numbers"], [[c.statement, c.verdict, c.summary] for c in found])


def trials(sources: Sources) -> str:  # noqa: ARG001  # the records are in one place
    """How many trials each method had, what they cost, and which of the chosen values are at an edge."""
    rows = [
        [
            method_title(name),
            str(record["trials"]),
            str(record["configurations"]),
            f"{record['cpu_seconds'] / 60:.0f}",
            *(
                [f"{record['score']:.3f}", ", ".join(f"`{option}`" for option in record["edges"]) or "none"]
                if record["chosen"] is not None
                else ["not finished", ""]
            ),
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


def _study(method: str, **parameters: Any) -> list[Run]:
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
    groups.append((256, sources.runs(_study("glint", bits=256))))
    rows = [
        [str(bits), method_title(g[0]["run"]["method"]), str(len(g)), *both(g), cpu_seconds(g)]
        for bits, g in groups
        if g
    ]
    columns = ["bits", "method", "seeds", f"NDCG@500, chance {chance(results, NDCG)}"]
    columns += [f"mAP@all, chance {chance(results, MAP)}", "training, CPU seconds"]
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
        rows.append([str(bits), method_title(method), scores(group, NDCG), lost, within])
    columns = ["bits", "method", "NDCG@500 I→T / T→I", "lost to the sign (first 1,000 queries)", "NDCG@500 I→I / T→T"]
    return table(columns, rows)


def glint_few_labels(sources: Sources) -> str:
    """GLINT and RMSH with fewer training pairs."""
    rows = []
    for train in (2000, 10000, None):
        for method in ("glint", "rmsh"):
            group = sources.runs(_study(method, train=train))
            rows.append([f"{group[0]['training_pairs']:,}", method_title(method), *both(group)])
    return table(["training pairs", "method", "NDCG@500", "mAP@all"], rows)


def glint_noise(sources: Sources) -> str:
    """GLINT and RMSH with wrong labels."""
    rows = []
    unchecked = Run("coco66k", "glint", label_noise=0.4, options={"check_labels": False})
    cases = [(method, _study(method, label_noise=noise)) for noise in (0.0, 0.2, 0.4) for method in ("glint", "rmsh")]
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


def _if_measured(make: Callable[[Sources], str], *names: str) -> Callable[[Sources], str]:
    """A table of results of speed, or a sentence while one of them does not exist."""

    def block(sources: Sources) -> str:
        missing = [name for name in names if not (sources.folder / "speed" / f"{name}.json").exists()]
        return "Not measured yet." if missing else make(sources)

    return block


BLOCKS: dict[str, Callable[[Sources], str]] = {
    "summary": summary,
    "table-1": table_1,
    "unseen": unseen,
    "protocols": protocols,
    "nest-paper": nest_paper,
    "nest-robustness": nest_robustness,
    "nest-ablation": nest_ablation,
    "all-methods": fair_table,
    "trials": trials,
    "common-label": common_label,
    "claims": claims,
    "rmsh-presets": rmsh_presets,
    "rmsh-printed": rmsh_printed,
    "rmsh-ablation": rmsh_ablation,
    "glint-lengths": glint_lengths,
    "glint-cost": glint_cost,
    "glint-sign": glint_sign,
    "glint-few-labels": glint_few_labels,
    "glint-noise": glint_noise,
    "glint-alone": glint_alone,
    "glint-scale": glint_scale,
    "search-speed": search_speed,
    "two-stages": two_stages,
    "serving": serving,
    "latency": latency,
    "text-encoder": text_encoder,
    "executors": _if_measured(scale.executors, "executors"),
    "milvus-load": _if_measured(scale.milvus_load, "milvus_load"),
    "capacity": _if_measured(scale.capacity, "executors", "milvus_load"),
    "one-machine": scale.one_machine,
    "training": scale.training,
    "faults": faults,
    "photos-mixed": photos_mixed,
    "photos-duplicates": photos_duplicates,
    "photos-speed": photos_speed,
    "composed": lambda s: table(*first_page.composed(s.file("first_page/composed"))),
    "cut-off": lambda s: table(*first_page.cut_off(s.file("first_page/cut_off"))),
    "few-pairs": few_pairs,
    "first-page": lambda s: table(*first_page.page(s.file("first_page/library"))),
    "first-page-differences": lambda s: table(
        *first_page.differences(s.file("first_page/library-test"), s.file("first_page/library"))
    ),
}
