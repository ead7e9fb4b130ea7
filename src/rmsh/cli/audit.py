"""Examine codes written by any program.

Reports dead, constant and duplicate bits, equal codes, and scores next to chance. CODES and LABELS are matrix files
(.npz, .npy, .mat, .h5) with packed bytes, 0/1, -1/+1 or real values; every guess about their form is printed. If
there is only one set of codes, a sample of its rows serves as queries.

Example:
    rmsh audit codes.npz labels.npz --queries 500
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmsh.cli.console import Console, table
from rmsh.cli.evaluate import MapK, MapNormaliser, RankK, cut_rank, remarks, score_table

if TYPE_CHECKING:
    from rmsh.metrics.audit import BitAudit


def audit(
    console: Console,
    codes: Annotated[Path, typer.Argument(metavar="CODES", help="File with codes.")],
    labels: Annotated[Path | None, typer.Argument(metavar="LABELS", help="Labels, unless in CODES.")] = None,
    *,
    query_codes: Annotated[Path | None, typer.Option(help="Codes of the queries; CODES is then the database.")] = None,
    query_labels: Annotated[Path | None, typer.Option(help="Labels of the queries.")] = None,
    queries: Annotated[
        int | None, typer.Option(help="Rows to use as queries (default: a tenth, at most 1,000).")
    ] = None,
    bits: Annotated[int | None, typer.Option(help="Code length, if the file leaves it open.")] = None,
    direction: Annotated[str | None, typer.Option(help="i2t, t2i, i2i or t2t.")] = None,
    k: RankK = 500,
    map_k: MapK = "all",
    map_normaliser: MapNormaliser = "relevant",
) -> None:
    from rmsh.metrics import audit_codes
    from rmsh.retrieval_set import read_retrieval_set

    found = read_retrieval_set(
        codes,
        labels,
        bits=bits,
        query_codes=query_codes,
        query_labels=query_labels,
        queries=queries,
        direction=direction,  # type: ignore[arg-type]  # an unknown one is refused by name
    )
    console.note(*found.notes)
    options: dict[str, Any] = {"k": k, "map_k": cut_rank(map_k), "map_normaliser": map_normaliser}
    with console.progress() as report:
        examined = audit_codes(found.query, found.database, on_progress=report, **options)
    value = examined.to_json() | {"notes": list(found.notes)}
    rows = [[name, show(examined.query), show(examined.database)] for name, show in _FACTS.items()]
    facts = table(f"Codes of {examined.database.bits} bits", ["", "queries", "database"], rows)
    console.result(value, facts, score_table({"": examined.scores}), *remarks({"": examined.scores}))


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
