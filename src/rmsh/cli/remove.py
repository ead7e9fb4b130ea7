"""Remove items from a library by their ids; pictures stay where they are.

Example:
    rmsh remove library dog.jpg cat.jpg
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rmsh.cli.console import Console, Json, Quiet

__all__ = ["remove"]


def remove(
    library: Annotated[Path, typer.Argument(metavar="LIB", help="The folder of a library.")],
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The items to remove, all or none.")],
    *,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    from rmsh.library import Library

    console = Console(json=json, quiet=quiet)
    with Library.open(library, writable=True) as opened:
        opened.remove(ids)
        total = opened.count()
    console.result({"removed": len(ids), "items": total}, f"{library}: {len(ids):,} removed, {total:,} items are left")
