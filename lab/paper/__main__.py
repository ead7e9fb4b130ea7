"""The command line of the paper: run a grid, then write tables, figures and a report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lab.console import new_app, run, run_line
from rmsh.cli.console import Console, Json, Quiet
from rmsh.core.errors import ConfigError, require

HELP = """Run a grid of experiments, then write tables, figures, claims and report.html.

GRID is a YAML file such as lab/grids/smoke.yaml. The names of its blocks say what their runs are for: table 1,
unseen, ablation, delta, weights, label noise, image noise or text noise, optionally followed by a colon and a remark.

Finished runs are not repeated, and a failed run does not stop the others. The report needs no network.

\b
Examples:
  make paper ARGS="lab/grids/smoke.yaml --data scenes=FOLDER --out smoke"
  make paper ARGS="lab/grids/coco66k.yaml --results lab/results --only-report"
"""

app = new_app(HELP)


@app.command(help=HELP)
def paper(
    grid: Annotated[Path, typer.Argument(metavar="GRID", help="Grid file.", show_default=False)],
    *,
    out: Annotated[
        Path | None, typer.Option(help="Folder for tables/, figures/ and report.html.", show_default="build/paper/GRID")
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            help="Folder for runs/DATASET/*.json and paper/GRID/, which may contain remarks.md for the report.",
            show_default="the folder of --out",
        ),
    ] = None,
    data: Annotated[list[str] | None, typer.Option(metavar="NAME=PLACE", help="Location of a data set.")] = None,
    only_report: Annotated[bool, typer.Option("--only-report", help="Run nothing; use the existing results.")] = False,
    tsne: Annotated[bool, typer.Option(help="Train RMSH once more and store its t-SNE plane.")] = False,
    examples: Annotated[
        bool, typer.Option(help="Train each method once more and store retrieval examples, with small images.")
    ] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Retry failed runs.")] = False,
    time_limit: Annotated[float | None, typer.Option(min=1, help="Time limit per run, in seconds.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    from lab.grid import read_grid
    from lab.paper.examples import make_examples, make_tsne
    from lab.paper.report import write_report
    from lab.paper.results import read_experiments
    from rmsh.compare.runner import make_runs, missing_runs
    from rmsh.core.files import cache_folder

    console = Console(json=json, quiet=quiet)
    require("matplotlib", "plots")  # before the runs, which may take days
    content, places = read_grid(grid), parse_places(data or [])
    out = out or Path("build", "paper", grid.stem)
    results = results or out
    folder, extras = results / "runs", results / "paper" / grid.stem
    if not only_report:
        runs = content.runs()
        missing = missing_runs(runs, folder, retry_failed=retry_failed)
        console.note(f"{len(runs)} runs, {len(runs) - len(missing)} already done; results go to {folder}.")
        make_runs(
            runs,
            folder,
            data=places,
            retry_failed=retry_failed,
            time_limit=time_limit,
            on_run=lambda report: console.note(run_line(report)),
        )
    for experiment in read_experiments(content, folder) if tsne or examples else ():
        if experiment.dataset not in places:
            raise ConfigError(f"--tsne and --examples train again: give --data {experiment.dataset}=PLACE.")
        for wanted, make in ((tsne, make_tsne), (examples, make_examples)):
            if wanted:
                place = places[experiment.dataset]
                make(experiment, extras, data=place, cache=cache_folder(), on_note=console.note)
    written = write_report(content, out, runs=folder, extras=extras, title=f"RMSH: results of {grid.stem}")
    console.result(written, f"{written['report']}: {written['done']} runs done, {written['failed']} failed.")


def parse_places(pairs: list[str]) -> dict[str, str]:
    """Parse NAME=PLACE pairs.

    Example:
        >>> parse_places(["coco66k=coco66k:data/coco"])
        {'coco66k': 'coco66k:data/coco'}
    """
    places: dict[str, str] = {}
    for pair in pairs:
        name, equals, place = pair.partition("=")
        if not equals or not name or not place:
            raise ConfigError(f"--data got {pair!r}; write NAME=PLACE, such as --data coco66k=coco66k:FOLDER.")
        places[name] = place
    return places


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run(app, "make paper", arguments)


if __name__ == "__main__":
    sys.exit(main())
