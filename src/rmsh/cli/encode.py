"""Encode images and texts with a trained model.

The output file contains the codes of both modalities, IDs, labels and the split, as `rmsh evaluate` reads them.

Example:
    rmsh encode model generated:2000 --out codes.npz
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from rmsh.cli.console import Console, Json, Quiet


def encode(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="Data to encode, as for `rmsh train`.")],
    out: Annotated[Path, typer.Option(help="Codes file to write (.npz).")],
    *,
    validation: Annotated[bool, typer.Option(help="Use the split of `rmsh train --validation`.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    from rmsh import pipeline
    from rmsh.cli.train import tell_unreadable
    from rmsh.core.cache import cache_folder
    from rmsh.data.open import open_pairs
    from rmsh.model import load

    console = Console(json=json, quiet=quiet)
    learned = load(model)
    opened = open_pairs(data)
    for note in opened.notes:
        console.note(note)
    opened = pipeline.for_validation(opened) if validation else opened
    with console.progress() as report:
        codes = pipeline.code(
            learned, opened, cache=cache_folder(), on_skipped=partial(tell_unreadable, console), on_progress=report
        )
    codes.save(out)
    count = len(codes.ids)
    console.result(
        {"codes": str(out), "items": count, "bits": codes.bits, "model": learned.fingerprint},
        f"{out}: {count:,} items, {codes.bits} bits",
    )
