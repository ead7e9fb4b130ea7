"""The command line of the lab: one command per measurement."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lab.console import new_app, run

app = new_app(
    """Run a measurement of the lab; the result is written to lab/results.

    \b
    Examples:
      make lab ARGS="search --only learned"
      make lab ARGS="trials --tables"
      make lab ARGS="trace"
    """
)

Only = Annotated[str, typer.Option(metavar="REGEX", help="Only run cases whose name matches.")]
Tables = Annotated[bool, typer.Option("--tables", help="Run nothing; print the existing results.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]


@app.command()
def quality(*, only: Only = "", tables: Tables = False) -> None:
    """RMSH on coco66k: presets, ablations, open choices."""
    from lab.tuning import quality as measurement

    measurement.main(only=only, tables=tables)


@app.command()
def trials(*, tables: Tables = False) -> None:
    """Tuning: six trials per method on validation queries."""
    from lab.tuning import trials as measurement

    measurement.main(tables=tables)


@app.command()
def glint(*, only: Only = "", tables: Tables = False) -> None:
    """GLINT and RMSH: relaxed values, noisy and few labels, time."""
    from lab.tuning import glint as measurement

    measurement.main(only=only, tables=tables)


@app.command()
def alone(*, seed: Seed = 0) -> None:
    """GLINT when most items have only an image or only a text."""
    from lab.tuning import glint_alone

    glint_alone.main(seed=seed)


@app.command()
def scale(*, seed: Seed = 0) -> None:
    """Time and memory of GLINT for up to a million pairs."""
    from lab.speed import glint_scale

    glint_scale.main(seed=seed)


@app.command()
def training() -> None:
    """Training speed of RMSH."""
    from lab.speed import training as measurement

    measurement.main()


@app.command()
def evaluation() -> None:
    """Evaluation speed and memory."""
    from lab.speed import evaluation as measurement

    measurement.main()


@app.command()
def coco(*, seed: Seed = 0) -> None:
    """Preparation of MS COCO: time and memory."""
    from lab.speed import coco_preparation

    coco_preparation.main(seed=seed)


@app.command()
def images() -> None:
    """Image encoding speed, compared with torch."""
    from lab.speed import images as measurement

    measurement.main()


@app.command()
def serve(*, seconds: Annotated[float, typer.Option(min=1, help="Duration in seconds.")] = 60.0) -> None:
    """The server under load: 16 clients, 100,000 items."""
    from lab.speed import serving

    serving.main(seconds=seconds)


@app.command()
def search(*, only: Only = "", tables: Tables = False) -> None:
    """Search speed, compared with faiss and usearch."""
    from lab.speed import search as measurement

    measurement.main(only=only, tables=tables)


@app.command()
def threads() -> None:
    """One query with two threads and with two processes."""
    from lab.speed import threads as measurement

    measurement.main()


@app.command("before-after")
def before_after(
    before: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="A checkout.")],
    after: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Another checkout.")],
    *,
    before_search: Annotated[str, typer.Option(help="Search-speed command of BEFORE.")] = "speed",
    after_search: Annotated[str, typer.Option(help="Search-speed command of AFTER.")] = "speed",
    rounds: Annotated[int, typer.Option(min=1, help="Number of rounds.")] = 5,
) -> None:
    """Compare the speed of two checkouts."""
    from lab.speed import before_after as measurement

    measurement.main(before=before, after=after, before_search=before_search, after_search=after_search, rounds=rounds)


@app.command()
def faults(*, runs: Annotated[int, typer.Option(min=1, help="Number of runs.")] = 200, seed: Seed = 0) -> None:
    """Kill processes that write to a library at random moments."""
    from lab.speed import kill_writers

    kill_writers.main(runs=runs, seed=seed)


@app.command("first-page")
def first_page(
    rankings: Annotated[list[Path] | None, typer.Argument(exists=True, help="JSON files: query to IDs.")] = None,
    *,
    name: Annotated[str, typer.Option(help="Name of the result in lab/results/first_page.")] = "baselines",
    part: Annotated[str, typer.Option(metavar="dev|test|all", help="Queries to score.")] = "all",
    reference: Annotated[str, typer.Option(help="Ranking to compare with.")] = "cosine",
    unjudged_wrong: Annotated[bool, typer.Option("--unjudged-wrong", help="Count unjudged items as wrong.")] = False,
    sheets: Annotated[Path | None, typer.Option(help="Write sheets of unjudged items here; score nothing.")] = None,
    grades: Annotated[Path | None, typer.Option(exists=True, help="Add the grades of this file first.")] = None,
) -> None:
    """Judged queries over 3,000 photographs, beside cosine and FTS5."""
    from lab.first_page import measure as measurement

    measurement.main(
        rankings or [],
        name=name,
        part=part,
        reference=reference,
        unjudged_wrong=unjudged_wrong,
        sheets=sheets,
        grades=grades,
    )


@app.command()
def trace() -> None:
    """Modules used by a search, a training step, a build."""
    from lab import trace as measurement

    measurement.main()


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run(app, "make lab", arguments)


if __name__ == "__main__":
    sys.exit(main())
