"""What `make` runs, and what Windows users run without it: python tools/tasks.py demo, test, check, lab.

Each task first sees to its environment, `.venv` for most: it is created where absent, and installed into when
`pyproject.toml` or `constraints.txt` changed since the last time. Only the standard library is used. Which package
index is asked is pip's own business: its configuration files and environment variables decide.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
MINIMUM = (3, 11)
STAMP = "rmsh-install.json"  # in an environment
PINNED_BY = ("pyproject.toml", "constraints.txt")

# What an install brings: download and disk space of x86-64 Linux with torch's CPU build.
DEMO = "train,encoders,scenes,serve"
RAY = "train,encoders,scenes,ray"
HUB = "train,encoders,scenes,serve,hub"
SIZES = {
    DEMO: "numpy, scipy, numba, pyarrow, torch, onnxruntime, two encoders, icons, a small server and what they need: "
    "about 560 MB to download, 1.9 GB on disk",
    "dev": "rmsh with every extra, and the tools that check it: about 770 MB to download, 2.7 GB on disk",
    RAY: "rmsh with torch, two encoders and Ray: about 560 MB to download, 2.2 GB on disk",
    HUB: "rmsh with torch, two encoders, timm, open_clip, sentence-transformers and transformers: about 560 MB to "
    "download, 2.0 GB on disk",
}
CUDA = "On Linux, PyPI's torch brings CUDA libraries, several GB more, unless pip is set to an index of CPU builds."


@dataclass(frozen=True)
class Task:
    """What a task does: its help, the extras it needs, its steps (name, arguments of Python), its environment."""

    help: str
    extra: str
    steps: tuple[tuple[str, tuple[str, ...]], ...] = ()
    venv: str = ".venv"


LINT = (
    ("format", ("-m", "ruff", "format", "--check", ".")),
    ("lint", ("-m", "ruff", "check", ".")),
    ("types", ("-m", "mypy")),
)
MILVUS_TESTS = (
    "tests/milvus/test_collection.py",
    "tests/milvus/test_push.py",
    "tests/milvus/test_ranking.py",
    "tests/milvus/test_restart.py",
    "tests/milvus/test_table.py",
    "tests/serve/test_milvus.py",
    "tests/browser/test_milvus.py",
)
TASKS = {
    "demo": Task(
        "build a library of drawn scenes, print scores and searches, and serve it; SERVE=0 leaves the serving out",
        DEMO,
        (("demo", ("-m", "lab.demo")),),
    ),
    "test": Task("run every check: format, lint, types, all tests", "dev", (*LINT, ("tests", ("-m", "pytest")))),
    "test-milvus": Task(
        "run the tests that ask a Milvus server: one of its own, or that of MILVUS_URI",
        "dev",
        (("tests", ("tools/milvus_server.py", "-m", "pytest", "-m", "milvus", *MILVUS_TESTS)),),
    ),
    "test-ray": Task(
        "run the tests that encode on a Ray cluster of their own",
        RAY,
        (("tests", ("-m", "pytest", "-m", "ray", "tests/ray")),),
        venv=".venv-ray",
    ),
    "test-hub": Task(
        "run the tests of encoders from timm, open_clip, sentence-transformers and transformers, on random weights",
        HUB,
        (("tests", ("-m", "pytest", "-m", "hub", "tests/hub")),),
        venv=".venv-hub",
    ),
    "test-versions": Task(
        "run the fast tests that need no torch with the lowest and the newest versions of all dependencies",
        "dev",
        (("versions", ("tools/versions.py",)),),
    ),
    "check": Task(
        "run the fast half of test: no slow tests", "dev", (*LINT, ("tests", ("-m", "pytest", "-m", "not slow")))
    ),
    "lint": Task("run format, lint and types only", "dev", LINT),
    "docs": Task(
        "build the documentation into site/, offline; a broken link is an error",
        "dev",
        (("docs", ("-m", "mkdocs", "build", "--strict", "--quiet")),),
    ),
    "lab": Task("run a measurement of the lab", "dev", (("lab", ("-m", "lab")),)),
    "paper": Task("make the tables, figures and report of the paper", "dev", (("paper", ("-m", "lab.paper")),)),
    "setup": Task("create .venv and install everything", "dev"),
}


class TaskError(Exception):
    """A task cannot go on; the message is a sentence, the exit code that of the failing program."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def check_version(version: tuple[int, int]) -> None:
    """Refuse to make an environment of a Python that is too old."""
    if version < MINIMUM:
        raise TaskError(
            f"this is Python {version[0]}.{version[1]} and rmsh needs {MINIMUM[0]}.{MINIMUM[1]} or newer; "
            "name one, as in: make test PYTHON=python3.12."
        )


def venv_python(venv: Path, system: str = os.name) -> Path:
    """The interpreter of a virtual environment."""
    return venv / "Scripts" / "python.exe" if system == "nt" else venv / "bin" / "python"


def fingerprint(project: Path) -> dict[str, str]:
    """What decides an install: the digests of two files, and the folder that the editable install points to."""
    digests = {name: hashlib.sha256((project / name).read_bytes()).hexdigest() for name in PINNED_BY}
    return {"project": str(project), **digests}


def is_installed(project: Path, extra: str, venv: str = ".venv") -> bool:
    """Whether the last install brought this extra from the files as they are now; dev covers all the others."""
    try:
        stamp = json.loads((project / venv / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return any(stamp == {"extra": brought, **fingerprint(project)} for brought in (extra, "dev"))


def install(project: Path, extra: str, name: str = ".venv") -> None:
    """Bring an environment to what the project asks for, and say before what that costs."""
    if is_installed(project, extra, name):
        return
    venv = project / name
    say(f"Into {venv}: {SIZES[extra]}.\n{CUDA}\nWhat is there already, or in pip's cache, is not downloaded again.")
    python = venv_python(venv)
    if not _has_pip(python):
        check_version(sys.version_info[:2])
        _run_or_stop(f"creating {name}", [sys.executable, "-m", "venv", str(venv)])
    (venv / STAMP).unlink(missing_ok=True)
    packages = [f".[{extra}]", *(["pytest"] if extra in (RAY, HUB) else [])]
    _run_or_stop("pip install", [str(python), "-m", "pip", "install", "-c", "constraints.txt", "-e", *packages])
    (venv / STAMP).write_text(json.dumps({"extra": extra, **fingerprint(project)}), encoding="utf-8")


def _has_pip(python: Path) -> bool:
    """Whether an environment is there and whole: one whose creation was interrupted has no pip."""
    if not python.exists():
        return False
    return subprocess.run([str(python), "-m", "pip", "--version"], capture_output=True).returncode == 0


def _run_or_stop(name: str, command: Sequence[str]) -> None:
    code = run(command)
    if code:
        raise TaskError(f"{name} ended with exit code {code}; what went wrong is written above.", code)


def run(command: Sequence[str]) -> int:
    """Run a program in the project's folder, its output passing through, and return its exit code."""
    return subprocess.run(command, cwd=PROJECT).returncode


def run_steps(task: Task, python: Path, *, further: Sequence[str]) -> int:
    """Run every step, the later ones too when one fails; return the first exit code that is not zero."""
    summary, exit_code = [], 0
    for position, (name, arguments) in enumerate(task.steps):
        is_last = position == len(task.steps) - 1
        say(f"== {name}")
        started = time.perf_counter()
        code = run([str(python), *arguments, *(further if is_last else ())])
        summary.append(f"{name} {'FAILED, ' if code else ''}{time.perf_counter() - started:.1f} s")
        exit_code = exit_code or code
    say(f"== {'failed' if exit_code else 'passed'}: {'; '.join(summary)}")
    return exit_code


def say(text: str) -> None:
    """Print a line at once, so that it stands before the output of the next program."""
    print(text, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a task and return its exit code; what follows its name goes to its last step."""
    name, further = _parse(arguments)
    task = TASKS[name]
    try:
        if further and not task.steps:
            raise TaskError(f"{name} got {' '.join(further)!r}, and takes no arguments; leave them out.", 2)
        install(PROJECT, task.extra, task.venv)
        return run_steps(task, venv_python(PROJECT / task.venv), further=further) if task.steps else 0
    except TaskError as error:
        print(f"tasks.py: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def _parse(arguments: Sequence[str] | None) -> tuple[str, list[str]]:
    parser = argparse.ArgumentParser(prog="tasks.py", description="The tasks of this project, by the names make knows.")
    commands = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    for name, task in TASKS.items():
        commands.add_parser(name, help=task.help, add_help=False)  # --help after a name belongs to its last step
    chosen, further = parser.parse_known_args(arguments)
    return str(chosen.task), further


if __name__ == "__main__":
    sys.exit(main())
