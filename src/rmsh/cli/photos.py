"""Keep a library in step with its image folder, and find images that it has more than once."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from typing import Annotated

import typer

from rmsh.cli.build import report_skipped
from rmsh.cli.console import Console, LibraryFolder, table

_PAUSE = 30  # seconds between two syncs; one with nothing to do opens no image


def sync(
    console: Console,
    library: LibraryFolder,
    *,
    prune: Annotated[
        bool, typer.Option(help="Remove items with missing files at once, not at the second sync.")
    ] = False,
    watch: Annotated[bool, typer.Option(help="Keep running, and sync twice a minute.")] = False,
    skipped: Annotated[Path | None, typer.Option(help="Write skipped items to this .csv file.")] = None,
) -> None:
    """Bring a library to the state of its image folders.

    New files are added, changed images and captions are encoded again, and moved files keep their codes. An item whose
    file is missing is removed by the second sync that misses it, so a disk that is not mounted never empties a library.
    Safe to run from cron, and while the library is being searched.

    Example:
        rmsh sync photos
    """
    from rmsh.builder.sync import sync as run
    from rmsh.library import Library

    first = True
    while True:
        with Library.open(library, writable=True) as opened, console.progress() as progress:
            done, total = run(opened, prune=prune, on_progress=progress), opened.count()
        report_skipped(done.skipped, skipped, console)
        if done.missing:
            console.note(
                f"{len(done.missing):,} files are missing, such as {done.missing[0]}; they are forgotten next time."
            )
        counts = {name: getattr(done, name) for name in ("added", "changed", "moved", "removed")}
        if first or any(counts.values()):
            told = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "nothing has changed"
            found = counts | {"missing": list(done.missing), "skipped": len(done.skipped), "items": total}
            console.result(found, f"{library}: {told}; {total:,} items")
        if not watch:
            break
        console.note(*["Watching for changes; press Ctrl-C to stop."] * first)
        first = False
        time.sleep(_PAUSE)


def duplicates(
    console: Console,
    library: LibraryFolder,
    *,
    seconds: Annotated[float, typer.Option(min=0, help="Longest time between two images of a burst.")] = 2.0,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the groups to this .csv file.")] = None,
) -> None:
    """Find images that a library has more than once: copies, similar images and bursts.

    Copies have the same content; similar images were resized, compressed again or slightly cropped; a burst was taken
    within seconds. The best image of a group, with most pixels and bytes, comes first. Nothing is deleted.

    Example:
        rmsh duplicates photos --csv duplicates.csv
    """
    from rmsh.core.files import write_text
    from rmsh.library import Library
    from rmsh.library.duplicates import groups_in

    with Library.open(library) as opened, console.progress() as progress:
        groups = groups_in(opened, seconds=seconds, on_progress=progress)
    rows = [
        [number, group.kind, place, name]
        for number, group in enumerate(groups, start=1)
        for place, name in enumerate(group.ids, start=1)
    ]
    if csv_file is not None:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows([["group", "kind", "place", "id"], *rows])
        write_text(csv_file, text.getvalue())
    shown = [[group.kind, len(group.ids), group.ids[0], ", ".join(group.ids[1:])] for group in groups]
    title = f"{len(groups):,} groups with {len({name for group in groups for name in group.ids}):,} images"
    found = [{"kind": group.kind, "ids": list(group.ids)} for group in groups]
    console.result(
        {"groups": found}, table(title, ["kind", "images", "best", "others"], shown, words=("best", "others"))
    )
