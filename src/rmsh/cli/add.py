"""Add images and texts to a library, encoded with its model.

DATA takes the same forms as for `rmsh build`. Items whose ID is already in the library are left unchanged. If the
library was built from a folder, put the new images into that folder and pass it again.

Example:
    rmsh add library my_images
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rmsh.cli.console import Console, Json, Quiet


def add(
    library: Annotated[Path, typer.Argument(metavar="LIBRARY", help="Library folder.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Images and texts, old and new.")],
    *,
    skipped: Annotated[Path | None, typer.Option(help="Write skipped items to this .csv file.")] = None,
    strict: Annotated[bool, typer.Option(help="Fail instead of skipping invalid items.")] = False,
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
        {"added": found.added, "there": found.existing, "skipped": len(found.skipped), "items": total},
        f"{library}: {found.added:,} items added, {found.existing:,} already present, {total:,} in total",
    )
