"""Compare methods on your own data or a benchmark.

Each method is trained and scored next to chance, and one table shows all. DATA is as for `rmsh train`; if it has no
split, a tenth of the items become queries and the rest the database. Every method is trained once per protocol: for
`paper`, the database is the training set; for `unseen`, a part of the database is held out of training and is the only
database. Each run writes one JSON file into the folder of --out. A run that has a file is not repeated, so a stopped
comparison is resumable. Rows without bits are reference lines: they rank by real numbers and show what the features
could reach.

Example:
    rmsh compare generated:600 --methods cca-itq,scm --bits 16,32 --out results
"""

from __future__ import annotations

from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmsh.cli.console import Console, duration, table
from rmsh.cli.train import code_lengths
from rmsh.core.errors import ConfigError

if TYPE_CHECKING:
    from rmsh.compare.runner import Report
    from rmsh.compare.table import Row
    from rmsh.core.registry import Registry


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
    from rmsh.compare.run import REFERENCES, Run
    from rmsh.compare.runner import make_runs, missing_runs, stale_runs
    from rmsh.compare.table import summarise
    from rmsh.data.splits import PROTOCOLS
    from rmsh.methods import METHODS

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
