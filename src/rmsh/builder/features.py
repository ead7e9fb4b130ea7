"""Features of the items of a build; a picture that cannot be read costs its item the picture, and is written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.data.skipped import Skipped, refuse_skipped
from rmsh.features.extract import extract
from rmsh.progress import OnProgress, ignore

if TYPE_CHECKING:
    from rmsh.builder.source import Source
    from rmsh.features.base import Encoder, Unreadable

__all__ = ["encode_source"]


def encode_source(
    source: Source, encoders: Sequence[Encoder], *, cache: Path, strict: bool = False, on_progress: OnProgress = ignore
) -> Source:
    """The same items with features in place of pictures and texts.

    Args:
        source: raw items.
        encoders: one a modality.
        cache: where features are kept.
        strict: stop where a picture cannot be read.
        on_progress: is told how far it is.

    Returns:
        The items; those of which nothing is left are gone, and written down in the origin.

    Raises:
        DataError: strict was asked for, and a picture cannot be read.
    """
    pairs = source.pairs
    unreadable: list[Unreadable] = []
    for encoder in encoders:
        pairs = extract(pairs, encoder, cache=cache, on_unreadable=unreadable.extend, on_progress=on_progress)
    skipped = _skipped(source, unreadable)
    if strict:
        refuse_skipped(skipped, source.name)
    return _without_lost(replace(source, pairs=pairs), {one.row for one in unreadable}, skipped)


def _skipped(source: Source, unreadable: Sequence[Unreadable]) -> list[Skipped]:
    """What cannot be read, as a user finds it: by file and row."""
    records, has_text = source.origin.records, source.pairs.has_text
    return [
        Skipped(
            records[one.row].file,
            records[one.row].row,
            records[one.row].id,
            "picture" if has_text[one.row] else "item",
            one.reason,
        )
        for one in unreadable
    ]


def _without_lost(source: Source, lost: set[int], skipped: Sequence[Skipped]) -> Source:
    """Take pictures that are lost from their records, and leave out items that have nothing else."""
    pairs, origin = source.pairs, source.origin
    keep = np.flatnonzero(pairs.has_image | pairs.has_text)
    records = tuple(
        replace(origin.records[row], picture=None) if row in lost else origin.records[row] for row in keep.tolist()
    )
    left = pairs if len(keep) == len(pairs) else pairs.take(keep)
    return replace(source, pairs=left, origin=replace(origin, records=records, skipped=(*origin.skipped, *skipped)))
