"""The tasks behind make: when they install, what they print, how they end."""

from __future__ import annotations

import importlib.util
import itertools
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/tasks.py as it is."""
    spec = importlib.util.spec_from_file_location("rmsh_tasks", PROJECT / "tools" / "tasks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "rmsh_tasks", module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tasks(script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """tools/tasks.py on a small project: programs are noted in `ran` and end as `exit_codes` says of their module."""
    (tmp_path / ".venv").mkdir()
    for name in script.PINNED_BY:
        (tmp_path / name).write_text(name)
    ran: list[list[str]] = []

    def run(command: list[str]) -> int:
        ran.append(command)
        return int(script.exit_codes.get(command[2], 0))

    monkeypatch.setattr(script, "PROJECT", tmp_path)
    monkeypatch.setattr(script, "ran", ran, raising=False)
    monkeypatch.setattr(script, "exit_codes", {}, raising=False)
    monkeypatch.setattr(script, "run", run)
    return script


def test_the_first_task_creates_the_environment_and_installs_with_constraints(tasks: ModuleType) -> None:
    assert tasks.main(["setup"]) == 0
    created, installed = tasks.ran
    assert created == [sys.executable, "-m", "venv", str(tasks.PROJECT / ".venv")]
    assert installed[1:] == ["-m", "pip", "install", "-c", "constraints.txt", "-e", ".[dev]"]


def test_the_size_is_printed_before_anything_is_installed(tasks: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    tasks.exit_codes = {"venv": 9}
    assert tasks.main(["demo"]) == 9
    said = capfd.readouterr()
    assert re.search(r"MB to download, [\d.]+ GB on disk", said.out)
    assert "creating .venv ended with exit code 9" in said.err


def test_a_second_task_installs_nothing(tasks: ModuleType) -> None:
    tasks.main(["setup"])
    tasks.ran.clear()
    assert tasks.main(["setup"]) == tasks.main(["demo"]) == 0
    assert [command[1:] for command in tasks.ran] == [["-m", "lab.demo"]]


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_changed_requirement_installs_again(tasks: ModuleType, name: str) -> None:
    tasks.install(tasks.PROJECT, "dev")
    assert tasks.is_installed(tasks.PROJECT, "dev")
    (tasks.PROJECT / name).write_text("changed")
    assert not tasks.is_installed(tasks.PROJECT, "dev")


def test_what_the_demo_installs_is_not_enough_for_the_tests(tasks: ModuleType) -> None:
    tasks.install(tasks.PROJECT, tasks.DEMO)
    assert tasks.is_installed(tasks.PROJECT, tasks.DEMO)
    assert not tasks.is_installed(tasks.PROJECT, "dev")


def test_a_failed_install_is_tried_again(tasks: ModuleType) -> None:
    tasks.install(tasks.PROJECT, tasks.DEMO)
    tasks.exit_codes = {"pip": 3}
    assert tasks.main(["test"]) == 3
    assert not tasks.is_installed(tasks.PROJECT, tasks.DEMO)


def test_every_step_runs_and_the_first_failure_is_the_exit_code(
    tasks: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    tasks.install(tasks.PROJECT, "dev")
    tasks.ran.clear()
    tasks.exit_codes = {"mypy": 4, "pytest": 5}
    assert tasks.main(["test"]) == 4
    assert [command[2] for command in tasks.ran] == ["ruff", "ruff", "mypy", "pytest"]
    summary = capfd.readouterr().out.splitlines()[-1]
    assert re.fullmatch(
        r"== failed: format [\d.]+ s; lint [\d.]+ s; types FAILED, [\d.]+ s; tests FAILED, [\d.]+ s", summary
    )


def test_further_arguments_go_to_the_last_step(tasks: ModuleType) -> None:
    tasks.install(tasks.PROJECT, "dev")
    tasks.ran.clear()
    tasks.main(["check", "-k", "codes", "--help"])
    assert tasks.ran[0][2:] == ["ruff", "format", "--check", "."]
    assert tasks.ran[-1][2:] == ["pytest", "-m", "not slow", "-k", "codes", "--help"]


def test_setup_takes_no_arguments(tasks: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    assert tasks.main(["setup", "quality"]) == 2
    assert "setup got 'quality', and takes no arguments" in capfd.readouterr().err
    assert tasks.ran == []


def test_an_old_python_is_refused_with_a_sentence(tasks: ModuleType) -> None:
    with pytest.raises(tasks.TaskError, match=r"this is Python 3\.9 and rmsh needs 3\.11 or newer"):
        tasks.check_version((3, 9))
    tasks.check_version((3, 11))


def test_an_interruption_ends_with_130(tasks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(command: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(tasks, "run", interrupted)
    assert tasks.main(["test"]) == 130


def test_on_windows_the_interpreter_is_in_another_folder(tasks: ModuleType) -> None:
    assert tasks.venv_python(Path("v"), "nt") == Path("v/Scripts/python.exe")
    assert tasks.venv_python(Path("v"), "posix") == Path("v/bin/python")


def test_programs_run_in_the_project_and_their_exit_code_is_returned(script: ModuleType) -> None:
    program = "import os, sys; sys.exit(7 * os.path.exists('pyproject.toml'))"
    assert script.run([sys.executable, "-c", program]) == 7


def test_an_environment_without_pip_is_recreated(script: ModuleType, tmp_path: Path) -> None:
    assert script._has_pip(Path(sys.executable))
    assert not script._has_pip(tmp_path / "python")


def test_every_test_that_needs_a_milvus_server_is_run_with_one(tasks: ModuleType) -> None:
    marked = {path for path in (PROJECT / "tests").rglob("test_*.py") if "mark.milvus" in path.read_text()}
    assert {path.relative_to(PROJECT).as_posix() for path in marked - {Path(__file__)}} == set(tasks.MILVUS_TESTS)


def test_make_has_every_task(tasks: ModuleType) -> None:
    targets = re.search(r"^(?!help)([\w -]+):$", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    assert targets is not None
    assert set(targets[1].split()) == set(tasks.TASKS)


def test_constraints_pin_every_dependency_inside_its_range() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", (PROJECT / "constraints.txt").read_text(), re.MULTILINE))
    entries = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    wanted = [requirement for requirement in map(Requirement, entries) if requirement.name != "rmsh"]
    assert [str(one) for one in wanted if not one.specifier.contains(pins[one.name.lower()])] == []
    assert pins["torch"] == "2.13.0"
