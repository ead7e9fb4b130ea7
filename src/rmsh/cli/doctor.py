"""Check the installation, and measure the search speed of this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from rmsh.cli.console import Console, listed_numbers, table
from rmsh.core.errors import install_command


def doctor(console: Console) -> None:
    """Check the installation.

    Lists versions, vector instructions, processors, extras and encoder weights, and runs a self-test that takes a few
    seconds. Exits with code 1 if a check fails.

    Example:
        rmsh doctor
    """
    from rmsh.doctor import MISSING, examine

    console.note("Running the self-test; this takes a few seconds.")
    report = examine()
    problems = report.problems()
    missing: dict[str, list[str]] = {}
    for package in report.packages:
        if package.extra and package.detail == MISSING:
            missing.setdefault(package.extra, []).append(package.name)
    title = f"rmsh {report.rmsh}, Python {report.python}, {report.platform}"
    rows = [[p.name, p.detail, p.extra or "core"] for p in report.packages]
    console.result(
        {"healthy": not problems, "problems": problems, **asdict(report)},
        table(title, ["package", "version", "part"], rows, words=("version", "part")),
        *(f"missing {', '.join(names)}: {install_command(extra)}" for extra, names in missing.items()),
        *(f"{name}: {value}" for name, value in report.machine.items()),
        f"encoder weights: {', '.join(f'{w.name} {w.detail}' for w in report.weights)}",
        *(f"check of {check.name}: {check.detail}" for check in report.checks),
    )
    if problems:
        typer.echo(f"rmsh: found problems: {'; '.join(problems)}.", err=True)
        raise typer.Exit(1)
    console.note("No problems found.")


def speed(
    console: Console,
    *,
    items: Annotated[int, typer.Option(min=1, help="Number of codes in the database.")] = 1_000_000,
    bits: Annotated[int, typer.Option(help="Code length, 1 to 512.")] = 64,
    batch: Annotated[
        list[str] | None, typer.Option(metavar="N,N,...", help="Queries per batch (default: 1,32,1000).")
    ] = None,
    k: Annotated[int, typer.Option("-k", "--k", min=1, help="Number of neighbours.")] = 100,
    threads: Annotated[int, typer.Option(min=1, help="Number of threads.")] = 1,
) -> None:
    """Measure the search speed of this machine.

    The index of a library searches random codes. In a checkout, `make lab ARGS="engines"` compares it with other
    indexes and libraries and with the speed of memory, on other codes too.

    Example:
        rmsh speed --items 1000000 --bits 64 --batch 1,32
    """
    from rmsh.index.speed import BATCHES, measure

    rates = measure(items, bits, batches=listed_numbers(batch, "--batch") or BATCHES, k=k, threads=threads)
    title = f"Exact search for the {k} nearest of {items:,} codes of {bits} bits"
    console.result(
        {"items": items, "bits": bits, "threads": threads, "k": k, "queries_per_second": rates},
        table(title, ["queries per batch", "queries/s"], [[batch, f"{rate:,.0f}"] for batch, rate in rates.items()]),
    )
