"""The tables that pages print, each generated from result files: those of the comparison, and a list of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from scipy.stats import spearmanr

from lab.cells import (
    CLEAR,
    DIRECTIONS,
    MAP,
    NDCG,
    both,
    chance,
    constant_bits,
    cpu_seconds,
    lost,
    mean,
    mean_ndcg,
    mean_score,
    row_title,
    rows_of,
    scores,
    select,
)
from lab.data import GRIDS
from lab.first_page import tables as first_page
from lab.grid import read_grid, read_mapping
from lab.markdown import table
from lab.paper.claims import check_ablation, check_claims, label_free_sentences
from lab.paper.published import READING, method_title
from lab.paper.results import ABLATIONS, PRINTED, STUDIES, TABLE_1, Method, done, read_experiments
from lab.speed import scale
from lab.speed import tables as speed
from lab.tuning import tables as tuning
from lab.tuning.trials import read_records
from rmsh.compare.result import Result, with_prefixes
from rmsh.compare.run import Run, class_of

if TYPE_CHECKING:
    from lab.paper.results import Experiment
    from lab.sources import Sources


def trials_made(results: Sequence[Result]) -> str:
    """The number of trials in which the options of a row were chosen; 0 for defaults and presets."""
    run = results[0]["run"]
    if not run["bits"]:
        return "–"
    record = read_records().get(run["method"])
    options = {name: value for name, value in run["options"].items() if name != "database_codes"}  # never tuned
    return str(record["trials"]) if record is not None and record["chosen"] == options else "0"


def fair_table(sources: Sources) -> str:
    """All methods at 64 bits under both protocols, with what was spent on them; best NDCG@500 first."""
    paper = sources.table_1(bits=64) + sources.table_1(bits=0)
    unseen = sources.block("coco66k", "unseen", bits=64) + sources.block("coco66k", "unseen", bits=0)
    rows, groups, groups_unseen = [], rows_of(_rows_shown(paper)), rows_of(_rows_shown(unseen))
    for title, group in groups.items():
        new = groups_unseen.get(title, [])
        cells = [trials_made(group), str(len(group)), scores(group, NDCG), lost(group), scores(group, MAP)]
        cells += [scores(new, "ndcg@10"), _recall(new, "recall@10"), constant_bits(group)]
        first = select(group, seed=0)  # which were all made on one day, except for those of other database codes
        cells.append(cpu_seconds([result for result in first if "database_codes" not in result["run"]["options"]]))
        rows.append([title, *cells])
    levels = [chance(paper, NDCG), "", chance(paper, MAP), chance(unseen, "ndcg@10"), chance(unseen, "recall@10")]
    rows.append(["chance", "", "", *levels, "", ""])
    columns = ["method", "trials", "seeds", "`paper`: NDCG@500", "lost to the sign", "`paper`: mAP@all"]
    columns += ["`unseen`: NDCG@10", "`unseen`: recall@10", "constant bits", "training, CPU seconds"]
    return table(columns, rows) + _orders(groups, groups_unseen) + _limited(paper) + _passed_over(sources)


def _orders(paper: Mapping[str, list[Result]], unseen: Mapping[str, list[Result]]) -> str:
    """How the order of codes depends on measure and protocol, and how many that learned from labels lose to CCA-ITQ."""
    titles = [name for name in paper if name in unseen and paper[name][0]["run"]["bits"] and READING not in name]
    if len(titles) < 3 or "CCA-ITQ" not in titles:
        return ""
    ndcg, other = ([mean_ndcg(groups[name]) for name in titles] for groups in (paper, unseen))
    by_map = [mean_score(paper[name], MAP) for name in titles]
    alike = [spearmanr(ndcg, values).statistic for values in (by_map, other)]
    rows = [name for name in titles if learned_from_labels(unseen[name][0])]
    level = other[titles.index("CCA-ITQ")] - CLEAR
    behind = [name for name in rows if other[titles.index(name)] < level]
    return (
        f"\n\nThe order of the {len(titles)} ranked rows with codes by NDCG@500 has a rank correlation (Spearman) of "
        f"{alike[0]:.2f} with that by mAP@all and of {alike[1]:.2f} with that by NDCG@10 under `unseen`, means of both "
        f"directions. Under `unseen`, {len(behind)} of {len(rows)} rows that learned from labels are at least {CLEAR} "
        f"behind CCA-ITQ, which uses none: {', '.join(behind)}."
    )


def _recall(results: Sequence[Result], metric: str) -> str:
    """Recall, which ranks the query pairs among themselves; a dash for rows that code a database in another way."""
    return "–" if any("database_codes" in result["run"]["options"] for result in results) else scores(results, metric)


def learned_from_labels(result: Result) -> bool:
    """Whether the method of a run used labels in training."""
    return bool(result["config"].get("use_labels", class_of(Run(**result["run"])).supervised))


def _rows_shown(results: Sequence[Result]) -> list[Result]:
    """Without presets other than that of RMSH as printed."""
    return [result for result in results if result["run"]["preset"] in (None, PRINTED)]


def _limited(results: Sequence[Result]) -> str:
    """Which methods trained for fewer epochs than their trials chose, to stay below the time limit."""
    trials, cut, steps = read_mapping(GRIDS / "trials.yaml"), [], []
    for name, record in read_records().items():
        group = select(results, method=name, options=record["chosen"])
        if not group or record["chosen"].get("epochs") == record["epochs"]:
            continue
        epochs = record["chosen"]["epochs"]
        cut.append(f"{method_title(name)} {epochs} of {record['epochs']}")
        steps.append(epochs * group[0]["training_pairs"] / (record["epochs"] * max(trials["rounds"])))
    if not cut:
        return ""
    return (
        f"\n\nFewer epochs than chosen, because these were estimated to take more than {trials['cpu_minutes']} CPU "
        f"minutes: {', '.join(cut)}. On all pairs these are still {min(steps):.1f} to {max(steps):.1f} times as many "
        "steps as in the trials that chose the epochs."
    )


def _passed_over(sources: Sources) -> str:
    """What the best configurations of trials score that were not chosen, because their bits became constant."""
    found = []
    for name, search in read_mapping(GRIDS / "trials.yaml")["methods"].items():
        best = sorted(read_records()[name]["tried"], key=lambda trial: (-trial["pairs"], -trial.get("score", -1)))
        runs = (Run("coco66k", name, bits=64, options=t["options"]) for t in best[: search.get("passed_over", 0)])
        found += [f"{method_title(name)} ({scores([r], NDCG)}, {constant_bits([r])})" for r in sources.runs(runs)]
    return f"\n\nBetter in trials, but passed over for constant bits: {', '.join(found)}." if found else ""


def table_1(sources: Sources) -> str:
    """All methods by code length."""
    results, lengths = sources.table_1(), (16, 32, 64, 128)
    groups = rows_of(_rows_shown(select(results, bits=64)))
    coded = {title: [r for r in results if row_title(r["run"]) == title] for title in groups}
    tables = (
        table(
            [f"{title}, chance {chance(results, metric)}", *(f"{bits} bits" for bits in lengths)],
            [[name, *(scores(select(g, bits=bits), metric) for bits in lengths)] for name, g in coded.items()],
        )
        for title, metric in (("NDCG@500", NDCG), ("mAP@all", MAP))
    )
    return "\n\n".join([*tables, _falls(coded)])


def _falls(rows: Mapping[str, list[Result]]) -> str:
    """Which rows lose NDCG with longer codes."""
    falls = []
    for (name, group), bits in product(rows.items(), (16, 32, 64)):
        short, long = select(group, bits=bits), select(group, bits=2 * bits)
        if short and long and mean_ndcg(long) < mean_ndcg(short) - CLEAR:
            falls.append(f"{name} from {bits} to {2 * bits} bits")
    but = f", except {', '.join(falls)}" if falls else ""
    return f"No row loses more than {CLEAR} of NDCG@500 when its codes become twice as long{but}."


def unseen(sources: Sources) -> str:
    """Methods on a database that was never trained on, best first; readings of methods without a source are last."""
    groups = _by_length(sources, _unseen_runs())
    ranked = sorted(groups.items(), key=lambda group: (READING in group[0][0], -mean_ndcg(group[1])))
    results = [result for _, group in ranked for result in group]
    by_labels, recall = {"NDCG@10": "ndcg@10", "NDCG@100": "ndcg@100", "mAP@all": MAP}, (1, 5, 10)
    columns = [f"{title}, chance {chance(results, metric)}" for title, metric in by_labels.items()]
    rows = [[*_named(name), *(scores(g, metric) for metric in by_labels.values())] for name, g in ranked]
    further = [f"recall@{k}, chance {chance(results, f'recall@{k}')}" for k in recall]
    found = [[*_named(name), *(_recall(g, f"recall@{k}") for k in recall)] for name, g in ranked]
    found = [row for row in found if row[-1] != "–"]
    return table(["method", "bits", *columns], rows) + "\n\n" + table(["method", "bits", *further], found)


def _named(name: tuple[str, str]) -> tuple[str, str]:
    """Title and length of a row; rankings by real-valued vectors have no length."""
    return name[0], "–" if name[1] == "0" else name[1]


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
        best, *others = [scores(groups.get(key, []), metric, spread=False) for key in methods]
        cells = [f"{title} {value}" for (title, _), value in zip(methods[1:], others, strict=True)]
        level = chance([result for key in methods for result in groups.get(key, [])], metric)
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
        rows.append([*key, scores(found, "ndcg@10"), scores(found, "recall@10"), scores(in_paper, NDCG)])
    known = [result for key in shown for result in new.get(key, [])]
    metrics = {"NDCG@10": "ndcg@10", "recall@10": "recall@10"}
    columns = [f"`unseen`: {name}, chance {chance(known, metric)}" for name, metric in metrics.items()]
    columns.append(f"`paper`: NDCG@500, chance {chance([r for g in trained.values() for r in g], NDCG)}")
    return table(["method", "bits", *columns], rows)


def _by_length(sources: Sources, runs: Iterable[Run]) -> dict[tuple[str, str], list[Any]]:
    """The results of runs by title and length; prefixes of a code have lengths of their own.

    Runs of a method with its defaults and with options of trials are rows of their own.
    """
    groups: dict[tuple[str, str], list[Any]] = {}
    every = {run.path: run for run in runs}.values()
    with_defaults = {run.method for run in every if not run.options and not run.preset}
    for run in every:
        title = run.tag if run.tag and run.tag != run.preset else row_title(run)
        if run.method in with_defaults and run.options and not run.tag:
            title += ", tuned"
        for result in (part for whole in sources.runs([run]) for part in with_prefixes(whole)):
            bits = result["run"]["bits"]
            length = f"{bits} of {run.bits}" if bits < run.bits else str(bits)
            groups.setdefault((title, length), []).append(result)
    return groups


def nest_paper(sources: Sources) -> str:
    """NEST by code length in the protocol of the paper, beside GLINT and RMSH."""
    groups = _by_length(sources, read_grid(GRIDS / "unseen.yaml").block("paper: NEST"))
    others = [(method_title(name), sources.table_1(bits=64, method=name, preset=None)) for name in ("glint", "rmsh")]
    rows = [["NEST", bits, str(len(group)), *both(group)] for (_, bits), group in groups.items()]
    rows += [[title, "64", str(len(group)), *both(group)] for title, group in others]
    return table(["method", "bits", "seeds", "NDCG@500", "mAP@all"], rows)


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
                rmsh = tuning.study("rmsh", label_noise=case[0])
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
    experiment, lengths = _experiment(sources, "ablation").as_printed, (16, 32, 64, 128)
    results = sources.table_1(method="rmsh", preset="paper") + sources.table_1(method="cca-itq")
    columns = [f"{bits} bits" for bits in lengths]
    rows = [
        [title, *(scores(select(group, bits=bits), NDCG) for bits in lengths)]
        for title, group in rows_of(results).items()
    ]
    parts = [table(["NDCG@500", *columns], rows), *label_free_sentences(experiment.comparison)]
    claim, runs = check_ablation(experiment), experiment.ablation()
    parts.append(f"*{claim.statement}* {claim.verdict.capitalize()}: {claim.summary}")
    parts += ["\n".join(f"- {detail}" for detail in claim.details)] * bool(claim.details)
    constant = [
        [
            name,
            *(constant_bits([dict(run.result) for run in done(runs.get(bits, {}).get(name, []))]) for bits in lengths),
        ]
        for name in ("RMSH", *ABLATIONS)
    ]
    return "\n\n".join([*parts, table(["constant bits", *columns], constant)])


def claims(sources: Sources) -> str:
    """The verdicts on the claims of the paper on coco66k."""
    experiment = _experiment(sources, TABLE_1, *STUDIES)
    found = [claim for each in (experiment.as_printed, experiment) for claim in check_claims(each)]
    return table(["claim", "verdict", "numbers"], [[c.statement, c.verdict, c.summary] for c in found])


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
    "trials": tuning.trials,
    "common-label": tuning.common_label,
    "equal-bytes": tuning.equal_bytes,
    "more-steps": tuning.more_steps,
    "defaults": tuning.defaults,
    "long-codes": tuning.long_codes,
    "claims": claims,
    "rmsh-presets": rmsh_presets,
    "rmsh-printed": rmsh_printed,
    "rmsh-ablation": rmsh_ablation,
    "glint-lengths": tuning.glint_lengths,
    "glint-cost": tuning.glint_cost,
    "glint-sign": tuning.glint_sign,
    "glint-few-labels": tuning.glint_few_labels,
    "glint-noise": tuning.glint_noise,
    "glint-alone": tuning.glint_alone,
    "glint-scale": tuning.glint_scale,
    "search-speed": speed.search_speed,
    "two-stages": speed.two_stages,
    "serving": speed.serving,
    "latency": speed.latency,
    "text-encoder": speed.text_encoder,
    "executors": _if_measured(scale.executors, "executors"),
    "milvus-load": _if_measured(scale.milvus_load, "milvus_load"),
    "capacity": _if_measured(scale.capacity, "executors", "milvus_load"),
    "one-machine": scale.one_machine,
    "training": scale.training,
    "faults": speed.faults,
    "photos-mixed": speed.photos_mixed,
    "photos-duplicates": speed.photos_duplicates,
    "photos-speed": speed.photos_speed,
    "composed": lambda s: table(*first_page.composed(s.file("first_page/composed"))),
    "cut-off": lambda s: table(*first_page.cut_off(s.file("first_page/cut_off"))),
    "few-pairs": tuning.few_pairs,
    "first-page": lambda s: table(*first_page.page(s.file("first_page/library"))),
    "first-page-differences": lambda s: table(
        *first_page.differences(s.file("first_page/library-test"), s.file("first_page/library"))
    ),
}
