"""The `rmsh` command: a table of verbs, and one place where errors become a sentence and an exit code."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from rmsh import __version__
from rmsh.core.errors import InputError, RmshError

__all__ = ["app", "flowing", "main", "run"]

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
    "compare",
    "search",
    "serve",
    "recode",
    "doctor",
    "speed",
)
# Families of commands: name -> module with an `app` of its own.
GROUPS = ("data", "library")

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


def flowing(text: str | None) -> str:
    r"""A help text whose paragraphs wrap where the terminal ends; what is indented keeps its lines.

    Example:
        >>> flowing("One.\n\nTwo\nand more.\n\nExample:\n    rmsh two")
        'One.\n\nTwo and more.\n\nExample:\n    rmsh two'
    """
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(part if "\n " in part else part.replace("\n", " ") for part in paragraphs)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"rmsh {__version__}")
        raise typer.Exit


@app.callback()
def _before_any_command(
    version: Annotated[  # the parser acts on it
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None: ...


for verb in COMMANDS:
    module = importlib.import_module(f"rmsh.cli.{verb}")
    app.command(name=verb, help=flowing(module.__doc__))(getattr(module, verb))

for group in GROUPS:
    family: typer.Typer = importlib.import_module(f"rmsh.cli.{group}").app
    for command in family.registered_commands:
        command.help = flowing(command.help or getattr(command.callback, "__doc__", None))
    app.add_typer(family, name=group)


# Commands that were renamed: the old words keep working for one release.
RENAMED = {("benchmark",): ("compare",), ("bench", "search"): ("speed",)}
MOVED = {"reproduce": "the paper's tables and figures are made from a checkout: make paper ARGS=..."}


def _current(arguments: Sequence[str]) -> list[str]:
    """The arguments with a renamed command replaced, after a hint on standard error."""
    for old, new in RENAMED.items():
        if tuple(arguments[: len(old)]) == old:
            typer.echo(f"rmsh: `rmsh {' '.join(old)}` is now `rmsh {' '.join(new)}`.", err=True)
            return [*new, *arguments[len(old) :]]
    if arguments and arguments[0] in MOVED:
        raise InputError(f"`rmsh {arguments[0]}` has moved: {MOVED[arguments[0]]}.")
    return list(arguments)


def main() -> NoReturn:
    """The console script."""
    sys.exit(run())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; a refusal is one sentence on standard error and exit code 2."""
    try:
        code = app(_current(sys.argv[1:] if arguments is None else arguments), standalone_mode=False) or 0
        return _fail(_STOPPED, code) if code == _INTERRUPTED else code  # the parser passes Ctrl-C on as a number
    except RmshError as error:
        return _fail(str(error), error.exit_code)
    except OSError as error:
        return _fail(_explained(error), RmshError.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _fail(_STOPPED, _INTERRUPTED)
    except typer.Exit as leave:
        return leave.exit_code
    except Exception as error:
        return _usage(error)


def _fail(sentence: str, code: int) -> int:
    typer.echo(f"rmsh: {sentence}", err=True)
    return code


def _explained(error: OSError) -> str:
    """What the system refuses, such as a file that may not be read, or a folder in place of a file."""
    path = error.filename2 or error.filename  # the second is where something was to be moved to
    if path is None:
        raise error
    return f"{path} cannot be read or written ({error.strerror}); check it, or give another."


def _usage(error: Exception) -> int:
    """A wrong option or argument, as the command-line parser reports it; anything else is a bug and is raised."""
    show = getattr(error, "show", None)
    if show is None:
        raise error
    show()
    return int(getattr(error, "exit_code", 2))
