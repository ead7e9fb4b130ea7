"""The runner: makes the missing runs of a grid, each in a process of its own, and tells how long the rest will take.

A finished run is never made again, a failed one only where asked. Any number of runners may share a folder: each claims
a run before it makes it. A runner can be stopped at any moment and loses nothing but the run it was making; where it is
killed, the child it leaves finishes that run.

How long the rest of a grid takes, from the runs that are done: like runs take alike.
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
from typing import TYPE_CHECKING, Any, TypeAlias

from rmsh.compare.measure import method_of, split_of
from rmsh.compare.result import failure, read_result, write_result
from rmsh.core.errors import ConfigError
from rmsh.core.locks import try_lock
from rmsh.data.open import open_pairs

if TYPE_CHECKING:
    from rmsh.compare.grid import Run

# What makes two runs alike, the most telling first.
_LIKENESS = (("dataset", "method", "train", "bits"), ("dataset", "method", "train"), ("method",), ())


def seconds_left(missing: Sequence[Run], done: Sequence[Mapping[str, Any]]) -> float | None:
    """The time the missing runs will take, each as the mean of the runs most like it; None if there are none.

    Example:
        >>> from rmsh.compare.grid import Run
        >>> done = [{"run": Run("a", "scm").to_json(), "seconds": {"total": 3.0}}]
        >>> seconds_left([Run("a", "scm", bits=16), Run("a", "dcmh")], done)
        6.0
    """
    times = [(result["run"], result["seconds"]["total"]) for result in done if "total" in result.get("seconds", {})]
    if not times:
        return None
    return sum(_expected(run.to_json(), times) for run in missing)


def _expected(run: Mapping[str, Any], times: Sequence[tuple[Mapping[str, Any], float]]) -> float:
    for keys in _LIKENESS:
        alike = [seconds for other, seconds in times if all(other[key] == run[key] for key in keys)]
        if alike:
            return fmean(alike)
    return 0.0


Result: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Report:
    """A run that ended just now.

    Args:
        run: which one.
        result: what its file holds.
        done: how many runs of the grid have a result, failed ones included.
        total: runs of the grid.
        seconds_left: an estimate for the rest, None before any run is done.
    """

    run: Run
    result: Result
    done: int
    total: int
    seconds_left: float | None


OnRun: TypeAlias = Callable[[Report], None]


def _tell_nobody(report: Report) -> None:
    """The report of a run that nobody waits for."""


def make_runs(
    runs: Sequence[Run],
    folder: Path,
    *,
    data: Mapping[str, str],
    retry_failed: bool = False,
    time_limit: float | None = None,
    on_run: OnRun = _tell_nobody,
) -> list[Result | None]:
    """Make the runs that have no result yet, in their order.

    Args:
        runs: of a grid.
        folder: where results are, by the paths of the runs.
        data: for each dataset, what ``open_pairs`` takes.
        retry_failed: make failed runs again.
        time_limit: seconds a run may take; a longer one is stopped and counts as failed.
        on_run: is told of each run that ends.

    Returns:
        The result of each run, None where another runner is at work on it.

    Raises:
        ConfigError: a dataset has no place, or the folder holds results of other data.
    """
    unknown = sorted({run.dataset for run in runs} - {*data})
    if unknown:
        raise ConfigError(
            f"The runs need the data {unknown[0]!r}, whose place was not given; known are {sorted(data)}."
        )
    check_splits(runs, folder, data)
    for run in missing_runs(runs, folder, retry_failed=retry_failed):
        path = folder / run.path
        claim = path.with_suffix(".claim")
        with try_lock(claim) as mine:
            if not mine or not missing_runs([run], folder, retry_failed=retry_failed):
                continue
            result = _make(run, path, data[run.dataset], time_limit)
            # Still held: whoever waits for the lock of a removed file finds the result when they look again.
            claim.unlink(missing_ok=True)
        _report(run, result, runs, folder, on_run)
    return read_results(runs, folder)


def check_splits(runs: Sequence[Run], folder: Path, data: Mapping[str, str]) -> None:
    """Refuse a folder with results of other data than that which is given.

    Raises:
        ConfigError: a result was made on other rows.
    """
    opened = {}
    for run, result in zip(runs, read_results(runs, folder), strict=True):
        if result is None or "split" not in result:
            continue
        if run.dataset not in opened:
            opened[run.dataset] = open_pairs(data[run.dataset])
        if split_of(run, opened[run.dataset]).sha256 != result["split"]["sha256"]:
            raise ConfigError(
                f"{folder / run.path} was made on another split than that of {data[run.dataset]}; give another folder "
                "for these results, or the data they were made with."
            )


def missing_runs(runs: Sequence[Run], folder: Path, *, retry_failed: bool = False) -> list[Run]:
    """The runs that have no result yet; failed ones count as missing where they are to be made again."""
    results = zip(runs, read_results(runs, folder), strict=True)
    return [run for run, result in results if result is None or (retry_failed and result["status"] == "failed")]


def stale_runs(runs: Sequence[Run], folder: Path) -> list[Run]:
    """The runs whose result was made with other defaults than the method has now."""
    results = zip(runs, read_results(runs, folder), strict=True)
    configured = [(run, result["config"]) for run, result in results if result is not None and "config" in result]
    return [run for run, config in configured if method_of(run).config.model_dump(mode="json") != config]


def read_results(runs: Sequence[Run], folder: Path) -> list[Result | None]:
    """The result of each run, None where there is none.

    Raises:
        FormatError: a file is damaged or of a newer version.
    """
    paths = [folder / run.path for run in runs]
    return [read_result(path) if path.exists() else None for path in paths]


def _make(run: Run, path: Path, data: str, time_limit: float | None) -> Result:
    """Make a run in a child process; whatever happens to it, there is a result."""
    task = json.dumps({"run": run.to_json(), "data": data, "path": str(path)})
    started, error = time.monotonic(), ""
    path.unlink(missing_ok=True)  # of a failed run
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "rmsh.compare.worker"],
            input=task,
            text=True,
            capture_output=True,
            timeout=time_limit,
            check=False,
        )
        error = _explain(ended.returncode, ended.stderr)
    except subprocess.TimeoutExpired:
        error = f"It took longer than the limit of {time_limit:g} s and was stopped."
    if error:
        write_result(path, failure(run, error, time.monotonic() - started))
    return read_result(path)


def _explain(code: int, said: str) -> str:
    """Why a process ended without a result; nothing where it ended well.

    Example:
        >>> _explain(-9, ""), _explain(0, "")
        ('Its process was ended by SIGKILL; perhaps memory ran out.', '')
    """
    if code < 0:
        name = signal.Signals(-code).name
        return f"Its process was ended by {name}{'; perhaps memory ran out' if name == 'SIGKILL' else ''}."
    last = said.strip().splitlines()[-1:] or ["no message"]
    return f"Its process ended with code {code}: {last[0]}" if code else ""


def _report(run: Run, result: Result, runs: Sequence[Run], folder: Path, on_run: OnRun) -> None:
    results = read_results(runs, folder)
    done = sum(one is not None for one in results)
    left = seconds_left(missing_runs(runs, folder), [one for one in results if one is not None])
    on_run(Report(run, result, done, len(runs), left))
