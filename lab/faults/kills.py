"""Killed processes: a writer is ended by SIGKILL at a chosen change to a file, in each operation of a library in turn.

It reports every operation before and after it. Afterwards the library must contain all acknowledged changes, and the
interrupted one completely or not at all; `verify` must find no problem. All runs use the same library.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.data import PROJECT
from lab.faults.content import Versions, inspect_library, make_codes, make_item, make_model
from lab.faults.writer import OPERATIONS, backups_of, push_to_milvus
from rmsh.core.errors import RmshError
from rmsh.library import Library
from rmsh.library.backup import backup
from rmsh.library.maintenance import upgrade
from rmsh.library.repair import repair

_SOURCE = Path(__file__).with_name("file_operations.c")


@dataclass
class Tally:
    """Counts over all runs."""

    runs: int = 0  # that were killed
    killed_during: Counter[str] = field(default_factory=Counter)
    finished: int = 0  # further writers, which ended before the change at which they were to be killed
    acknowledged: Counter[str] = field(default_factory=Counter)
    kept_unacknowledged: int = 0
    items: int = 0
    failures: list[str] = field(default_factory=list)


@dataclass
class State:
    """What a library and its newest backup must contain."""

    items: Versions
    copy: Versions

    def after(self, begun: Mapping[str, Any]) -> State:
        """The state after one more operation."""
        operation = begun["begin"]
        if operation == "backup":
            return State(self.items, self.items)
        if operation == "restore":
            return State(self.copy, self.copy)
        if operation == "remove":
            return State({name: v for name, v in self.items.items() if name not in begun["ids"]}, self.copy)
        return State(self.items | dict.fromkeys(begun["ids"], begun["version"]), self.copy)


def compile_shim(folder: Path) -> Path:
    """The compiled file_operations.c, for LD_PRELOAD."""
    library = folder / "file_operations.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, _SOURCE, "-ldl", "-lpthread"], check=True)
    return library


def make_library(root: Path) -> tuple[Path, State]:
    """A library with some items and a backup of it, below a folder."""
    model, items = make_model(0), [make_item(f"first.{i}", i) for i in range(60)]
    with Library.create(root / "library", model) as library:
        library.add(items, make_codes(items, model.fingerprint), model=model.fingerprint)
        backup(library, root / "backup-0.0")
    versions = {item.id: i for i, item in enumerate(items)}
    return root / "library", State(versions, versions)


def run_writer(
    folder: Path, shim: Path, seed: int, operation: str, changes: int, *, record: Path | None = None
) -> tuple[list[dict[str, Any]], bool, str | None]:
    """Run a writer that is killed after so many changes of an operation.

    Returns its reports, whether it was killed, and its error if it ended with one.
    """
    command = [sys.executable, "-m", "lab.faults.writer", str(folder), str(seed), operation, str(changes)]
    environment = os.environ | {"LD_PRELOAD": str(shim)} | ({"FAULTS_RECORD": str(record)} if record else {})
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, check=False)
    error = None if done.returncode in (0, -signal.SIGKILL) else done.stderr.decode()[-2000:]
    reports = [json.loads(line) for line in done.stdout.splitlines() if line.endswith(b"}")]
    return reports, done.returncode == -signal.SIGKILL, error


def kill_writers(root: Path, runs: int, *, seed: int) -> Tally:
    """Kill a writer so many times, and check the library each time."""
    root.mkdir(parents=True, exist_ok=True)
    shim, (folder, state) = compile_shim(root), make_library(root)
    tally, longest = Tally(), dict.fromkeys(OPERATIONS, 60)
    rng = random.Random(seed)  # noqa: S311
    for run in range(2 * runs):  # some end before they are killed
        if tally.runs == runs:
            break
        operation = OPERATIONS[run % len(OPERATIONS)]
        reports, killed, error = run_writer(folder, shim, seed + run + 1, operation, rng.randrange(longest[operation]))
        problems = [] if error is None else [error]
        state = replay(state, reports, tally.acknowledged)
        for report in reports:
            if "end" in report:  # the longest of the recent ones
                longest[report["end"]] = max(report["changes"], longest[report["end"]] * 9 // 10)
        interrupted = reports[-1] if reports and "begin" in reports[-1] else None
        tally.killed_during[interrupted["begin"] if interrupted else "between operations"] += killed
        tally.finished += not killed
        found, more = check(folder, state, interrupted)
        tally.kept_unacknowledged += found != state
        tally.failures += [f"run {run} ({operation}): {problem}" for problem in (problems + more)[:3]]
        state, tally.runs, tally.items = found, tally.runs + killed, len(found.items)
    return tally


def replay(state: State, reports: list[dict[str, Any]], acknowledged: Counter[str]) -> State:
    """The state after all acknowledged operations, which are counted."""
    for begun, ended in itertools.pairwise(reports):
        if "end" in ended:
            state = state.after(begun)
            acknowledged[begun["begin"]] += 1
    return state


def check(folder: Path, state: State, interrupted: Mapping[str, Any] | None) -> tuple[State, list[str]]:
    """Complete an interrupted operation as its message says, and compare the library with the states that it may have.

    Returns the state that was found, and problems.
    """
    possible = [state] if interrupted is None else [state, state.after(interrupted)]
    try:
        _complete(folder, interrupted["begin"] if interrupted else "")
        items, problems = inspect_library(folder)
    except Exception as error:  # any error is a failure
        return state, [f"{type(error).__name__}: {error}"]
    matching = [each for each in possible if each.items == items]
    if not matching:
        missing, more = state.items.keys() - items.keys(), items.keys() - state.items.keys()
        problems.append(f"{len(missing)} items fewer and {len(more)} more than what was acknowledged")
    is_copied = interrupted is not None and (folder.parent / interrupted["name"]).exists()
    found = State(items, items if is_copied else state.copy)
    return found, problems + _check_backups(folder.parent, found)


def _complete(folder: Path, operation: str) -> None:
    """Repeat what is not complete after a kill, and open the library for writing, as the next program does."""
    if operation == "upgrade":
        upgrade(folder)
    if operation == "repair":
        repair(folder)
    Library.open(folder).close()
    with Library.open(folder, writable=True) as library:
        if operation == "push":
            push_to_milvus(library)
            if push_to_milvus(library):
                raise RuntimeError("a repeated push has changed the collection again")


def _check_backups(root: Path, state: State) -> list[str]:
    """Problems of the newest backup; unfinished and older ones are deleted."""
    for path in root.glob(".backup-*.tmp"):
        shutil.rmtree(path)
    *older, newest = backups_of(root)
    for path in older:
        shutil.rmtree(path)
    try:
        found, problems = inspect_library(newest)
    except RmshError as error:
        return [f"{newest.name}: {error}"]
    return problems + ([] if found == state.copy else [f"{newest.name} has other items"])
