"""Measure the search speed of this machine.

The index of a library searches random codes. In a checkout, `make lab ARGS="engines"` compares it with other indexes
and libraries and with the speed of memory, on other codes too.

Example:
    rmsh speed --items 1000000 --bits 64 --batch 1 --batch 32
"""

from __future__ import annotations

from typing import Annotated

import typer

from rmsh.cli.console import Console, table


def speed(
    console: Console,
    *,
    items: Annotated[int, typer.Option(min=1, help="Number of codes in the database.")] = 1_000_000,
    bits: Annotated[int, typer.Option(help="Code length, 1 to 512.")] = 64,
    batch: Annotated[
        list[int] | None, typer.Option(min=1, help="Queries per batch; repeatable (default: 1, 32, 1000).")
    ] = None,
    k: Annotated[int, typer.Option(min=1, help="Number of neighbours.")] = 100,
    threads: Annotated[int, typer.Option(min=1, help="Number of threads.")] = 1,
) -> None:
    from rmsh.index.speed import measure

    with console.progress() as report:
        rates = measure(items, bits, batches=batch or [1, 32, 1000], k=k, threads=threads, on_progress=report)
    title = f"Exact search for the {k} nearest of {items:,} codes of {bits} bits"
    console.result(
        {"items": items, "bits": bits, "threads": threads, "k": k, "queries_per_second": rates},
        table(title, ["queries per batch", "queries/s"], [[batch, f"{rate:,.0f}"] for batch, rate in rates.items()]),
    )
