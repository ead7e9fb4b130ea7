"""Measure this machine: how fast codes are searched, beside other engines and the limit of memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmsh.cli.console import Console, Json, Quiet, table

if TYPE_CHECKING:
    from rmsh.codes import Codes

__all__ = ["app", "search"]

app = typer.Typer(help=__doc__, no_args_is_help=True)

_SEARCH = """Time exact search for the k nearest: our scan and multi-index hashing beside faiss and usearch.

Engines answer the same queries in turns, and their answers are compared. Codes are clustered, uniform, or those of a
codes file made more by noise.

Example:
    rmsh bench search --items 1000000 --bits 64 --batch 1 --batch 32
"""


@app.command(help=_SEARCH)
def search(
    *,
    items: Annotated[int, typer.Option(min=1, help="How many codes are searched.")] = 1_000_000,
    bits: Annotated[int, typer.Option(help="Length of a code, 1 to 512.")] = 64,
    kind: Annotated[str, typer.Option(help="clustered or uniform.")] = "clustered",
    codes: Annotated[Path | None, typer.Option(help="A codes file whose codes are made more by noise.")] = None,
    batch: Annotated[list[int] | None, typer.Option(min=1, help="Queries asked at once: 1, 32 and 1000.")] = None,
    k: Annotated[int, typer.Option(min=1, help="How many neighbours.")] = 100,
    threads: Annotated[int, typer.Option(min=1, help="Threads an engine may use.")] = 1,
    engine: Annotated[list[str] | None, typer.Option(help="Which engines: all that are installed.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    from rmsh.index.benchmark import bandwidth, installed, measure

    console = Console(json=json, quiet=quiet)
    database, queries = _codes(kind, codes, items=items, bits=bits)
    limit = bandwidth(database, threads)
    what = "learned" if codes else kind
    console.note(f"{items:,} {what} codes of {database.bits} bits; memory gives {limit / 1e9:.1f} GB/s.")
    with console.progress() as report:
        measured = measure(
            database,
            queries,
            engines=engine or installed(),
            batches=batch or [1, 32, 1000],
            k=k,
            threads=threads,
            on_progress=report,
        )
    scan_bytes = len(database) * database.words().shape[1] * 8
    rows = [
        [m.engine, m.batch, f"{m.queries_per_second:,.0f}", f"{m.seconds_to_build:.1f}", f"{share:.0%}"]
        for m in measured
        for share in [m.queries_per_second * scan_bytes / limit]
    ]
    console.result(
        {"items": items, "bits": database.bits, "threads": threads, "k": k, "bytes_per_second": limit}
        | {"measured": [m.to_json() for m in measured]},
        table("Exact search", ["engine", "batch", "queries/s", "seconds to build", "of one reading a query"], rows),
    )


def _codes(kind: str, codes: Path | None, *, items: int, bits: int) -> tuple[Codes, Codes]:
    """The codes that are searched, and a thousand queries of the same kind."""
    from rmsh.index.made_codes import from_file, made

    make = made(kind, bits) if codes is None else from_file(codes)
    return make(items, 0), make(1000, 1)
