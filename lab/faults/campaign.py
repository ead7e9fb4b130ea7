"""The campaign of faults: damaged files, killed writers, lost power."""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from lab.console import Seed  # noqa: TC001  # typer reads it
from lab.data import write_measurement
from lab.faults.corruption import damage_files, summary
from lab.faults.kills import kill_writers
from lab.faults.power_loss import lose_power


def main(
    *,
    damaged: Annotated[int, typer.Option(min=0, help="Number of damaged files.")] = 500,
    kills: Annotated[int, typer.Option(min=0, help="Number of killed writers.")] = 300,
    losses: Annotated[int, typer.Option(min=0, help="Number of points at which power is lost.")] = 100,
    seed: Seed = 0,
) -> None:
    """Run, write the results and print a line about each; the exit code is 1 if anything failed."""
    logging.getLogger("rmsh.library").setLevel(logging.ERROR)  # warnings are what is expected
    failures: list[str] = []
    if damaged:
        failures += _run("corruption", lambda root: summary(damage_files(root, damaged, seed=seed)), seed)
    if kills:
        failures += _run("kills", lambda root: vars(kill_writers(root, kills, seed=seed)), seed)
    if losses:
        failures += _run("power_loss", lambda root: vars(lose_power(root, losses, seed=seed)), seed)
    if failures:
        sys.exit(1)


def _run(name: str, action: Any, seed: int) -> list[str]:
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = action(Path(folder))
    write_measurement(f"faults/{name}", {"seed": seed, "seconds": round(time.perf_counter() - start, 1), **found})
    print(f"{name}: {', '.join(f'{key} {value}' for key, value in found.items() if key != 'failures')}")
    print("\n".join(found["failures"]) or "no failure")
    return list(found["failures"])
