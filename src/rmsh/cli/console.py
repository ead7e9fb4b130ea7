"""Terminal output: results go to standard output, notes and progress to standard error.

``--json`` prints the result as one JSON value and nothing else on standard output; ``--quiet`` suppresses notes and
progress. Progress is shown only on a terminal.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin

import typer
from rich.console import Console as RichConsole
from rich.markup import escape
from rich.table import Table
from typer.models import OptionInfo

from rmsh.core.errors import ConfigError
from rmsh.core.files import printable
from rmsh.core.progress import OnProgress, Progress, ignore

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Print neither notes nor progress.")]
ExecutorName: TypeAlias = Annotated[str | None, typer.Option("--executor", help="Use processes, processes:N or ray.")]
RayAddress: TypeAlias = Annotated[str | None, typer.Option("--address", help="HOST:PORT of Ray (default: local).")]
LibraryFolder: TypeAlias = Annotated[Path, typer.Argument(metavar="LIBRARY", help="Library folder.")]


class Console:
    """The output of one command."""

    def __init__(self, *, json: bool = False, quiet: bool = False) -> None:
        self.json = json
        self.quiet = quiet
        self._out = RichConsole(highlight=False, soft_wrap=True)
        self._err = RichConsole(stderr=True, highlight=False, soft_wrap=True)

    def note(self, *lines: str) -> None:
        """Print lines on standard error, unless quiet."""
        if not self.quiet:
            for line in lines:
                self._err.print(escape(printable(line)))

    def result(self, value: Mapping[str, Any], *readable: str | Table) -> None:
        """Print ``value`` as JSON with --json, and the readable form otherwise."""
        if self.json:
            typer.echo(printable(json.dumps(value, ensure_ascii=False, allow_nan=False)))
            return
        for part in readable:
            self._out.print(escape(printable(part)) if isinstance(part, str) else part)

    @contextmanager
    def progress(self) -> Iterator[OnProgress]:
        """Yield a callback that shows progress and the time left on a terminal, and does nothing elsewhere."""
        if self.quiet or not self._err.is_terminal:
            yield ignore
            return
        with self._err.status("starting") as status:
            yield lambda progress: status.update(_line(progress))


_VALUES = {int: "N", float: "NUMBER", str: "NAME", Path: "PATH"}  # in help


def _value(kind: Any) -> str | None:
    """The name of an option's value in help, such as PATH for ``list[Path] | None``."""
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    return _VALUES.get(kind) or next((name for part in get_args(kind) if (name := _value(part))), None)


def with_console(function: Callable[..., None]) -> Callable[..., None]:
    """Add --json and --quiet to a command whose first parameter is the console that they describe."""
    signature = inspect.signature(function, eval_str=True)

    @wraps(function)
    def run(*, json: bool, quiet: bool, **options: Any) -> None:
        function(Console(json=json, quiet=quiet), **options)

    kinds = {"json": Json, "quiet": Quiet}
    new = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=k) for n, k in kinds.items()]
    _, *own = signature.parameters.values()
    for parameter in own:  # help shows `--bits N`, not `--bits <int>`, and `--strict`, not `--strict / --no-strict`
        kind, option = get_args(parameter.annotation)
        if isinstance(option, OptionInfo) and kind is not bool:
            option.metavar = option.metavar or _value(kind)
        elif isinstance(option, OptionInfo) and option.default is ...:  # which may be the name of a flag
            option.param_decls = (f"--{parameter.name.replace('_', '-')}",)
    run.__signature__ = signature.replace(parameters=[*own, *new])  # type: ignore[attr-defined]
    return run


def listed_words(words: Sequence[str] | None) -> list[str]:
    """The parts of a list that is written with commas, or by repeating its option."""
    return [part.strip() for word in words or () for part in word.split(",") if part.strip()]


def listed_numbers(words: Sequence[str] | None, option: str) -> list[int]:
    """The numbers of a list; a ConfigError names the option."""
    numbers = listed_words(words)
    if wrong := [word for word in numbers if not word.isdecimal()]:
        raise ConfigError(f"{option} got {wrong[0]!r}; write whole numbers with commas, such as {option} 16,32.")
    return [int(word) for word in numbers]


def _line(progress: Progress) -> str:
    left = progress.seconds_left
    time_left = "" if left is None else f", {duration(left)} left"
    values = "  ".join(f"{name} {value:.4g}" for name, value in progress.values.items())
    return f"{progress.stage}: {progress.unit} {progress.done}/{progress.total}{time_left}  {values}"


def duration(seconds: float) -> str:
    """Format seconds for people.

    Example:
        >>> duration(75), duration(3), duration(7300)
        ('1 min 15 s', '3 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, words: Collection[str] = ()
) -> Table:
    """Build a table: the first column and those in ``words`` are aligned left, numbers right."""
    built = Table(title=escape(printable(title)), title_justify="left")
    for position, column in enumerate(columns):
        built.add_column(column, justify="left" if position == 0 or column in words else "right")
    for row in rows:
        built.add_row(*(escape(printable(str(cell))) for cell in row))
    return built
