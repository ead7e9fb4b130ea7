"""Re-encode a library with another model.

The library stays searchable with the old codes meanwhile. Images and texts are encoded with the new model's encoders;
for a model trained on feature matrices, pass the features of the items with --features. If interrupted, run the same
command again to continue. Old codes are kept until `rmsh library compact`.

An item whose image can no longer be read is encoded from its text alone and reported. If it has no text either, the
library keeps its old codes until the image is back or the item is removed, and the command is run again.

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


def recode(
    library: Annotated[Path, typer.Argument(metavar="LIBRARY", help="Library folder.")],
    model: Annotated[Path, typer.Option(help="Folder of the new model.")],
    *,
    features: Annotated[Path | None, typer.Option(help="Matrix file with the features of the items by ID.")] = None,
    skipped: Annotated[Path | None, typer.Option(help="Write unreadable images to this .csv file.")] = None,
    strict: Annotated[bool, typer.Option(help="Fail if an image cannot be read.")] = False,
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
        console.note(f"{library}: {target.count():,} items get {learned.bits}-bit codes; the library stays searchable.")
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
    """A list of unreadable images, reported when the block ends, even after an error."""
    from rmsh.data.records import count_skipped, write_skipped

    lost: list[Skipped] = []
    try:
        yield lost
    finally:
        for sentence in count_skipped(lost):
            console.note(sentence)
        if file is not None:
            write_skipped(file, lost)
