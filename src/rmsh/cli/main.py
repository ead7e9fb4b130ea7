"""The `rmsh` command: a table of verbs, and one place where errors become a sentence and an exit code."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

import typer

from rmsh.errors import RmshError

__all__ = ["app", "main", "run"]

# One thin command an arrow: verb -> module with a function of the same name.
COMMANDS = (
    "build",
    "add",
    "remove",
    "bounds",
    "methods",
    "train",
    "encode",
    "evaluate",
    "audit",
    "benchmark",
    "reproduce",
    "search",
    "serve",
    "recode",
    "doctor",
)
# Families of commands: name -> module with an `app` of its own.
GROUPS = ("bench", "data", "library")

_INTERRUPTED = 130
_STOPPED = "stopped; run the same command again to go on."

app = typer.Typer(
    name="rmsh",
    help="Learn codes for pictures and texts, so that one finds the other by Hamming distance.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

for verb in COMMANDS:
    module = importlib.import_module(f"rmsh.cli.{verb}")
    app.command(name=verb, help=module.__doc__)(getattr(module, verb))

for group in GROUPS:
    app.add_typer(importlib.import_module(f"rmsh.cli.{group}").app, name=group)


def main() -> NoReturn:
    """The console script."""
    sys.exit(run())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; a refusal is one sentence on standard error and exit code 2."""
    try:
        code = app(arguments, standalone_mode=False) or 0
        return _fail(_STOPPED, code) if code == _INTERRUPTED else code  # the parser passes Ctrl-C on as a number
    except RmshError as error:
        return _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _fail(_STOPPED, _INTERRUPTED)
    except typer.Exit as leave:
        return leave.exit_code
    except Exception as error:
        return _usage(error)


def _fail(sentence: str, code: int) -> int:
    typer.echo(f"rmsh: {sentence}", err=True)
    return code


def _usage(error: Exception) -> int:
    """A wrong option or argument, as the command-line parser reports it; anything else is a bug and is raised."""
    show = getattr(error, "show", None)
    if show is None:
        raise error
    show()
    return int(getattr(error, "exit_code", 2))
