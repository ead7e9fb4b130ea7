"""Remove items from a library by ID.

Their image files are not deleted.

Example:
    rmsh remove library dog.jpg cat.jpg
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rmsh.cli.console import Console, Json, Quiet


def remove(
    library: Annotated[Path, typer.Argument(metavar="LIBRARY", help="Library folder.")],
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Items to remove; all of them or none.")],
    *,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    from rmsh.library import Library

    console = Console(json=json, quiet=quiet)
    with Library.open(library, writable=True) as opened:
        opened.remove(ids)
        total = opened.count()
    console.result({"removed": len(ids), "items": total}, f"{library}: {len(ids):,} items removed, {total:,} left")
