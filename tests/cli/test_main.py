"""The `rmsh` command: errors become one sentence and an exit code, results and notes go apart."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn

import pytest
import typer

from rmsh.cli import main as main_module
from rmsh.cli.main import COMMANDS, app, main, run
from rmsh.errors import DataError, TrainingError

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


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (DataError("a.npz: no ids."), 2, "rmsh: a.npz: no ids.\n"),
        (TrainingError("the loss is not a number."), 1, "rmsh: the loss is not a number.\n"),
        (KeyboardInterrupt(), 130, "rmsh: stopped; run the same command again to go on.\n"),
        (typer.Abort(), 130, "rmsh: stopped; run the same command again to go on.\n"),
        (typer.Exit(3), 3, ""),
    ],
    ids=["refusal", "failed learning", "interruption", "abort", "chosen exit code"],
)
def test_an_error_is_one_sentence_and_an_exit_code(
    error: BaseException, code: int, sentence: str, *, fail_with: FailWith, capsys: Capture
) -> None:
    fail_with(error)
    assert run([]) == code
    assert capsys.readouterr() == ("", sentence)


def test_a_bug_is_not_dressed_up(fail_with: FailWith) -> None:
    fail_with(ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError):
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
