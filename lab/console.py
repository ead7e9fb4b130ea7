"""Runs the lab's command lines: a refused input becomes one sentence on standard error and an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from rmsh.core.errors import RmshError

if TYPE_CHECKING:
    from rmsh.compare.runner import Report

Only = Annotated[str, typer.Option(metavar="REGEX", help="Only run cases whose name matches.")]
Tables = Annotated[bool, typer.Option("--tables", help="Run nothing; print the existing results.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]


def new_app(help_text: str) -> typer.Typer:
    """An app with the settings of all command lines of the lab."""
    return typer.Typer(
        help=help_text,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )


def run(app: typer.Typer, name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    try:
        app(arguments, prog_name=name)
    except SystemExit as leave:
        return int(leave.code or 0)
    except RmshError as error:
        typer.echo(f"{name}: {error}", err=True)
        return error.exit_code
    return 0


def run_line(report: Report) -> str:
    """A line about a run that has ended."""
    ending = report.result["status"] + (f": {report.result['error']}" if "error" in report.result else "")
    left = f"; about {report.seconds_left / 60:.0f} min left" if report.seconds_left else ""
    return f"{report.done}/{report.total} {report.run.path} {ending}{left}"
