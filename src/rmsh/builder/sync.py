"""Bring a library to the state of its image folder: new, changed, moved and deleted files, and changed captions.

Only what changed is encoded, with the model of the library. A file that is missing is forgotten at the second sync that
does not find it, or at once with ``prune``: a disk that is not mounted never empties a library. ``sync.json`` in the
library's folder remembers the state of the folder and what was missing. Every step is complete in itself; after an
interruption, the next sync continues.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.builder.add import write_items
from rmsh.builder.source import Source, encode_source, read_raw, with_classes, with_texts
from rmsh.builder.stages import digest
from rmsh.core.cache import cache_folder
from rmsh.core.errors import InputError
from rmsh.core.files import read_json, write_json
from rmsh.core.progress import OnProgress, ignore
from rmsh.core.types import MODALITIES
from rmsh.data.readers.folder import LIBRARY_FILES, is_image_folder
from rmsh.data.records import Record, Skipped
from rmsh.library import Item
from rmsh.library.folder import read_report
from rmsh.library.photos import has_photos, insert_photos, read_photos
from rmsh.library.queries import has_vectors, image_folder, items_of_rows, rows_of
from rmsh.pipeline import restore_encoders

if TYPE_CHECKING:
    from rmsh.library import Library
    from rmsh.library.photos import ImageFile

_STATE = "sync.json"


@dataclass(frozen=True)
class Synced:
    """What a sync did: numbers of items, the IDs whose files are missing, and what was skipped."""

    added: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    missing: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True)
class _Stored:
    """The items of a library by ID, with their rows, and the image files that are known."""

    items: Mapping[str, Item]
    rows: Mapping[str, int]
    files: Mapping[str, ImageFile]  # by ID


def sync(library: Library, *, prune: bool = False, on_progress: OnProgress = ignore) -> Synced:
    """Bring a library to the state of its image folder.

    Args:
        library: open for writing, and built from a folder.
        prune: remove items whose files are missing now, instead of at the second sync that misses them.
        on_progress: called with a Progress.

    Raises:
        InputError: the library keeps its own images, or the folder is missing or has no images.
    """
    folder = folder_of(library)
    state, before = _folder_state(folder), _read_state(library.folder)
    if before["state"] == state and not before["missing"] and _knows_files(library):
        return Synced()
    stored, report = _read_stored(library), read_report(library.folder) or {}
    known = {stored.items[name].picture or "": file for name, file in stored.files.items()}
    place = report.get("options", {}).get("place", True)
    # A library built from a metadata file with a name of its own is read from it again.
    source = read_raw(
        folder / (report.get("metadata") or ""), strict=False, known=known, place=place, on_progress=on_progress
    )
    classes = report.get("classes")
    source = with_texts(source if classes is None else with_classes(source, classes))
    place_of = {record.id: place for place, record in enumerate(source.origin.records)}
    gone = [name for name in stored.items if name not in place_of]
    new = [name for name in place_of if name not in stored.items]
    moved = _moved(source, place_of, new, gone, stored)
    changed = [name for name in place_of if name in stored.items and _differs(source, place_of[name], stored)]
    skipped = [*source.origin.skipped, *_unreadable(source, stored)]
    _move(library, source, place_of, moved)
    fresh = [place_of[name] for name in new if name not in moved]
    for places, update in ((fresh, False), ([place_of[name] for name in changed], True)):
        skipped += _write(library, source, places, update=update, on_progress=on_progress)
    _write_files(library, source, stored, {*place_of} - {*changed})
    missing = [name for name in gone if name not in moved.values()]
    lost = [name for name in missing if prune or name in before["missing"]]
    for start in range(0, len(lost), 1000):
        library.remove(lost[start : start + 1000])
    left = [name for name in missing if name not in set(lost)]
    write_json(library.folder / _STATE, {"state": state, "missing": left})
    kept = {item for item in new if library.get(item) is not None}
    return Synced(len(kept) - len(moved), len(changed), len(moved), len(lost), tuple(left), tuple(skipped))


def folder_of(library: Library) -> Path:
    """The image folder of a library; InputError if it has none, or if it is missing or empty."""
    with library.reading() as connection:
        folder = image_folder(connection)
    if folder is None:
        raise InputError(f"The library {library.folder} keeps its own images; add others with `rmsh add`.")
    if not Path(folder).is_dir() or not is_image_folder(Path(folder)):
        raise InputError(
            f"The image folder {folder} of the library {library.folder} is missing or empty, and nothing was changed; "
            "mount its disk, or name its new place with `rmsh library relocate`."
        )
    return Path(folder)


def _knows_files(library: Library) -> bool:
    """Whether the library has the facts of all images; a repair deletes damaged ones."""
    missing = "SELECT 1 FROM items LEFT JOIN photos USING (row) WHERE picture IS NOT NULL AND hash IS NULL LIMIT 1"
    with library.reading() as connection:
        return has_photos(connection) and connection.execute(missing).fetchone() is None


def _folder_state(folder: Path) -> str:
    """Identifies the names, sizes and times of all files below a folder; fast, because no file is opened."""
    found, pending = [], [str(folder)]
    while pending:
        with os.scandir(pending.pop()) as opened:
            entries = [entry for entry in opened if not entry.name.startswith(".")]
        if not LIBRARY_FILES.isdisjoint(entry.name for entry in entries):
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            else:
                status = entry.stat()
                found.append((entry.path, status.st_size, status.st_mtime_ns))
    return digest(sorted(found))


def _read_state(folder: Path) -> dict[str, Any]:
    """What the last sync remembered; nothing if there was none or its file is unusable."""
    found = read_json(folder / _STATE) if (folder / _STATE).is_file() else None
    if isinstance(found, dict) and isinstance(found.get("missing"), list):
        return {"state": found.get("state"), "missing": {str(name) for name in found["missing"]}}
    return {"state": None, "missing": set()}


def _read_stored(library: Library) -> _Stored:
    with library.reading() as connection:
        items = items_of_rows(connection, rows_of(connection, "SELECT row FROM items").tolist())
        of_row = dict(read_photos(connection))
    return _Stored(
        {item.id: item for item in items.values()},
        {item.id: row for row, item in items.items()},
        {items[row].id: file for row, file in of_row.items() if row in items},
    )


def _item(source: Source, place: int) -> Item:
    """The item of a record, as it is stored."""
    record, pairs = source.origin.records[place], source.pairs
    labels = () if pairs.labels is None else np.array(pairs.class_names)[np.asarray(pairs.labels)[place] != 0].tolist()
    return Item(record.id, text=record.text, picture=record.picture, labels=tuple(labels))


def _unreadable(source: Source, stored: _Stored) -> list[Skipped]:
    """Images of stored items that cannot be read now, perhaps because they are being written."""
    reason = "the image cannot be read; the item stays as it was"
    return [
        Skipped(record.file, record.row, record.id, "picture", reason)
        for record in source.origin.records
        if record.id in stored.items and record.picture and record.picture not in source.files
    ]


def _differs(source: Source, place: int, stored: _Stored) -> bool:
    """Whether the text, the labels or the image of an item are not as stored, and the image can be read."""
    item = _item(source, place)
    now, then = source.files.get(item.picture or ""), stored.files.get(item.id)
    if item.picture and now is None:
        return False
    return item != stored.items[item.id] or (now is not None and then is not None and now.hash != then.hash)


def _moved(
    source: Source, place_of: Mapping[str, int], new: Iterable[str], gone: Iterable[str], stored: _Stored
) -> dict[str, str]:
    """New IDs whose image and text are those of an item that is gone, and its ID."""
    by_content = {(stored.files[name].hash, stored.items[name].text): name for name in gone if name in stored.files}
    found = {}
    for name in new:
        record: Record = source.origin.records[place_of[name]]
        file = source.files.get(record.picture or "")
        if file is not None and (old := by_content.pop((file.hash, record.text), None)) is not None:
            found[name] = old
    return found


def _move(library: Library, source: Source, place_of: Mapping[str, int], moved: Mapping[str, str]) -> None:
    """Give items that were moved their new ID and path, with the codes they have."""
    for name, old in moved.items():
        item, codes = _item(source, place_of[name]), {}
        for modality in MODALITIES:
            if len(found := library.codes([old], modality)):
                codes[modality] = replace(found, ids=np.array([name]))
        files = {name: source.files[item.picture or ""]}
        library.add([item], codes, model=library.generation().fingerprint, files=files)
        library.remove([old])


def _write(
    library: Library, source: Source, places: list[int], *, update: bool, on_progress: OnProgress
) -> tuple[Skipped, ...]:
    """Encode some records and write them as new or changed items; returns what was skipped."""
    if not places:
        return ()
    model, part = library.model(), source.take(np.array(places))
    with library.reading() as connection:
        vectors = has_vectors(connection)
    encoders = restore_encoders(model, part.pairs)
    part = encode_source(part, encoders, cache=cache_folder(), on_progress=on_progress)
    skipped = part.origin.skipped[len(source.origin.skipped) :]
    if len(part.pairs):
        write_items(library, model, part, copy_images=False, vectors=vectors, update=update, on_progress=on_progress)
    return skipped


def _write_files(library: Library, source: Source, stored: _Stored, names: Iterable[str]) -> None:
    """Store the state of files that were touched, or that the library did not know yet."""
    picture_of = {record.id: record.picture or "" for record in source.origin.records}
    known = {name: source.files[picture_of[name]] for name in names if picture_of[name] in source.files}
    fresh = {
        stored.rows[name]: file
        for name, file in known.items()
        if name in stored.rows and stored.files.get(name) != file
    }
    if fresh:
        with library.transaction() as connection:
            insert_photos(connection, fresh)
