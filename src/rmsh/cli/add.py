"""Add new pictures and texts to a library, coded by its own model; items whose id is there stay as they are.

DATA has the forms that `rmsh build` takes. Where the library was built from a folder, put new pictures into that folder
and give it again.

Example:
    rmsh add library my_pictures
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rmsh.cli.console import Console, Json, Quiet

__all__ = ["add"]


def add(
    library: Annotated[Path, typer.Argument(metavar="LIB", help="The folder of a library.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Pictures and texts, old ones and new ones.")],
    *,
    skipped: Annotated[Path | None, typer.Option(help="Write what was left out into this .csv file.")] = None,
    strict: Annotated[bool, typer.Option(help="Stop over anything that would be left out.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    from rmsh.builder.add import add as run
    from rmsh.data.records import count_skipped, write_skipped
    from rmsh.library import Library

    console = Console(json=json, quiet=quiet)
    with Library.open(library, writable=True) as opened, console.progress() as report:
        found = run(opened, data, strict=strict, on_progress=report)
        total = opened.count()
    for sentence in count_skipped(found.skipped):
        console.note(sentence)
    if skipped is not None:
        write_skipped(skipped, found.skipped)
    console.result(
        {"added": found.added, "there": found.there, "skipped": len(found.skipped), "items": total},
        f"{library}: {found.added:,} added, {found.there:,} were there; it has {total:,} items now",
    )
