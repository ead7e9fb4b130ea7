"""Bring a library to the state of its image folders: new, changed, moved and deleted files, and changed captions.

Only what changed is encoded, with the model of the library. A file that is missing is forgotten at the second sync that
does not find it, or at once with ``prune``. A disk that is not mounted never empties a library: the items of a folder
that is missing or empty stay, and meanwhile nothing is forgotten. ``sync.json`` in the library's folder remembers the
state of the folders and what was missing. Every step is complete in itself; after an interruption, the next sync
continues.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.builder.add import is_present, read_followed, write_items
from rmsh.builder.source import Source, encode_source
from rmsh.builder.stages import digest
from rmsh.core.errors import InputError
from rmsh.core.files import cache_folder, read_json, write_json
from rmsh.core.progress import OnProgress, ignore
from rmsh.core.types import MODALITIES
from rmsh.data.readers.folder import LIBRARY_FILES
from rmsh.data.records import Record, Skipped, folder_name
from rmsh.features.extract import file_state
from rmsh.library.folder import forget_folder, image_folders
from rmsh.library.photos import ImageFile, has_photos, insert_photos, read_photos
from rmsh.library.queries import has_vectors, items_of_rows, rows_of
from rmsh.pipeline import restore_encoders

if TYPE_CHECKING:
    from rmsh.library import Item, Library

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
    """Bring a library, open for writing, to the state of its image folders; InputError as :func:`folders_of`.

    ``prune`` removes items whose files are missing now, instead of at the second sync that misses them.
    """
    folders = folders_of(library)
    absent = {name for name, path in folders.items() if not is_present(path)}
    reason = "the folder is missing or empty; its items stay as they were"
    skipped = [Skipped(str(folders[name]), None, "", "item", reason) for name in sorted(absent)]
    state, before = _state_of(folders[name] for name in folders if name not in absent), _read_state(library.folder)
    if before["state"] == state and (absent or not before["missing"]) and _knows_files(library):
        return Synced(skipped=tuple(skipped))
    stored = _read_stored(library)
    known = {stored.items[name].picture or "": file for name, file in stored.files.items()}
    source = read_followed(library, folders, known, on_progress)
    place_of = {record.id: place for place, record in enumerate(source.origin.records)}
    gone = [
        name
        for name, item in stored.items.items()
        if name not in place_of and folder_name(item.picture or name, folders) not in absent
    ]
    new = [name for name in place_of if name not in stored.items]
    moved = _moved(source, place_of, new, gone, stored)
    changed = [name for name in place_of if name in stored.items and _differs(source, place_of[name], stored)]
    skipped += [*source.origin.skipped, *_unreadable(source, stored)]
    _move(library, source, place_of, moved)
    fresh = [place_of[name] for name in new if name not in moved]
    for places, update in ((fresh, False), ([place_of[name] for name in changed], True)):
        skipped += _write(library, source, places, update=update, on_progress=on_progress)
    _write_files(library, source, stored, {*place_of} - {*changed})
    former = set(moved.values())
    missing = [name for name in gone if name not in former]
    lost = [name for name in missing if not absent and (prune or name in before["missing"])]
    for start in range(0, len(lost), 1000):
        library.remove(lost[start : start + 1000])
    forgotten = set(lost)
    left = [name for name in missing if name not in forgotten]
    with library.transaction() as connection:
        for name in (name for name, path in folders.items() if name and not path.exists()):
            forget_folder(connection, name)
    write_json(library.folder / _STATE, {"state": state, "missing": [*before["missing"]] if absent else left})
    kept = {item for item in new if library.get(item) is not None}
    return Synced(len(kept) - len(moved), len(changed), len(moved), len(lost), tuple(left), tuple(skipped))


def folders_of(library: Library) -> dict[str, Path]:
    """The image folders of a library by name; InputError if it has none, or if all are missing or empty."""
    with library.reading() as connection:
        folders = image_folders(connection, library.folder)
    if not folders:
        raise InputError(f"The library {library.folder} keeps its own images; add others with `rmsh add`.")
    if not any(is_present(path) for path in folders.values()):
        found = f"The image folder {folders['']} is missing or empty, and nothing was changed"
        raise InputError(f"{found}; mount its disk, or name its new place with `rmsh library relocate`.")
    return folders


def _knows_files(library: Library) -> bool:
    """Whether the library has the facts of all images; a repair deletes damaged ones."""
    missing = "SELECT 1 FROM items LEFT JOIN photos USING (row) WHERE picture IS NOT NULL AND hash IS NULL LIMIT 1"
    with library.reading() as connection:
        return has_photos(connection) and connection.execute(missing).fetchone() is None


def _state_of(folders: Iterable[Path]) -> str:
    """Identifies the names, sizes and times of all files in some folders; fast, because no file is opened."""
    found: list[tuple[str, int, int]] = []
    pending: list[str] = []
    for path in folders:
        if path.is_dir():
            pending.append(str(path))
        else:
            found += ((str(one), *(file_state(one) or (0, 0))) for one in (path, path.with_suffix(".txt")))
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
        files = {items[row].id: file for row, file in read_photos(connection) if row in items}
    return _Stored({item.id: item for item in items.values()}, {item.id: row for row, item in items.items()}, files)


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
    item = source.item(place)
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
    for start in range(0, len(moved), 1000):
        new_of = {old: name for name, old in [*moved.items()][start : start + 1000]}
        items, codes = [source.item(place_of[name]) for name in new_of.values()], {}
        for modality in MODALITIES:
            if len(found := library.codes([*new_of], modality)):
                codes[modality] = replace(found, ids=np.array([new_of[old] for old in found.ids.tolist()]))
        files = {item.id: source.files[item.picture or ""] for item in items}
        library.add(items, codes, model=library.generation().fingerprint, files=files)
        library.remove([*new_of])


def _write(
    library: Library, source: Source, places: list[int], *, update: bool, on_progress: OnProgress
) -> tuple[Skipped, ...]:
    """Encode some records and write them as new or changed items; returns what was skipped."""
    if not places:
        return ()
    model, part = library.model(), source.take(np.array(places))
    with library.reading() as connection:
        vectors = has_vectors(connection)
    part = encode_source(part, restore_encoders(model, part.pairs), cache=cache_folder(), on_progress=on_progress)
    if len(part.pairs):
        write_items(library, model, part, copy_images=False, vectors=vectors, update=update, on_progress=on_progress)
    return part.origin.skipped[len(source.origin.skipped) :]


def _write_files(library: Library, source: Source, stored: _Stored, names: Iterable[str]) -> None:
    """Store the state of files that were touched, or that the library did not know yet."""
    picture_of = {record.id: record.picture or "" for record in source.origin.records}
    known = {name: source.files[picture_of[name]] for name in names if picture_of[name] in source.files}
    changed = {name: file for name, file in known.items() if stored.files.get(name) != file}
    fresh = {stored.rows[name]: file for name, file in changed.items() if name in stored.rows}
    if fresh:
        with library.transaction() as connection:
            insert_photos(connection, fresh)
