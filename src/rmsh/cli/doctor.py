"""Check the installation.

Lists versions, vector instructions, threads, extras and encoder weights, and runs a self-test that takes a few
seconds. Exits with code 1 if a check fails.

Example:
    rmsh doctor
"""

from __future__ import annotations

from dataclasses import asdict

import typer

from rmsh.cli.console import Console, Json, Quiet, table
from rmsh.core.errors import install_command


def doctor(json: Json = False, quiet: Quiet = False) -> None:
    from rmsh.doctor import examine

    console = Console(json=json, quiet=quiet)
    console.note("Running the self-test; this takes a few seconds.")
    report = examine()
    problems = report.problems()
    value = {"healthy": not problems, "problems": problems, **asdict(report)}
    title = f"rmsh {report.rmsh}, Python {report.python}, {report.platform}"
    rows = [[p.name, p.version or "missing", p.extra or "core"] for p in report.packages]
    threads = [f"{name} {count or 'unknown'}" for name, count in report.threads.items()]
    weights = [f"{w.name} {'present' if w.present else 'absent'}" for w in report.weights]
    missing = report.missing_extras().items()
    console.result(
        value,
        table(title, ["package", "version", "part"], rows, words=("version", "part")),
        *(f"missing {', '.join(names)}: {install_command(extra)}" for extra, names in missing),
        f"vector instructions: {', '.join(report.processor['simd'])}; matrix products: {report.processor['blas']}",
        f"threads: {', '.join(threads)}",
        f"encoder weights: {', '.join(weights)}",
        *(f"{'passed' if c.passed else 'FAILED'} {c.name} in {c.seconds:.2f} s: {c.detail}" for c in report.checks),
    )
    if problems:
        typer.echo(f"rmsh: found problems: {'; '.join(problems)}.", err=True)
        raise typer.Exit(1)
    console.note("No problems found.")
