"""Make what the paper shows: the runs of a grid, then tables, figures and a report from their files.

GRID is a file such as lab/grids/smoke.yaml; each of its data sets needs a place, given by --data. Runs that are done
are not made again, and one that fails does not stop the others; the report says so. Everything is written into --out:
runs/, tables/, figures/, showcase/ and report.html, which needs no network. A file remarks.md there, if you write one,
is shown in the report.

Example:
    python -m lab.paper lab/grids/coco66k.yaml --data coco66k=coco66k:FOLDER --out results
    python -m lab.paper lab/grids/coco66k.yaml --out results --only-report
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmsh.cli.console import Console, Json, Quiet, duration
from rmsh.core.errors import ConfigError

if TYPE_CHECKING:
    from rmsh.compare.runner import Report

__all__ = ["parse_places", "reproduce"]


def reproduce(
    grid: Annotated[Path, typer.Argument(metavar="GRID", help="A grid file.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder that everything is written into.")],
    data: Annotated[list[str] | None, typer.Option(metavar="NAME=PLACE", help="Where a data set is.")] = None,
    only_report: Annotated[bool, typer.Option(help="Make no runs; report on those that are there.")] = False,
    examples: Annotated[bool, typer.Option(help="Show what queries find: copies of pictures.")] = True,
    retry_failed: Annotated[bool, typer.Option(help="Make failed runs again.")] = False,
    time_limit: Annotated[float | None, typer.Option(min=1, help="Seconds a run may take.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    from lab.paper.outcomes import read_outcomes
    from lab.paper.reproduction import write_report
    from lab.paper.showcase.store import make_showcase
    from rmsh.compare.grid import read_grid
    from rmsh.compare.runner import make_runs, missing_runs
    from rmsh.features.extract import cache_folder

    console = Console(json=json, quiet=quiet)
    runs, places = read_grid(grid).runs(), parse_places(data or [])
    if not only_report:
        missing = missing_runs(runs, out / "runs", retry_failed=retry_failed)
        console.note(f"{len(runs)} runs, {len(runs) - len(missing)} of them done before; results go to {out}.")
        make_runs(
            runs,
            out / "runs",
            data=places,
            retry_failed=retry_failed,
            time_limit=time_limit,
            on_run=lambda report: console.note(_line(report)),
        )
        outcomes, cache = read_outcomes(out / "runs"), cache_folder()
        make_showcase(outcomes, out / "showcase", data=places, examples=examples, cache=cache, tell=console.note)
    written = write_report(out, title=f"Reproduction, {grid.stem}", wanted=runs)
    console.result(written, f"{written['report']}: {written['done']} runs done, {written['failed']} failed.")


def parse_places(given: list[str]) -> dict[str, str]:
    """NAME=PLACE pairs.

    Example:
        >>> parse_places(["coco66k=coco66k:data/coco"])
        {'coco66k': 'coco66k:data/coco'}
    """
    places: dict[str, str] = {}
    for words in given:
        name, equals, place = words.partition("=")
        if not equals or not name or not place:
            raise ConfigError(f"--data got {words!r}; write NAME=PLACE, such as --data coco66k=coco66k:FOLDER.")
        places[name] = place
    return places


def _line(report: Report) -> str:
    """What is said when a run ends."""
    left = "" if not report.seconds_left else f"; about {duration(report.seconds_left)} left"
    ending = report.result["status"] + (f": {report.result['error']}" if "error" in report.result else "")
    return f"{report.done}/{report.total} {report.run.path} {ending}{left}"
