"""Score codes of rmsh, examine codes of any program, and compare methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
import typer

from rmsh.cli.console import Console, duration, listed_numbers, listed_words, table
from rmsh.cli.train import code_lengths
from rmsh.core.errors import ConfigError
from rmsh.core.files import atomic
from rmsh.data.splits import PROTOCOLS
from rmsh.methods import METHODS

if TYPE_CHECKING:
    from rich.table import Table

    from rmsh.compare.runner import Report
    from rmsh.compare.table import Row
    from rmsh.core.registry import Registry
    from rmsh.metrics.audit import BitAudit
    from rmsh.metrics.evaluate import Scores

MapK = Annotated[str, typer.Option(metavar="N|all", help="Rank at which mAP is cut off.")]
MapNormaliser = Annotated[str, typer.Option(help="Divisor of the precisions: relevant, min(relevant,k) or hits.")]


def evaluate(
    console: Console,
    codes: Annotated[Path, typer.Argument(metavar="CODES", help="Codes file.")],
    *,
    protocol: Annotated[
        str, typer.Option(metavar="paper|unseen", help="unseen: NDCG@10 and @100, and recall.")
    ] = "paper",
    k: Annotated[list[str] | None, typer.Option("-k", "--k", metavar="N,N,...", help="Ranks of the scores.")] = None,
    map_k: MapK = "all",
    map_normaliser: MapNormaliser = "relevant",
    direction: Annotated[list[str] | None, typer.Option(metavar="NAME,...", help="Such as i2t,t2i,i2i,t2t.")] = None,
    per_query: Annotated[Path | None, typer.Option(help="Write the scores of each query to this .npz file.")] = None,
) -> None:
    """Score codes: NDCG, mAP and precision, next to chance.

    CODES is a file written by `rmsh encode`. Scores are averaged over the order of ties, and shown with their values
    for the worst and the best order. With `--protocol unseen`, as for `rmsh train` and `rmsh encode`, they are NDCG at
    ranks 10 and 100 and the recall of an item's own counterpart among the queries at 1, 5 and 10. For codes of other
    programs, use `rmsh audit`.

    Example:
        rmsh evaluate codes.npz -k 10,500 --direction i2t,t2i
    """
    from rmsh.codes_file import CodesFile
    from rmsh.metrics import evaluate_directions
    from rmsh.metrics.counterparts import RECALL_RANKS
    from rmsh.metrics.evaluate import UNSEEN_RANKS

    coded = CodesFile.load(codes)
    if protocol not in PROTOCOLS:
        raise ConfigError(f"--protocol got {protocol!r}; give one of {', '.join(PROTOCOLS)}.")
    unseen = protocol == "unseen"
    options: dict[str, Any] = {"map_k": _cut_rank(map_k), "map_normaliser": map_normaliser}
    options |= {"directions": listed_words(direction) or None, "recall": RECALL_RANKS if unseen else ()}
    options |= {"k": listed_numbers(k, "-k") or (UNSEEN_RANKS if unseen else 500)}
    options |= {"per_query": per_query is not None}
    query = coded.part("query")
    # On the validation part of the protocol unseen, the queries are ranked among themselves.
    among_themselves = unseen and coded.split is not None and "database" not in coded.split
    database = query if among_themselves else coded.part("database")
    with console.progress() as report:
        scores = evaluate_directions(query, database, leave_own_out=among_themselves, on_progress=report, **options)
    if per_query is not None:
        arrays: dict[str, Any] = {f"{d}_{name}": some for d, s in scores.items() for name, some in s.per_query.items()}
        with atomic(per_query) as file:
            np.savez(file, **arrays)
    value: dict[str, Any] = {"codes": str(codes), "model": coded.model, "protocol": protocol}
    value["directions"] = {d: s.to_json() for d, s in scores.items()}
    console.result(value | {"warnings": coded.leak()}, _score_table(scores), *_remarks(scores), *coded.leak())


def _cut_rank(text: str) -> int | None:
    """Parse a rank; "all" is None."""
    if text == "all":
        return None
    if not text.isdecimal():
        raise ConfigError(f"--map-k got {text!r}; give a whole number of at least 1, or all.")
    return int(text)


def _score_table(scores: Mapping[Any, Scores]) -> Table:
    """A table of scores next to chance, one row per score and direction."""
    rows = [
        [f"{direction} {name}".strip(), *(f"{value:.4f}" for value in (s.value, s.pessimistic, s.optimistic, s.chance))]
        for direction, found in scores.items()
        for name, s in found.named().items()
    ]
    return table("Scores", ["score", "expected", "worst ties", "best ties", "chance"], rows)


def _remarks(scores: Mapping[Any, Scores]) -> list[str]:
    """One line per direction: number of queries, queries left out, size of the database."""
    return [
        f"{direction or 'codes'}: {found.queries:,} queries, {found.dropped:,} dropped because nothing is relevant; "
        f"{found.database:,} database items; {found.bits} bits; {found.empty_within:.1%} of the queries have no "
        f"item within distance {found.definitions.radius}."
        for direction, found in scores.items()
    ]


def audit(
    console: Console,
    codes: Annotated[Path, typer.Argument(metavar="CODES", help="File with codes.")],
    labels: Annotated[Path | None, typer.Argument(metavar="LABELS", help="Labels, unless in CODES.")] = None,
    *,
    queries: Annotated[int | None, typer.Option(help="Number of queries (default: a tenth, at most 1,000).")] = None,
    direction: Annotated[str | None, typer.Option(help="i2t, t2i, i2i or t2t, of a file by `rmsh encode`.")] = None,
    k: Annotated[int, typer.Option("-k", "--k", help="Rank at which NDCG and precision are cut off.")] = 500,
    map_k: MapK = "all",
    map_normaliser: MapNormaliser = "relevant",
) -> None:
    """Examine codes written by any program.

    Reports dead, constant and duplicate bits, equal codes, and scores next to chance. CODES and LABELS are matrix files
    (.npz, .npy, .mat): codes are 0/1, -1/+1 or real values, one column per bit, or packed bytes, and labels 0/1, one
    column per class. The keys query_codes, database_codes, query_labels and database_labels say which items are
    queries; if there is only one set of codes, a sample of its rows serves as queries.

    Example:
        rmsh audit codes.npz labels.npz --queries 500
    """
    from rmsh.metrics import audit_codes
    from rmsh.retrieval_set import read_retrieval_set

    # An unknown direction is refused by name.
    found = read_retrieval_set(codes, labels, queries=queries, direction=cast("Any", direction))
    console.note(*found.notes)
    options: dict[str, Any] = {"k": k, "map_k": _cut_rank(map_k), "map_normaliser": map_normaliser}
    with console.progress() as report:
        examined = audit_codes(found.query, found.database, on_progress=report, **options)
    value = examined.to_json() | {"notes": list(found.notes)}
    rows = [[name, show(examined.query), show(examined.database)] for name, show in _FACTS.items()]
    facts = table(f"Codes of {examined.database.bits} bits", ["", "queries", "database"], rows)
    console.result(value, facts, _score_table({"": examined.scores}), *_remarks({"": examined.scores}))


def _listed(bits: tuple[object, ...]) -> str:
    shown = ", ".join(str(bit) for bit in bits[:5])
    return f"{len(bits)} ({shown}{', ...' if len(bits) > 5 else ''})" if bits else "0"


_FACTS: dict[str, Callable[[BitAudit], str]] = {
    "codes": lambda side: f"{side.items:,}",
    "distinct codes": lambda side: f"{side.distinct:,}",
    "items with the most frequent code": lambda side: f"{side.largest_bucket:,}",
    "dead bits": lambda side: _listed(side.dead),
    "nearly constant bits (98 %)": lambda side: _listed(side.nearly_constant),
    "duplicate bits": lambda side: _listed(side.duplicates),
    "share of ones": lambda side: f"{side.ones.min():.2f} to {side.ones.max():.2f}",
    "mean absolute correlation of bits": lambda side: (
        "-" if side.mean_correlation is None else f"{side.mean_correlation:.3f}"
    ),
}


def compare(
    console: Console,
    data: Annotated[str, typer.Argument(metavar="DATA", help="Data to train on and to search in.")],
    *,
    out: Annotated[Path, typer.Option(help="Folder of the result files.")] = Path("results"),
    methods: Annotated[str, typer.Option(metavar="NAME,...|all", help="Methods to compare.")] = "all",
    references: Annotated[str, typer.Option(metavar="NAME,...|all|none", help="Reference lines.")] = "all",
    bits: Annotated[str, typer.Option(metavar="N,N,...", help="Code lengths.")] = "64",
    protocol: Annotated[str, typer.Option(metavar="paper|unseen|both", help="Protocols to compare under.")] = "both",
    seeds: Annotated[int, typer.Option(min=1, help="Runs per method, with seeds 0, 1, ...")] = 1,
    train: Annotated[int | None, typer.Option(min=3, help="Number of training pairs; all by default.")] = None,
    text_encoder: Annotated[str, typer.Option(help="Encoder of raw texts: minilm or bag-of-words.")] = "minilm",
    retry_failed: Annotated[bool, typer.Option(help="Retry failed runs.")] = False,
    time_limit: Annotated[float | None, typer.Option(min=1, metavar="SECONDS", help="Time limit of a run.")] = None,
) -> None:
    """Compare methods on your own data or a benchmark.

    Each method is trained and scored next to chance, and one table shows all. DATA is as for `rmsh train`; if it has no
    split, a tenth of the items become queries and the rest the database. Every method is trained once per protocol: for
    `paper`, the database is the training set; for `unseen`, a part of the database is held out of training and is the
    only database. Each run writes one JSON file into the folder of --out. A run that has a file is not repeated, so a
    stopped comparison is resumable. Rows without bits are reference lines: they rank by real numbers and show what the
    features could reach.

    Example:
        rmsh compare generated:600 --methods cca-itq,scm --bits 16,32 --out results
    """
    from rmsh.compare.run import REFERENCES, Run
    from rmsh.compare.runner import make_runs, missing_runs, stale_runs
    from rmsh.compare.table import summarise

    methods_named, references_named = _names(methods, METHODS), _names(references, REFERENCES)
    if not methods_named and not references_named:
        raise ConfigError("The comparison names neither methods nor references; name at least one.")
    protocols = PROTOCOLS if protocol == "both" else (protocol,)
    dataset = _short_name(data)
    shared: dict[str, Any] = {"train": train, "text": text_encoder}
    runs = [Run(dataset, name, 0, protocol=p, **shared) for p, name in product(protocols, references_named)]
    runs += [
        Run(dataset, name, length, seed, protocol=p, **shared)
        for seed, length, p, name in product(range(seeds), code_lengths([bits]), protocols, methods_named)
    ]
    missing, stale = missing_runs(runs, out, retry_failed=retry_failed), stale_runs(runs, out)
    console.note(f"{len(runs)} runs on {data}, {len(runs) - len(missing)} already done; results are written to {out}.")
    if stale:
        console.note(
            f"{len(stale)} of them were made with other code or defaults, such as {out / stale[0].path}; remove these "
            "files to repeat the runs."
        )
    results = make_runs(
        runs,
        out,
        data={dataset: data},
        retry_failed=retry_failed,
        time_limit=time_limit,
        on_run=lambda report: console.note(_line(report)),
    )
    _show(console, data, out, summarise(result for result in results if result is not None))


def _show(console: Console, data: str, out: Path, rows: list[Row]) -> None:
    from rmsh.compare.table import COST_COLUMNS, PROTOCOL_TITLES, cost_cells, score_table

    for row in rows:
        if row.error:
            console.note(f"{row.method}, {row.bits} bits, protocol {row.protocol}, failed: {row.error}")
    tables = []
    for protocol in dict.fromkeys(row.protocol for row in rows):
        some = [row for row in rows if row.protocol == protocol]
        title = f"Protocol {protocol}: {PROTOCOL_TITLES[protocol]}; I→T / T→I"
        tables.append(table(title, *score_table(some)))
    costs = table("Costs and bits", COST_COLUMNS, [cost_cells(row) for row in rows if row.protocol == rows[0].protocol])
    console.result({"data": data, "results": str(out), "rows": [asdict(row) for row in rows]}, *tables, costs)


def _names(given: str, registry: Registry) -> list[str]:
    """The names in an option; an unknown name is refused."""
    if given in ("all", "none"):
        return registry.names() if given == "all" else []
    names = [name.strip() for name in given.split(",")]
    for name in {*names}.difference(registry):
        registry.load(name)  # raises an error that lists the known names
    return names


def _short_name(data: str) -> str:
    """Name of the folder for the results of a data set.

    Example:
        >>> _short_name("generated:600"), _short_name("coco66k:/data/coco"), _short_name("photos/pairs.npz")
        ('generated-600', 'coco66k', 'pairs')
    """
    kind, _, argument = data.partition(":")
    if kind == "generated":
        return f"{kind}-{argument}" if argument else kind
    return kind if kind == "coco66k" else Path(data).stem


def _line(report: Report) -> str:
    run, result = report.run, report.result
    bits = f", {run.bits} bits" if run.bits else ""
    label = f"{report.done}/{report.total} {run.protocol}: {run.method}{bits}"
    left = "" if not report.seconds_left else f"; about {duration(report.seconds_left)} left"
    if result["status"] == "failed":
        return f"{label}, seed {run.seed}: failed: {result['error']}{left}"
    k, seconds = run.ranks[0], duration(result["seconds"]["fit"])
    scores = " / ".join(f"{result['scores'][d][f'ndcg@{k}']['value']:.4f}" for d in ("i2t", "t2i"))
    return f"{label}, seed {run.seed}: NDCG@{k} {scores}, trained in {seconds}{left}"
