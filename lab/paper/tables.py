"""The tables of an experiment: Table 1, Table 2, mAP, training cost and code statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, product
from statistics import fmean
from typing import TYPE_CHECKING, Any

from lab.paper.claims import compare_parts, loss_shares
from lab.paper.published import DIRECTION_TITLES, READING, paper_score, setting_difference
from lab.paper.results import (
    ABLATIONS,
    AS_PRINTED,
    DIRECTIONS,
    MAP,
    NDCG,
    PRINTED,
    UNSEEN,
    UNSEEN_METRICS,
    UNSEEN_RECALL,
    Comparison,
    Experiment,
    Method,
    RunResult,
    deviation,
    done,
    first_seed,
    mean_score,
)
from lab.paper.table import Cell, Row, Table
from rmsh.metrics.evaluate import shown_name

if TYPE_CHECKING:
    from lab.paper.significance import Difference

_MARK = "*"
_MARK_NOTE = (
    "outside the 95 % interval for the noise of the seeds (*), pooled over lengths where a cell has fewer than three."
)


def make_tables(experiment: Experiment) -> list[Table]:
    """The tables that the experiment has runs for."""
    makers = (comparison_table, unseen_table, recall_table, ablation_table, map_table, cost_table, code_table)
    tables = [make(experiment) for make in makers]
    tables.insert(4, ablation_table(experiment.as_printed))
    return [table for table in tables if table is not None]


def comparison_table(experiment: Experiment) -> Table | None:
    """Table 1: NDCG of all methods at all code lengths in both directions; None without runs."""
    return _comparison(experiment, NDCG, number=1)


def map_table(experiment: Experiment) -> Table | None:
    """mAP@all of all methods, where an item is relevant if it shares any label; None without runs."""
    return _comparison(experiment, MAP)


def _comparison(experiment: Experiment, metric: str, *, number: int | None = None) -> Table | None:
    """A score of all methods, with the best of the eight in bold; the paper's table also has its scores and tests."""
    comparison, dataset = experiment.comparison, experiment.dataset
    if not comparison.bits:
        return None
    ranks = {(d, bits): comparison.ranked(bits, d, metric=metric) for d in DIRECTIONS for bits in comparison.bits}

    def judge(name: str, direction: str, bits: int) -> tuple[bool, Difference | None]:
        ranked = ranks[direction, bits]
        if len(ranked) < 2 or name != ranked[0].title:
            return False, None
        return True, comparison.compare(ranked[0], ranked[1], bits, direction) if number else None

    groups = {m.title: {bits: comparison.cell(m, bits) for bits in comparison.bits} for m in comparison.methods}
    rows, records = _score_rows(groups, judge, metric=metric, paper=(number or 0, dataset))
    scored = done(comparison)
    chance = [Cell(f"{scored[0].chance(d, metric):.4f}" if scored else "not run") for d, _ in ranks]
    cells = (comparison.cell(method, bits) for method in comparison.eight for bits in comparison.bits)
    bold = f"Bold: the best of the eight methods{'' if all(map(done, cells)) else ' that have scores'}"
    title = _shown("NDCG@500", comparison) if metric == NDCG else "mAP@all"
    return Table(
        f"{'map' if number is None else f'table{number}'}-{dataset}",
        f"{title} of all methods on {dataset}",
        "method",
        _score_columns(comparison.bits),
        (Row("random ranking", tuple(chance)), *rows),
        (*_notes(dataset, comparison, f"{bold}; its lead over the second best is"), *_row_notes(comparison))
        if number
        else (f"Mean and standard deviation over seeds. {bold}.", *_row_notes(comparison)),
        tuple(records),
        number=number,
        align="l",
    )


def _row_notes(comparison: Comparison) -> list[str]:
    """Where the options of the rows come from, and what their names mean."""
    notes = []
    if Method("rmsh", PRINTED) in comparison.runs:
        notes.append(
            '"RMSH as printed" has the constants of the paper (preset paper), "preset paper-literal" also its probable '
            "misprints; neither was tuned, nor were rows without codes. All other rows, including RMSH, have options "
            "chosen on validation pairs; docs/howto/compare.md lists the trials."
        )
    further = {
        READING: "Readings follow the abstract of a paper whose code and text were not found; they are not ranked.",
        "database from": '"Database from": items of the database are coded as in the original method.',
        "no codes": '"No codes": rankings by real-valued vectors.',
        "NEST": "GLINT and NEST are methods of this project.",
    }
    titles = [method.title for method in comparison.runs]
    return notes + [note for word, note in further.items() if any(word in title for title in titles)]


def _score_rows(
    groups: Mapping[str, Mapping[int, list[RunResult]]],
    judge: Callable[[str, str, int], tuple[bool, Difference | None]],
    *,
    metric: str = NDCG,
    paper: tuple[int, str],
) -> tuple[list[Row], list[dict[str, Any]]]:
    """For each name and code length the cells of its runs and a record of each, with the paper's scores below ours.

    ``judge`` says whether the cell of a name, direction and length is bold, and how it was tested; ``paper`` is the
    number of the paper's table (0 for none) and our name of the data set.
    """
    rows: list[Row] = []
    records: list[dict[str, Any]] = []
    # The paper's scores of RMSH stand below those of RMSH as printed, if it was run.
    names = {name: name.removesuffix(AS_PRINTED) for name in groups}
    names |= {name: "" for name in groups if f"{name}{AS_PRINTED}" in groups}
    for name, lengths in groups.items():
        cells, printed = [], []
        for direction, (bits, group) in product(DIRECTIONS, lengths.items()):
            bold, test = judge(name, direction, bits)
            printed.append(paper_score(*paper, direction=direction, method=names[name], bits=bits))
            cells.append(_score_cell(group, direction, metric=metric, bold=bold, test=test))
            records.append(_record(group, direction, name=name, bits=bits, paper=printed[-1], test=test))
        rows.append(Row(name, tuple(cells)))
        if any(score is not None for score in printed):
            texts = ("" if score is None else f"{score:.4f}" for score in printed)
            rows.append(Row(f"{names[name]} in the paper", tuple(map(Cell, texts)), italic=True))
    return rows, records


def unseen_table(experiment: Experiment) -> Table | None:
    """Scores by shared labels on a database that was never trained on, see _unseen; None without runs."""
    return _unseen(experiment, "unseen", "Scores on unseen pairs", UNSEEN_METRICS)


def recall_table(experiment: Experiment) -> Table | None:
    """How often a query that was never trained on finds its own counterpart, see _unseen; None without runs."""
    return _unseen(experiment, "unseen-recall", "Recall of the own counterpart on unseen pairs", UNSEEN_RECALL)


def _unseen(experiment: Experiment, name: str, title: str, metrics: Mapping[str, str]) -> Table | None:
    """A table of unseen pairs, best NDCG@10 first, readings of methods without a source last.

    Recall ranks the query pairs among themselves, so that rows with other database codes have none of their own.
    """
    groups = experiment.unseen()
    if metrics is UNSEEN_RECALL:
        groups = {name: g for name, g in groups.items() if not any("database_codes" in r.run.options for r in g)}
    if not groups:
        return None
    columns = [(direction, metric) for direction in DIRECTIONS for metric in metrics.values()]
    rows, records = [], []
    for row, group in groups.items():
        scored = done(group)
        means = {column: mean_score(scored, *column) for column in columns} if scored else {}
        cells = tuple(_score_cell(group, direction, metric=metric) for direction, metric in columns)
        rows.append(
            (READING in row, -sum(mean_score(scored, d, "ndcg@10") for d in DIRECTIONS if scored), Row(row, cells))
        )
        scores = {f"{direction} {metric}": round(value, 6) for (direction, metric), value in means.items()}
        records.append({"name": row, "seeds": len(scored), **scores})
    all_done = done(result for group in groups.values() for result in group)
    order = "in the order of the table of scores" if metrics is UNSEEN_RECALL else "best NDCG@10 first"
    notes = [f"The database was never trained on. Mean and standard deviation over seeds; {order}."]
    chance = tuple(Cell(f"{all_done[0].chance(*column):.4f}" if all_done else "not run") for column in columns)
    whole = [found.result for found in done(experiment.of(UNSEEN))]
    if whole:
        counts, held_out = whole[0]["queries"]["i2t"], whole[0]["split"]["held_out"]["sha256"][:16]
        notes.append(
            f"{whole[0]['training_pairs']:,} training pairs, {counts['asked']:,} queries, {counts['database']:,} "
            f"database pairs (sha256 {held_out})."
        )
        notes += [f"{whole[0]['definitions']['recall']}."] * (metrics is UNSEEN_RECALL)
    notes += _row_notes(experiment.comparison)
    return Table(
        f"{name}-{experiment.dataset}",
        f"{title} of {experiment.dataset}",
        "method",
        {direction: tuple(_shown(metric, all_done) for metric in metrics) for direction in DIRECTION_TITLES.values()},
        (Row("random ranking", chance), *(row for *_, row in sorted(rows, key=lambda each: each[:2]))),
        tuple(notes),
        tuple(records),
        align="l",
    )


def _shown(name: str, results: Iterable[RunResult]) -> str:
    """The name of a score, without a rank beyond the database."""
    found = [result.result["queries"]["i2t"]["database"] for result in done(results) if "queries" in result.result]
    return shown_name(name, found[0]) if found else name


def _score_columns(lengths: Iterable[int]) -> dict[str, tuple[str, ...]]:
    return {title: tuple(f"{bits} bits" for bits in lengths) for title in DIRECTION_TITLES.values()}


def _score_cell(
    results: Sequence[RunResult],
    direction: str,
    *,
    metric: str = NDCG,
    bold: bool = False,
    test: Difference | None = None,
) -> Cell:
    """Mean and deviation over the seeds that are done; otherwise "not run" or "failed"."""
    scored = done(results)
    if not scored:
        return Cell(_absence(results))
    spread = deviation(scored, direction, metric)
    text = f"{mean_score(scored, direction, metric):.4f}" + ("" if spread is None else f" ± {spread:.4f}")
    return Cell(text, bold=bold, mark=_MARK if test is not None and test.decided else "")


def _absence(results: Iterable[RunResult]) -> str:
    found = {result.result["status"] for result in results}
    return "failed" if "failed" in found else "earlier code" if "earlier" in found else "not run"


def _record(
    results: Sequence[RunResult],
    direction: str,
    *,
    name: str,
    bits: int,
    paper: float | None = None,
    test: Difference | None = None,
) -> dict[str, Any]:
    """A cell in full: scores, chance, the paper's score, the test, the split and the files of its runs."""
    scored = done(results)
    record: dict[str, Any] = {"direction": direction, "name": name, "bits": bits, "seeds": len(scored)}
    record["failed"] = sum(result.failed for result in results)
    if scored:
        first, spread = scored[0], deviation(scored, direction)
        record |= {
            "ndcg@500": round(mean_score(scored, direction), 6),
            "deviation": None if spread is None else round(spread, 6),
            "chance": first.chance(direction),
            "map@all": round(mean_score(scored, direction, MAP), 6),
            "training_pairs": first.result.get("training_pairs"),
            "split": first.result["split"]["sha256"][:16],
            "files": " ".join(str(result.run.path) for result in scored),
        }
        record |= {"paper": paper, "minus_paper": None if paper is None else round(record[NDCG] - paper, 6)}
    if test is not None:
        record |= {"difference": round(test.value, 6), "margin": None if test.margin is None else round(test.margin, 6)}
    return record


def _notes(dataset: str, results: Iterable[RunResult], test_note: str) -> tuple[str, ...]:
    """Seeds, tests, the definition of the score, the split, and how the setting differs from the paper's."""
    results = list(results)
    notes = ["Mean and standard deviation over seeds.", f"{test_note} {_MARK_NOTE}"]
    if missing := sum(result.missing for result in results):
        notes.append(f"{missing:,} runs of this table are missing; a cell shows the seeds that are done.")
    if scored := done(results):
        first = scored[0].result
        pairs = sorted({result.result.get("training_pairs", 0) for result in scored})
        notes.append(first.get("definitions", {}).get("ndcg", NDCG) + ".")
        notes.append(
            f"Split {first['split']['name']}, sha256 {first['split']['sha256'][:16]}; "
            f"{' or '.join(f'{count:,}' for count in pairs)} training pairs."
        )
    return (*notes, *filter(None, [setting_difference(dataset)]))


def ablation_table(experiment: Experiment) -> Table | None:
    """Table 2: RMSH without its triplet loss, its classification loss or its pseudo-codes; None without runs."""
    lengths, dataset = experiment.ablation(), experiment.dataset
    if not lengths:
        return None

    def judge(name: str, direction: str, bits: int) -> tuple[bool, Difference | None]:
        scored = {variant: runs for variant, group in lengths[bits].items() if (runs := done(group))}
        best = max(scored, key=lambda variant: mean_score(scored[variant], direction), default=None)
        return name == best, compare_parts(experiment, name, bits, direction) if name != "RMSH" else None

    names = (*ABLATIONS, "RMSH")
    groups = {name: {bits: variants.get(name, []) for bits, variants in lengths.items()} for name in names}
    rows, records = _score_rows(groups, judge, paper=(2, dataset))
    runs = {bits: list(chain(*variants.values())) for bits, variants in lengths.items()}
    results = list(chain(*runs.values()))
    return Table(
        f"table2-{'printed-' if experiment.preset else ''}{dataset}",
        f"{_shown('NDCG@500', results)} of {experiment.rmsh.title} without one of its parts on {dataset}",
        "variant",
        _score_columns(lengths),
        tuple(rows),
        (
            "RMSH-T has no triplet loss, RMSH-C no classification loss, RMSH-P no pseudo-codes.",
            *_settings(runs),
            *_notes(dataset, results, "Bold: the best variant. The difference of a variant from the full RMSH is"),
            *loss_shares(experiment),
        ),
        tuple(records),
        number=None if not experiment.preset and experiment.as_printed.ablation() else 2,  # the paper's is as printed
        align="l",
    )


def _settings(runs: Mapping[int, list[RunResult]]) -> list[str]:
    """The setting of each code length, one sentence if it is the same for all."""
    texts = {f"{bits} bits": setting_text(group) for bits, group in runs.items()}
    if len({*texts.values()}) == 1:
        texts = {"All lengths": next(iter(texts.values()))}
    return [f"{lengths}: {text}." for lengths, text in texts.items()]


def setting_text(results: Sequence[RunResult]) -> str:
    """The number of training pairs and the options that all runs share."""
    first, *others = (result.run for result in results)
    pairs = "all training pairs" if first.train is None else f"{first.train:,} training pairs"
    shared = [name for name, value in first.options.items() if all(run.options.get(name) == value for run in others)]
    return ", ".join([pairs, *(f"{name} {first.options[name]}" for name in shared)])


def cost_table(experiment: Experiment) -> Table | None:
    """CPU seconds and memory of training at one code length; None without runs."""
    comparison = experiment.comparison
    if not comparison.bits:
        return None
    bits = comparison.usual_bits
    rows, records = [], []
    for method in comparison.methods:
        if group := comparison.cell(method, bits):
            cost = _cost(first_seed(done(group)))
            texts = [f"{value:,.0f}" for value in cost.values()] or [_absence(group)] * 2
            rows.append(Row(method.title, tuple(map(Cell, texts))))
            records.append({"name": method.title, "bits": bits, **cost})
    return Table(
        f"costs-{experiment.dataset}",
        f"Cost of training on {experiment.dataset}, {bits} bits",
        "method",
        {"training": ("CPU seconds", "memory, MB")},
        tuple(rows),
        (
            "CPU seconds of all threads, first seed; memory is the peak of the run's process, data included.",
            *_row_notes(comparison),
        ),
        tuple(records),
    )


def _cost(results: Sequence[RunResult]) -> dict[str, float]:
    measured = [result.result for result in results if result.result.get("peak_memory_mb")]
    if not measured:
        return {}
    return {
        "cpu_seconds": round(fmean(result["seconds"]["fit_cpu"] for result in measured), 1),
        "memory_mb": max(result["peak_memory_mb"] for result in measured),
    }


_CODE_COLUMNS = {
    "distinct": ("distinct codes", "{:,.0f}"),
    "rarer": ("rarer value of a bit, %", "{:.0f}"),
    "constant": ("constant bits, %", "{:.0f}"),
    "lost": ("lost to the sign", "{:z.3f}"),
}
_CODE_NOTE = (
    "Of the database codes of the worse modality, mean over seeds: the number of distinct codes; the frequency of the "
    "rarer value of a bit, averaged over bits (50 % is balanced); and the share of bits that have the same value on "
    "more than 98 % of the items. Lost to the sign: NDCG@500 by the cosine of the values before the sign minus that "
    "by codes, for the same queries (up to 1,000), mean of both directions."
)


def code_table(experiment: Experiment) -> Table | None:
    """Statistics of the codes at all lengths, without reference methods; None without runs."""
    comparison = experiment.comparison
    rows, records = [], []
    for method in comparison.methods:
        if comparison.is_reference(method):
            continue
        groups = {bits: comparison.cell(method, bits) for bits in comparison.bits}
        found = {bits: _code_statistics(group) for bits, group in groups.items()}
        cells = tuple(
            Cell(_absence(group) if not found[bits] else form.format(found[bits][name]) if name in found[bits] else "–")
            for name, (_, form) in _CODE_COLUMNS.items()
            for bits, group in groups.items()
        )
        rows.append(Row(method.title, cells))
        records += [{"name": method.title, "bits": bits, **values} for bits, values in found.items()]
    if not any("distinct" in record for record in records):
        return None
    return Table(
        f"codes-{experiment.dataset}",
        f"The codes of all methods on {experiment.dataset}",
        "method",
        {title: tuple(f"{bits} bits" for bits in comparison.bits) for title, _ in _CODE_COLUMNS.values()},
        tuple(rows),
        (_CODE_NOTE, *_row_notes(comparison)),
        tuple(records),
    )


def _code_statistics(results: Sequence[RunResult]) -> dict[str, float]:
    audited = [list(result.result["audit"].values()) for result in done(results) if result.result.get("audit")]
    if not audited:
        return {}
    rarer = [min(100 * fmean(min(share, 1 - share) for share in a["ones"]) for a in each) for each in audited]
    constant = [max(100 * (len(a["dead"]) + len(a["nearly_constant"])) / a["bits"] for a in each) for each in audited]
    lost = [
        by["values"][NDCG] - by["codes"][NDCG] for r in done(results) for by in r.result.get("relaxed", {}).values()
    ]
    return {
        "distinct": fmean(min(audit["distinct"] for audit in audits) for audits in audited),
        "rarer": round(fmean(rarer), 2),
        "constant": round(fmean(constant), 2),
        **({"lost": round(fmean(lost), 4)} if lost else {}),
    }
