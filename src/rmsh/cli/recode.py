"""Give every item of a library a code of another model, while it is searched with the old ones.

Texts and pictures are encoded as the new model was trained; for a model that was trained on matrices, give the matrices
of the items with their ids. Stopped, it goes on where it was when the same command is given again. The old codes stay
until `rmsh library compact`.

An item whose picture can no longer be read is coded by its text alone, and told of. Where it has no text, the library
keeps its old codes until the picture is back or the item is removed, and the same command is given again.

Example:
    rmsh recode photos --model newmodel
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmsh.cli.console import Console, Json, Quiet

if TYPE_CHECKING:
    from rmsh.data.pairs import Pairs
    from rmsh.data.records import Skipped

__all__ = ["recode"]


def recode(
    library: Annotated[Path, typer.Argument(metavar="LIB", help="The folder of a library.")],
    model: Annotated[Path, typer.Option(help="The folder of the new model.")],
    *,
    features: Annotated[Path | None, typer.Option(help="Features of the items by id: a file of matrices.")] = None,
    skipped: Annotated[
        Path | None, typer.Option(help="Write which pictures cannot be read into this .csv file.")
    ] = None,
    strict: Annotated[bool, typer.Option(help="Stop at a picture that cannot be read.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    from rmsh.library import Library
    from rmsh.library.recode import recode as run
    from rmsh.model import load
    from rmsh.pipeline import item_coder

    console = Console(json=json, quiet=quiet)
    learned = load(model)
    given = None if features is None else _features(features, console)
    with Library.open(library, writable=True) as target, _listed(skipped, console) as lost:
        unread = None if strict else lost.extend
        encode = item_coder(learned, image_path=target.picture_path, features=given, on_skipped=unread)
        console.note(f"{library}: {target.count():,} items get codes of {learned.bits} bits; it is searched meanwhile.")
        with console.progress() as report:
            run(target, learned, encode=encode, on_progress=report)
        count = target.count()
    found = {"items": count, "bits": learned.bits, "model": learned.fingerprint, "skipped": len(lost)}
    readable = f"{library}: {count:,} items, {learned.bits} bits, model {learned.fingerprint}"
    console.result({"library": str(library), **found}, readable)


def _features(file: Path, console: Console) -> Pairs:
    from rmsh.data.open import open_pairs

    opened = open_pairs(file, skip=["labels"])
    for note in opened.notes:
        console.note(note)
    return opened.pairs


@contextmanager
def _listed(file: Path | None, console: Console) -> Iterator[list[Skipped]]:
    """A list for pictures that cannot be read, which is told at the end of the block, however that ends."""
    from rmsh.data.records import count_skipped, write_skipped

    lost: list[Skipped] = []
    try:
        yield lost
    finally:
        for sentence in count_skipped(lost):
            console.note(sentence)
        if file is not None:
            write_skipped(file, lost)
