"""The `rmsh` command: errors become one sentence and an exit code, results and notes go apart."""

from __future__ import annotations

import ast
import errno
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
import typer
import typer.main
from typer.testing import CliRunner

from rmsh import __version__
from rmsh.cli import main as main_module
from rmsh.cli.main import COMMANDS, GROUPS, app, main, run
from rmsh.core.errors import DataError, TrainingError

Capture = pytest.CaptureFixture[str]
FailWith = Callable[[BaseException], None]


@pytest.fixture
def fail_with(monkeypatch: pytest.MonkeyPatch) -> FailWith:
    """Make the whole command raise an error."""

    def replace(error: BaseException) -> None:
        def raise_it(*_: object, **__: object) -> NoReturn:
            raise error

        monkeypatch.setattr(main_module, "app", raise_it)

    return replace


def test_help_lists_every_command(capsys: Capture) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr()
    assert [verb for verb in COMMANDS if verb not in shown.out] == []
    assert shown.err == ""


@pytest.mark.parametrize("verb", COMMANDS)
def test_every_command_explains_itself_and_has_json_and_quiet(verb: str, capsys: Capture) -> None:
    assert run([verb, "--help"]) == 0
    shown = capsys.readouterr().out
    assert [word for word in ("Example:", "--json", "--quiet") if word not in shown] == []


LINES = [(verb,) for verb in COMMANDS] + [(group, verb) for group, verbs in GROUPS.items() for verb in verbs]


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_help_shows_neither_python_types_nor_opposites_of_flags(words: tuple[str, ...], capsys: Capture) -> None:
    assert run([*words, "--help"]) == 0
    usage, _, rest = capsys.readouterr().out.partition("\n")
    assert not re.search(r"[{}a-z]\b", usage.partition("[OPTIONS]")[2])
    assert not re.search(r"<\w+|/ --no-|x[<>]=|(--[\w-]+), \1", rest)


def test_no_summary_of_a_command_is_cut(capsys: Capture) -> None:
    for group in ([], *([name] for name in GROUPS)):
        assert run([*group, "--help"]) == 0
        assert "..." not in capsys.readouterr().out.partition("Commands:")[2]


def test_the_version_is_printed(capsys: Capture) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr() == (f"rmsh {__version__}\n", "")


@pytest.mark.parametrize("words", [["build"], ["library", "push"], ["audit"]], ids=" ".join)
def test_paragraphs_of_help_wrap_at_the_width_of_the_terminal(words: list[str]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "70"}).stdout
    prose = [line.strip() for line in shown.partition("Example:")[0].splitlines()[3:]]
    paragraphs = [part.split("\n") for part in "\n".join(prose).strip().split("\n\n")]
    assert max(map(len, paragraphs)) > 2
    assert all(len(line) > 50 for lines in paragraphs for line in lines[:-1])


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (DataError("a.npz: no ids."), 2, "rmsh: a.npz: no ids.\n"),
        (TrainingError("the loss is not a number."), 1, "rmsh: the loss is not a number.\n"),
        (
            PermissionError(errno.EACCES, "Permission denied", "a.csv"),
            2,
            "rmsh: a.csv cannot be read or written (Permission denied); check it, or choose another path.\n",
        ),
        (
            IsADirectoryError(errno.EISDIR, "Is a directory", ".b.tmp", None, "b"),
            2,
            "rmsh: b cannot be read or written (Is a directory); check it, or choose another path.\n",
        ),
        (KeyboardInterrupt(), 130, "rmsh: stopped; run the same command again to continue.\n"),
        (typer.Abort(), 130, "rmsh: stopped; run the same command again to continue.\n"),
        (typer.Exit(3), 3, ""),
    ],
    ids=[
        "refusal",
        "failed learning",
        "forbidden file",
        "folder for a file",
        "interruption",
        "abort",
        "chosen exit code",
    ],
)
def test_an_error_is_one_sentence_and_an_exit_code(
    error: BaseException, code: int, sentence: str, *, fail_with: FailWith, capsys: Capture
) -> None:
    fail_with(error)
    assert run([]) == code
    assert capsys.readouterr() == ("", sentence)


def test_a_bug_is_shown_with_its_traceback(fail_with: FailWith) -> None:
    for bug in (ZeroDivisionError("a bug"), OSError("of no file")):
        fail_with(bug)
        with pytest.raises(type(bug)):
            run([])


@pytest.mark.parametrize("arguments", [["docter"], ["doctor", "--jsno"]], ids=["command", "option"])
def test_an_unknown_command_or_option_is_named(arguments: list[str], capsys: Capture) -> None:
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert arguments[-1] in shown.err


def test_the_console_script_takes_its_arguments_from_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(sys, "argv", ["rmsh", "docter"])
    with pytest.raises(SystemExit) as leave:
        main()
    assert leave.value.code == 2
    assert "docter" in capsys.readouterr().err


def test_every_command_is_registered_once() -> None:
    assert [command.name for command in app.registered_commands] == list(COMMANDS)


def _options(command: Any) -> set[str]:
    """All options of a command and of the commands below it."""
    own = {option for part in command.params for option in (*part.opts, *part.secondary_opts)}
    return own.union(*map(_options, getattr(command, "commands", {}).values()), {"--help"})


def _sentences() -> Iterator[tuple[str, str]]:
    """The strings of the sources that are not arguments of other programs, with the file of each."""
    root = Path(main_module.__file__).parents[1]
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield path.name, "".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield path.name, node.value


def test_every_option_in_a_message_exists() -> None:
    command = typer.main.get_command(app)
    known, unknown, seen = _options(command), [], 0
    for file, text in _sentences():
        named = re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)
        seen += len(named)
        unknown += [(file, option) for option in named if option not in known]
        for verb, option in re.findall(r"`rmsh (\w+)[^`]* (--[a-z-]+)", text):
            if verb in command.commands and option not in _options(command.commands[verb]):  # type: ignore[attr-defined]
                unknown.append((file, f"{verb} {option}"))
    assert seen > 40
    assert unknown == []
