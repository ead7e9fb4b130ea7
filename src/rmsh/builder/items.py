"""Putting items with their codes into a library: all of a build, or more of them later."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.core.types import MODALITIES
from rmsh.library import Item

if TYPE_CHECKING:
    from rmsh.builder.source import Source
    from rmsh.codes import Codes
    from rmsh.core.types import IntArray, Modality
    from rmsh.library import Library
    from rmsh.model import Model

PICTURES = "pictures"  # the folder of a library that keeps its own pictures
_BATCH = 1000  # items of one transaction


def add_items(
    library: Library,
    model: Model,
    source: Source,
    *,
    rows: IntArray,
    inside: str = "",
    on_progress: OnProgress = ignore,
) -> None:
    """Add items with features, batch by batch.

    Args:
        library: open for writing.
        model: the library's.
        source: items with features.
        rows: which of them.
        inside: where the paths of pictures start, below the library's folder of pictures.
        on_progress: is told how far it is.
    """
    start = time.perf_counter()
    for first in range(0, len(rows), _BATCH):
        batch = rows[first : first + _BATCH]
        library.add(_items(source, batch, inside), _codes(model, source, batch), model=model.fingerprint)
        on_progress(Progress("add items", first + len(batch), len(rows), "item", time.perf_counter() - start))


def _items(source: Source, rows: IntArray, inside: str) -> list[Item]:
    pairs, names = source.pairs, np.array(source.pairs.class_names)
    labels = np.zeros((len(pairs), 0)) if pairs.labels is None else pairs.labels
    return [
        Item(
            record.id,
            text=record.text,
            picture=None if record.picture is None else f"{inside}{record.picture}",
            labels=tuple(names[labels[row] != 0].tolist()),
        )
        for row in rows.tolist()
        for record in [source.origin.records[row]]
    ]


def _codes(model: Model, source: Source, rows: IntArray) -> dict[Modality, Codes]:
    coded: dict[Modality, Codes] = {}
    for modality in MODALITIES:
        present = rows[source.pairs.has(modality)[rows]]
        if present.size:
            features = source.pairs.features(modality)[present]
            coded[modality] = model.encode(features, modality, ids=source.pairs.ids[present])
    return coded


def own_pictures(folder: Path, pictures: Sequence[str], *, into: Path) -> None:
    """Give a library pictures of its own: links to the same files where the disk allows, or else copies."""
    for name in pictures:
        target = into / PICTURES / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            try:
                os.link(folder / name, target)
            except OSError:
                shutil.copy2(folder / name, target)
