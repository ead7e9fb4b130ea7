"""Carry out the missing runs of a grid, each in its own process, and estimate the time that is left.

A finished run is never repeated, a failed one only on request. Any number of runners may share a folder, because each
locks a run before starting it. A runner can be stopped at any time and loses only the run in progress; if it is killed,
its child process finishes that run. ``python -m rmsh.compare.runner`` is the child: it reads a task from standard input
and writes the result.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rmsh.compare.measure import measure, split_of
from rmsh.compare.result import Result, changed_options, failure, read_result, stale_reason, write_result
from rmsh.compare.run import Run
from rmsh.core.errors import ConfigError, RmshError
from rmsh.core.files import cache_folder
from rmsh.core.locks import try_lock
from rmsh.data.open import open_pairs
from rmsh.methods import METHODS

# Runs with the same values of these parameters take about the same time; the most specific first.
_SIMILAR = (("dataset", "method", "train", "bits"), ("dataset", "method", "train"), ("method",), ())


@dataclass(frozen=True)
class Report:
    """A run that has just ended."""

    run: Run
    result: Result
    done: int  # runs of the grid with a result, failed ones included
    total: int  # runs of the grid
    seconds_left: float | None  # estimate for the remaining runs


def make_runs(
    runs: Sequence[Run],
    folder: Path,
    *,
    data: Mapping[str, str],
    retry_failed: bool = False,
    time_limit: float | None = None,
    on_run: Callable[[Report], None] | None = None,
) -> list[Result | None]:
    """Carry out the runs that have no result in the folder yet, in their order.

    ``data`` gives for each dataset the argument of ``open_pairs``; ``time_limit`` is in seconds per run, and a longer
    run is stopped and counts as failed. Returns the result of each run, None if another runner is working on it.
    """
    unknown = sorted({run.dataset for run in runs} - {*data})
    if unknown:
        raise ConfigError(f"The runs need the dataset {unknown[0]!r}; data has {sorted(data)}. Add its location.")
    check_splits(runs, folder, data)
    for run in missing_runs(runs, folder, retry_failed=retry_failed):
        path = folder / run.path
        lock = path.with_suffix(".claim")
        with try_lock(lock) as acquired:
            if not acquired or not missing_runs([run], folder, retry_failed=retry_failed):
                continue
            result = _run_in_child(run, path, data[run.dataset], time_limit)
            # Removed while it is held: a runner that was waiting for it looks for the result again and finds it.
            lock.unlink(missing_ok=True)
        if on_run is not None:
            results = [found for found in read_results(runs, folder) if found is not None]
            left = seconds_left(missing_runs(runs, folder), results)
            on_run(Report(run, result, len(results), len(runs), left))
    return read_results(runs, folder)


def check_splits(runs: Sequence[Run], folder: Path, data: Mapping[str, str]) -> None:
    """Raise a ConfigError if the folder has results of other data."""
    opened = {}
    for run, result in zip(runs, read_results(runs, folder), strict=True):
        if result is None or "split" not in result:
            continue
        if run.dataset not in opened:
            opened[run.dataset] = open_pairs(data[run.dataset])
        if split_of(run, opened[run.dataset]).sha256 != result["split"]["sha256"]:
            raise ConfigError(f"{folder / run.path} has another split than {data[run.dataset]}; give another folder.")


def missing_runs(runs: Sequence[Run], folder: Path, *, retry_failed: bool = False) -> list[Run]:
    """The runs without a result; with ``retry_failed``, failed runs too."""
    results = zip(runs, read_results(runs, folder), strict=True)
    return [run for run, result in results if result is None or (retry_failed and result["status"] == "failed")]


def stale_runs(runs: Sequence[Run], folder: Path) -> list[Run]:
    """The runs whose result was made with other code, or with other defaults, than the method has now."""
    results = zip(runs, read_results(runs, folder), strict=True)
    done = [(run, result) for run, result in results if result is not None and result["status"] == "done"]
    return [run for run, result in done if stale_reason(result) or changed_options(result)]


def read_results(runs: Sequence[Run], folder: Path) -> list[Result | None]:
    """The result of each run, None if there is none; see :func:`read_result` for errors."""
    paths = [folder / run.path for run in runs]
    return [read_result(path) if path.exists() else None for path in paths]


def seconds_left(missing: Sequence[Run], done: Sequence[Mapping[str, Any]]) -> float | None:
    """The expected time of the missing runs, each the mean of the most similar finished runs; None without any.

    Example:
        >>> done = [{"run": Run("a", "scm").to_json(), "seconds": {"total": 3.0}}]
        >>> seconds_left([Run("a", "scm", bits=16), Run("a", "dcmh")], done)
        6.0
    """
    times = [(result["run"], result["seconds"]["total"]) for result in done if "total" in result.get("seconds", {})]
    if not times:
        return None
    total = 0.0
    for run in (run.to_json() for run in missing):
        groups = ([s for other, s in times if all(other[key] == run[key] for key in keys)] for keys in _SIMILAR)
        total += fmean(next(group for group in groups if group))  # the last group has all times
    return total


def _run_in_child(run: Run, path: Path, data: str, time_limit: float | None) -> Result:
    """Carry out a run in a child process; if the child leaves no result, write a failure."""
    task = json.dumps({"run": run.to_json(), "data": data, "path": str(path), "methods": METHODS.added})
    started, error = time.monotonic(), ""
    path.unlink(missing_ok=True)  # the result of a failed run
    try:
        child = [sys.executable, "-m", "rmsh.compare.runner"]
        ended = subprocess.run(child, input=task, text=True, capture_output=True, timeout=time_limit, check=False)  # noqa: S603
        error = _explain(ended.returncode, ended.stderr)
    except subprocess.TimeoutExpired:
        error = f"The run took longer than the limit of {time_limit:g} s and was stopped."
    if error:
        write_result(path, failure(run, error, time.monotonic() - started))
    return read_result(path)


def _explain(code: int, stderr: str) -> str:
    """Why a process ended without a result; empty if it succeeded.

    Example:
        >>> _explain(-9, ""), _explain(0, "")
        ('The process was killed by SIGKILL; memory may have run out.', '')
    """
    if code < 0:
        name = signal.Signals(-code).name
        return f"The process was killed by {name}{'; memory may have run out' if name == 'SIGKILL' else ''}."
    last = stderr.strip().splitlines()[-1:] or ["no message"]
    return f"The process ended with code {code}: {last[0]}" if code else ""


def carry_out(run: Run, data: str) -> Result:
    """The result of a run, or of its failure, on the data that ``open_pairs`` takes."""
    started = time.monotonic()
    try:
        result = measure(run, open_pairs(data), cache=cache_folder())
    except Exception as error:
        reason = str(error) if isinstance(error, RmshError) else f"{type(error).__name__}: {error}"
        return failure(run, reason, time.monotonic() - started)
    result["seconds"]["total"] = round(time.monotonic() - started, 2)
    return result


if __name__ == "__main__":
    task = json.load(sys.stdin)
    for name, place in task["methods"].items():
        METHODS.add(name, place)
    write_result(Path(task["path"]), carry_out(Run(**task["run"]), task["data"]))
