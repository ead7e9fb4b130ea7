"""Score codes of rmsh, and examine codes of any program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from rmsh.cli.console import Console, listed_numbers, listed_words, table
from rmsh.core.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from rmsh.metrics.audit import BitAudit
    from rmsh.metrics.evaluate import Scores

MapK = Annotated[str, typer.Option(metavar="N|all", help="Rank at which mAP is cut off.")]
MapNormaliser = Annotated[str, typer.Option(help="Divisor of the precisions: relevant, min(relevant,k) or hits.")]


def evaluate(
    console: Console,
    codes: Annotated[Path, typer.Argument(metavar="CODES", help="Codes file.")],
    *,
    protocol: Annotated[str, typer.Option(metavar="paper|unseen", help="Default ranks, and recall.")] = "paper",
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
    import numpy as np

    from rmsh.codes_file import CodesFile
    from rmsh.core.files import atomic
    from rmsh.data.splits import PROTOCOLS
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
