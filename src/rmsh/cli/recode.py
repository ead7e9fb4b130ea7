"""Give every item of a library a code of another model, while it is searched with the old ones.

Texts and pictures are encoded as the new model was trained; for a model that was trained on matrices, give the matrices
of the items with their ids. Stopped, it goes on where it was when the same command is given again. The old codes stay
until `rmsh library compact`.

Example:
    rmsh recode photos --model newmodel
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rmsh.cli.console import Console, Json, Quiet

__all__ = ["recode"]


def recode(
    library: Annotated[Path, typer.Argument(metavar="LIB", help="The folder of a library.")],
    model: Annotated[Path, typer.Option(help="The folder of the new model.")],
    *,
    features: Annotated[Path | None, typer.Option(help="Features of the items by id: a file of matrices.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    from rmsh.data.open import open_pairs
    from rmsh.item_codes import item_coder
    from rmsh.library import Library
    from rmsh.library.recode import recode as run
    from rmsh.model import load

    console = Console(json=json, quiet=quiet)
    learned = load(model)
    given = None
    if features is not None:
        opened = open_pairs(features, skip=["labels"])
        given = opened.pairs
        for note in opened.notes:
            console.note(note)
    with Library.open(library, writable=True) as target:
        encode = item_coder(learned, picture_path=target.picture_path, features=given)
        console.note(f"{library}: {target.count():,} items get codes of {learned.bits} bits; it is searched meanwhile.")
        with console.progress() as report:
            run(target, learned, encode=encode, on_progress=report)
        count = target.count()
    console.result(
        {"library": str(library), "items": count, "bits": learned.bits, "model": learned.fingerprint},
        f"{library}: {count:,} items, {learned.bits} bits, model {learned.fingerprint}",
    )
