"""Measure search speed on this machine against other engines.

The engines answer the same queries in turn, and their results are compared. The engine "memory" only reads all codes
once per batch: no scan for a single query can be faster. Codes are clustered, uniform, or those of a codes file
multiplied by adding noise.

Example:
    rmsh speed --items 1000000 --bits 64 --batch 1 --batch 32
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rmsh.cli.console import Console, Json, Quiet, table


def speed(
    *,
    items: Annotated[int, typer.Option(min=1, help="Number of codes in the database.")] = 1_000_000,
    bits: Annotated[int, typer.Option(help="Code length, 1 to 512.")] = 64,
    kind: Annotated[str, typer.Option(help="Distribution of the codes: clustered or uniform.")] = "clustered",
    codes: Annotated[Path | None, typer.Option(help="Codes file to enlarge with noise instead.")] = None,
    batch: Annotated[
        list[int] | None, typer.Option(min=1, help="Queries per batch; repeatable (default: 1, 32, 1000).")
    ] = None,
    k: Annotated[int, typer.Option(min=1, help="Number of neighbours.")] = 100,
    threads: Annotated[int, typer.Option(min=1, help="Threads per engine.")] = 1,
    engine: Annotated[
        list[str] | None, typer.Option(help="Engine to measure; repeatable (default: all installed).")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    from rmsh.index.speed import enlarge, generate, installed, measure, read_words

    console = Console(json=json, quiet=quiet)
    if codes is None:
        words, queries = generate(kind, items, bits), generate(kind, 1000, bits, seed=1)
    else:
        stored, bits = read_words(codes)
        words, queries = enlarge(stored, items, bits=bits), enlarge(stored, 1000, bits=bits, seed=1)
    console.note(f"{items:,} {'learned' if codes else kind} codes of {bits} bits; the engines take turns.")
    with console.progress() as report:
        measured = measure(
            words,
            queries,
            bits=bits,
            engines=engine or installed(),
            batches=batch or [1, 32, 1000],
            k=k,
            threads=threads,
            on_progress=report,
        )
    rows = [[m.engine, m.batch, f"{m.queries_per_second:,.0f}", f"{m.seconds_to_build:.1f}", m.note] for m in measured]
    console.result(
        {"items": items, "bits": bits, "threads": threads, "k": k, "measured": [m.to_json() for m in measured]},
        table("Exact search", ["engine", "batch", "queries/s", "seconds to build", "note"], rows, words=("note",)),
    )
