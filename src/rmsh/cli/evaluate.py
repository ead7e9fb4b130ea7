"""Score codes: NDCG, mAP and precision, next to chance.

CODES is a file written by `rmsh encode`. Scores are averaged over the order of ties, and shown with their values for
the worst and the best order. With `--protocol unseen`, as for `rmsh train` and `rmsh encode`, they are NDCG at ranks 10
and 100 and the recall of an item's own counterpart among the queries at 1, 5 and 10. For codes of other programs, use
`rmsh audit`.

Example:
    rmsh evaluate codes.npz --k 10 --k 500 --direction i2t --direction t2i
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmsh.cli.console import Console, table
from rmsh.core.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from rmsh.metrics.evaluate import Scores


RankK = Annotated[int, typer.Option("--k", help="Rank at which NDCG and precision are cut off.")]
MapK = Annotated[str, typer.Option(help="Rank at which mAP is cut off: a number, or all.")]
MapNormaliser = Annotated[str, typer.Option(help="Normaliser of AP: relevant, min(relevant,k) or hits.")]


def evaluate(
    console: Console,
    codes: Annotated[Path, typer.Argument(metavar="CODES", help="Codes file.")],
    *,
    labels: Annotated[Path | None, typer.Option(help="File with labels, if CODES has none.")] = None,
    protocol: Annotated[str, typer.Option(help="paper or unseen: default ranks, and recall.")] = "paper",
    k: Annotated[list[int] | None, typer.Option(help="Ranks of NDCG; that of precision first.")] = None,
    map_k: MapK = "all",
    map_normaliser: MapNormaliser = "relevant",
    direction: Annotated[list[str] | None, typer.Option(help="i2t, t2i, i2i or t2t; may be repeated.")] = None,
    per_query: Annotated[Path | None, typer.Option(help="Write the scores of each query to this .npz file.")] = None,
) -> None:
    import numpy as np

    from rmsh.codes_file import CodesFile
    from rmsh.core.files import atomic
    from rmsh.data.readers.code_files import find_labels
    from rmsh.data.splits import PROTOCOLS
    from rmsh.metrics import evaluate_directions
    from rmsh.metrics.counterparts import RECALL_RANKS
    from rmsh.metrics.evaluate import UNSEEN_RANKS

    coded = CodesFile.load(codes)
    if labels is not None:
        found = find_labels(labels)
        console.note(*found.notes)
        coded = coded.with_labels(found.of("all"), found.ids)
    if protocol not in PROTOCOLS:
        raise ConfigError(f"--protocol got {protocol!r}; give one of {', '.join(PROTOCOLS)}.")
    unseen = protocol == "unseen"
    options: dict[str, Any] = {"map_k": cut_rank(map_k), "map_normaliser": map_normaliser}
    options |= {"k": k or (UNSEEN_RANKS if unseen else 500), "recall": RECALL_RANKS if unseen else ()}
    query = coded.part("query")
    # On the validation part of the protocol unseen, the queries are ranked among themselves.
    among_themselves = unseen and coded.split is not None and "database" not in coded.split
    database = query if among_themselves else coded.part("database")
    with console.progress() as report:
        scores = evaluate_directions(
            query,
            database,
            directions=direction,  # type: ignore[arg-type]  # an unknown one is refused by name
            per_query=per_query is not None,
            leave_own_out=among_themselves,
            on_progress=report,
            **options,
        )
    if per_query is not None:
        arrays: dict[str, Any] = {f"{d}_{name}": some for d, s in scores.items() for name, some in s.per_query.items()}
        with atomic(per_query) as file:
            np.savez(file, **arrays)
    value: dict[str, Any] = {"codes": str(codes), "model": coded.model, "protocol": protocol}
    value["directions"] = {d: s.to_json() for d, s in scores.items()}
    console.result(value, score_table(scores), *remarks(scores))


def cut_rank(text: str) -> int | None:
    """Parse a rank; "all" is None.

    Example:
        >>> cut_rank("all"), cut_rank("50")
        (None, 50)
    """
    if text == "all":
        return None
    if not text.isdecimal():
        raise ConfigError(f"--map-k got {text!r}; give a whole number of at least 1, or all.")
    return int(text)


def score_table(scores: Mapping[Any, Scores]) -> Table:
    """A table of scores next to chance, one row per score and direction."""
    rows = [
        [f"{direction} {name}".strip(), *(f"{value:.4f}" for value in (s.value, s.pessimistic, s.optimistic, s.chance))]
        for direction, found in scores.items()
        for name, s in found.named().items()
    ]
    return table("Scores", ["score", "expected", "worst ties", "best ties", "chance"], rows)


def remarks(scores: Mapping[Any, Scores]) -> list[str]:
    """One line per direction: number of queries, queries left out, size of the database."""
    return [
        f"{direction or 'codes'}: {found.queries:,} queries, {found.dropped:,} dropped because nothing is relevant; "
        f"{found.database:,} database items; {found.bits} bits; {found.empty_within:.1%} of the queries have no "
        f"item within distance {found.definitions.radius}."
        for direction, found in scores.items()
    ]
