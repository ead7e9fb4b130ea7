"""Write items with their codes into a library: those of a build, or more of them later."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.builder.source import Source, encode_source, read_raw, with_classes, with_texts
from rmsh.core.cache import cache_folder
from rmsh.core.errors import InputError
from rmsh.core.files import make_folder
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.library import Item
from rmsh.library.folder import read_report
from rmsh.library.queries import count_items, has_vectors, image_folder
from rmsh.pipeline import codes_of, restore_encoders

if TYPE_CHECKING:
    from rmsh.data.records import Skipped
    from rmsh.library import Library
    from rmsh.model import Model

IMAGES = "pictures"  # folder of the images that a library keeps itself; its name is part of the stored format
_BATCH = 1000  # items per transaction


@dataclass(frozen=True)
class Added:
    """The result of :func:`add`: numbers of new items and of ids that existed already, and what was skipped."""

    added: int
    existing: int
    skipped: tuple[Skipped, ...]


def add(library: Library, data: str | Path, *, strict: bool = False, on_progress: OnProgress = ignore) -> Added:
    """Add the items whose ids are new to a library, encoded with its model and labelled as in its build.

    A library built from shards keeps copies of its images. One built from a folder reads them there, so new images must
    be in that folder too.

    Args:
        library: open for writing.
        data: as for :func:`rmsh.builder.build`.
        strict: fail instead of skipping invalid items.
        on_progress: called with a Progress.

    Raises:
        DataError: the data contains features; or something would be skipped, and ``strict`` is set.
        InputError: images are outside the library's image folder, or its model was trained on features.
    """
    source = read_raw(data, strict=strict)
    classes = (read_report(library.folder) or {}).get("classes")
    source = with_texts(source if classes is None else with_classes(source, classes))
    is_new = np.array([library.get(record.id) is None for record in source.origin.records], dtype=np.bool_)
    existing = int((~is_new).sum())
    if not is_new.any():
        return Added(0, existing, source.origin.skipped)
    source, model = source.take(np.flatnonzero(is_new)), library.model()
    with library.reading() as connection:
        folder = image_folder(connection)  # None if the library keeps copies of its images
        vectors = has_vectors(connection) or not count_items(connection)  # all items or none
    if folder is not None:
        source = _relative_to(source, Path(folder))
    encoders = restore_encoders(model, source.pairs)
    source = encode_source(source, encoders, cache=cache_folder(), strict=strict, on_progress=on_progress)
    write_items(library, model, source, copy_images=folder is None, vectors=vectors, on_progress=on_progress)
    return Added(len(source.pairs), existing, source.origin.skipped)


def _relative_to(source: Source, library_images: Path) -> Source:
    """Make the image paths relative to the library's image folder."""
    folder, records = source.origin.folder.resolve(), source.origin.records
    if not any(record.picture for record in records):
        return source
    if not folder.is_relative_to(library_images.resolve()):
        raise InputError(
            f"The images are in {folder}, but the library reads its images from {library_images}; move them there and "
            "give that folder. Items that are in the library already stay as they are."
        )
    prefix = folder.relative_to(library_images.resolve())
    moved = (
        record if record.picture is None else replace(record, picture=(prefix / record.picture).as_posix())
        for record in records
    )
    return replace(source, origin=replace(source.origin, records=tuple(moved)))


def write_items(
    library: Library,
    model: Model,
    source: Source,
    *,
    copy_images: bool,
    vectors: bool = True,
    update: bool = False,
    on_progress: OnProgress = ignore,
) -> None:
    """Write items with features into a library in batches, with vectors and with copies of their images if wanted.

    ``update`` replaces existing items.
    """
    if copy_images:
        _copy_images(source, library.folder / IMAGES)
    prefix, count, start = f"{IMAGES}/" if copy_images else "", len(source.pairs), time.perf_counter()
    pairs, names = source.pairs, np.array(source.pairs.class_names)
    labels = np.zeros((count, 0)) if pairs.labels is None else pairs.labels
    for first in range(0, count, _BATCH):
        rows = np.arange(first, min(first + _BATCH, count))
        items = [
            Item(
                record.id,
                text=record.text,
                picture=None if record.picture is None else prefix + record.picture,
                labels=tuple(names[labels[row] != 0].tolist()),
            )
            for row, record in zip(rows, source.origin.records[first : first + _BATCH], strict=True)
        ]
        files = {
            record.id: file
            for record in source.origin.records[first : first + _BATCH]
            if (file := source.files.get(record.picture or "")) is not None
        }
        codes = codes_of(model, pairs, rows, vectors=vectors)
        library.add(items, codes, model=model.fingerprint, files=files, replace=update)
        on_progress(Progress("add items", first + len(rows), count, "item", time.perf_counter() - start))


def _copy_images(source: Source, into: Path) -> None:
    """Link image files into a folder, or copy them if the disk has no links."""
    for record in source.origin.records:
        if record.picture is None or (into / record.picture).exists():
            continue
        target = into / record.picture
        make_folder(target.parent)
        try:
            os.link(source.origin.folder / record.picture, target)
        except OSError:
            shutil.copy2(source.origin.folder / record.picture, target)
