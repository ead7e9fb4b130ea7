"""The `rmsh` command: its subcommands, and the translation of errors into one sentence and an exit code."""

from __future__ import annotations

import importlib
import inspect
import json
import platform
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer
import typer.core

from rmsh import __version__
from rmsh.cli.console import with_console
from rmsh.core.errors import RmshError
from rmsh.core.files import printable

# Modules and their commands, which are functions of the same name; the help is the docstring of either.
MODULES = {
    "build": ("build", "add", "remove", "recode", "sync", "duplicates"),
    "train": ("bounds", "methods", "train", "encode"),
    "evaluate": ("evaluate", "audit", "compare"),
    "search": ("search", "serve"),
    "doctor": ("doctor",),
}
COMMANDS = [verb for verbs in MODULES.values() for verb in verbs]
# Commands of two words, in modules named by the first word.
GROUPS = {"library": tuple("info verify compact backup restore repair relocate upgrade export load push".split())}  # noqa: SIM905

_INTERRUPTED = 130
_STOPPED = "stopped; run the same command again to continue."

_SETTINGS: dict[str, Any] = {"no_args_is_help": True, "rich_markup_mode": None}
app = typer.Typer(
    name="rmsh",
    help="Learn binary codes for images and texts, and search one with the other by Hamming distance.",
    pretty_exceptions_enable=False,
    **_SETTINGS,
)


class _Command(typer.core.TyperCommand):
    """A command whose help names arguments plainly, without Python types and ranges such as x>=1."""

    def __init__(self, *parts: Any, **named: Any) -> None:
        super().__init__(*parts, **named)
        for part in self.params:
            part._get_number_range_help_str = lambda: None  # type: ignore[attr-defined]
            if part.param_type_name == "argument":
                part.display_type_rich = lambda **_: None  # type: ignore[attr-defined]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [re.sub(r"[{}]|(?<=\.\.\.)\.+", "", piece) for piece in super().collect_usage_pieces(ctx)]


def flowing(text: str | None) -> str:
    r"""Let paragraphs wrap at the terminal's width, and keep the lines of indented examples.

    Example:
        >>> flowing("One.\n\nTwo\nand more.\n\nExample:\n    rmsh two")
        'One.\n\nTwo and more.\n\n\x08\nExample:\n    rmsh two'
    """
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    # click keeps the lines of a paragraph that starts with a backspace character.
    return "\n\n".join(f"\b\n{part}" if "\n " in part else part.replace("\n", " ") for part in paragraphs)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Show the version as JSON.")] = False,
) -> None:
    if version:
        about = {"rmsh": __version__, "python": platform.python_version()}
        typer.echo(json.dumps(about) if as_json else f"rmsh {__version__}")
        raise typer.Exit
    if as_json or context.invoked_subcommand is None:
        context.fail("Give a command, and --json after it, as in: rmsh methods --json.")


for name, verbs in (MODULES | GROUPS).items():
    module = importlib.import_module(f"rmsh.cli.{name}")
    family = typer.Typer(help=flowing(module.__doc__), **_SETTINGS) if name in GROUPS else app
    for verb in verbs:
        function = getattr(module, verb)
        text = flowing(function.__doc__ or module.__doc__)
        summary = text.partition("\n")[0]  # which click would cut
        family.command(name=verb, cls=_Command, help=text, short_help=summary)(with_console(function))
    if name in GROUPS:
        app.add_typer(family, name=name)


def main() -> NoReturn:
    """The console script."""
    sys.exit(run())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; an error is one sentence on standard error."""
    try:
        code = app(sys.argv[1:] if arguments is None else list(arguments), standalone_mode=False) or 0
        return _fail(_STOPPED, code) if code == _INTERRUPTED else code  # click returns Ctrl-C as an exit code
    except RmshError as error:
        return _fail(str(error), error.exit_code)
    except OSError as error:
        path = error.filename2 or error.filename  # filename2 is the target of a rename
        if path is None:  # a bug
            raise
        sentence = f"{path} cannot be read or written ({error.strerror}); check it, or choose another path."
        return _fail(sentence, RmshError.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _fail(_STOPPED, _INTERRUPTED)
    except typer.Exit as leave:
        return leave.exit_code
    except Exception as error:
        if not hasattr(error, "show"):  # a bug; the parser's errors know how to show themselves
            raise
        error.show()
        return int(getattr(error, "exit_code", 2))


def _fail(sentence: str, code: int) -> int:
    typer.echo(f"rmsh: {printable(sentence)}", err=True)
    return code
