"""More items for a library that is there: read, coded by the library's own model, and added where they are new."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.builder.build import read_report
from rmsh.builder.items import PICTURES, add_items, own_pictures
from rmsh.builder.source import Source, encode_source, read_raw, with_classes, with_texts
from rmsh.core.cache import cache_folder
from rmsh.core.errors import InputError
from rmsh.core.progress import OnProgress, ignore
from rmsh.features import extract

if TYPE_CHECKING:
    from rmsh.core.types import IntArray
    from rmsh.data.records import Origin, Skipped
    from rmsh.library import Library

__all__ = ["Added", "add"]


@dataclass(frozen=True)
class Added:
    """What became of the items that were given.

    Args:
        added: how many are new in the library.
        there: how many ids were in it already; these items were left as they are.
        skipped: what was left out.
    """

    added: int
    there: int
    skipped: tuple[Skipped, ...]


def add(library: Library, data: str | Path, *, strict: bool = False, on_progress: OnProgress = ignore) -> Added:
    """Add the items of some data whose ids are new; what the build did for labels and texts is done for them too.

    A library keeps its own pictures, which are copied into it, or finds them in the folder it was built from; then new
    pictures must lie in that folder too.

    Args:
        library: open for writing.
        data: as for :func:`rmsh.builder.build`.
        strict: stop over anything that would be left out.
        on_progress: is told how far it is.

    Raises:
        DataError: the data is not raw, or strict was asked for.
        InputError: pictures lie outside the library's folder of pictures, or its model takes features only.
    """
    source = _like_build(read_raw(data, strict=strict), read_report(library.folder))
    new = np.array([library.get(record.id) is None for record in source.origin.records], dtype=np.bool_)
    source = _taken(source, np.flatnonzero(new))
    root = _picture_folder(library)
    if root is not None:
        source = replace(source, origin=_below(source.origin, root))
    encoded = _encoded(library, source, strict=strict, on_progress=on_progress) if new.any() else source
    if root is None:
        pictures = [record.picture for record in encoded.origin.records if record.picture is not None]
        own_pictures(source.origin.folder, pictures, into=library.folder)
    rows = np.arange(len(encoded.pairs))
    inside = "" if root is not None else f"{PICTURES}/"
    add_items(library, library.model(), encoded, rows=rows, inside=inside, on_progress=on_progress)
    return Added(len(rows), int((~new).sum()), encoded.origin.skipped)


def _like_build(source: Source, report: Mapping[str, Any] | None) -> Source:
    """Labels found in texts, and labels taken for texts, where the build of the library did so."""
    classes = None if report is None else report.get("classes")
    return with_texts(source if classes is None else with_classes(source, classes))


def _taken(source: Source, rows: IntArray) -> Source:
    records = tuple(source.origin.records[row] for row in rows.tolist())
    return replace(source, pairs=source.pairs.take(rows), origin=replace(source.origin, records=records))


def _picture_folder(library: Library) -> Path | None:
    """The folder that the library finds pictures in; None where it keeps its own."""
    with library.reading() as connection:
        (source,) = connection.execute("SELECT source FROM library").fetchone()
    return None if source is None else Path(source)


def _below(origin: Origin, root: Path) -> Origin:
    """The records with paths of pictures as the library counts them.

    Raises:
        InputError: the pictures are elsewhere.
    """
    folder = origin.folder.resolve()
    if not any(record.picture for record in origin.records):
        return origin
    if not folder.is_relative_to(root.resolve()):
        raise InputError(
            f"The pictures lie in {folder}, and the library finds its pictures in {root}; move them there, and give "
            "that folder: what is in the library already is left as it is."
        )
    inside = folder.relative_to(root.resolve())
    records = (
        record if record.picture is None else replace(record, picture=(inside / record.picture).as_posix())
        for record in origin.records
    )
    return replace(origin, records=tuple(records))


def _encoded(library: Library, source: Source, *, strict: bool, on_progress: OnProgress) -> Source:
    model = library.model()
    missing = [m for m in model.functions if source.pairs.column(m) is not None and m not in model.encoders]
    if missing:
        raise InputError(
            f"The model of {library.folder} was trained on features of {missing[0]}s that were made elsewhere; add "
            "such items from Python with their codes."
        )
    encoders = {m: extract.restore(model.encoders[m]) for m in model.functions if source.pairs.column(m) is not None}
    return encode_source(source, encoders, cache=cache_folder(), strict=strict, on_progress=on_progress)
