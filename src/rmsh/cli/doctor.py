"""Check the installation.

Lists versions, vector instructions, processors, extras and encoder weights, and runs a self-test that takes a few
seconds. Exits with code 1 if a check fails.

Example:
    rmsh doctor
"""

from __future__ import annotations

from dataclasses import asdict

import typer

from rmsh.cli.console import Console, table
from rmsh.core.errors import install_command


def doctor(console: Console) -> None:
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
