"""Write items with their codes into a library: those of a build, or more of them later."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rmsh.builder.source import Source, encode_source, read_raw, with_classes, with_files, with_texts
from rmsh.core.errors import DataError, InputError
from rmsh.core.files import cache_folder, make_folder
from rmsh.core.progress import OnProgress, Progress, counter, ignore
from rmsh.data.readers.folder import is_image, is_image_folder, read_folders
from rmsh.data.readers.packed_images import tables_in
from rmsh.data.records import METADATA_SUFFIXES, Skipped, count_skipped, refuse_skipped, to_pairs
from rmsh.library import Library
from rmsh.library.folder import MANIFEST, image_folders, read_report, set_folder
from rmsh.library.photos import ImageFile, read_photos
from rmsh.library.queries import count_items, has_vectors, rows_of_ids
from rmsh.pipeline import codes_of, restore_encoders

if TYPE_CHECKING:
    from rmsh.model import Model
    from rmsh.shards import Shards

IMAGES = "pictures"  # folder of the images that a library keeps itself; its name is part of the stored format
_BATCH = 1000  # items per transaction


@dataclass(frozen=True)
class Added:
    """The result of :func:`add`: numbers of new items and of ids that existed already, and what was skipped."""

    added: int
    existing: int
    skipped: tuple[Skipped, ...]


def add(library: Library, *data: str | Path, strict: bool = False, on_progress: OnProgress = ignore) -> Added:
    """Add the items whose ids are new to a library, open for writing; encoded with its model, labelled as in its build.

    A library built from shards keeps copies of its images. One built from a folder reads them where they are: a folder,
    an image or a metadata file outside its folders becomes a further one, which :func:`rmsh.builder.sync.sync` follows.

    Raises:
        DataError: the data contains features or no item; or something would be skipped, and ``strict`` is set.
        InputError: the images cannot be read where they are, or the model was trained on features.
    """
    with library.reading() as connection:
        folders = image_folders(connection, library.folder)
    if folders:
        return _add(library, _from_folders(library, data, folders, on_progress), strict=strict, on_progress=on_progress)
    images = {Path(one).name: Path(one) for one in data if is_image(str(one))}
    others = [one for one in data if not is_image(str(one))]
    if len(images) + len(others) < len(data):
        raise InputError("Two of the images have the same name; a library that keeps its images needs different names.")
    sources = [read_raw(one, strict=strict) for one in others]
    if images:
        sources.append(with_files(_read(images, Path(), images), known={}, place=True, on_progress=on_progress))
    done = [_add(library, _labelled(library, one), strict=strict, on_progress=on_progress) for one in sources]
    skipped = tuple(one for each in done for one in each.skipped)
    return Added(sum(each.added for each in done), sum(each.existing for each in done), skipped)


def _add(library: Library, source: Source, *, strict: bool, on_progress: OnProgress) -> Added:
    with library.reading() as connection:
        known = {name for (name,) in connection.execute("SELECT id FROM items")}
        keeps_images = not image_folders(connection, library.folder)
        vectors = has_vectors(connection) or not count_items(connection)  # all items or none
    if strict:
        refuse_skipped(source.origin.skipped, source.name)
    is_new = np.array([record.id not in known for record in source.origin.records], dtype=np.bool_)
    source, model = source.take(np.flatnonzero(is_new)), library.model()
    if len(source.pairs):
        encoders = restore_encoders(model, source.pairs)
        source = encode_source(source, encoders, cache=cache_folder(), strict=strict, on_progress=on_progress)
    with library.transaction() as connection:
        for name, path in ({} if keeps_images else source.origin.others).items():
            set_folder(connection, library.folder, name, path)
    write_items(library, model, source, copy_images=keeps_images, vectors=vectors, on_progress=on_progress)
    return Added(len(source.pairs), int((~is_new).sum()), source.origin.skipped)


def _from_folders(
    library: Library, data: Sequence[str | Path], folders: dict[str, Path], on_progress: OnProgress
) -> Source:
    """The items of some of a library's folders, images and metadata files, or of further ones."""
    metadata = (read_report(library.folder) or {}).get("metadata")
    chosen = [_place(one, folders, metadata) for one in data]

    def is_chosen(path: str) -> bool:
        return any(path == one or path.startswith(f"{one}/") or not one for one in chosen)

    with library.reading() as connection:
        pictures = dict(connection.execute("SELECT row, picture FROM items WHERE picture IS NOT NULL"))
        known = {pictures[row]: file for row, file in read_photos(connection) if row in pictures}
    source = read_followed(library, folders, known, on_progress)
    rows = [row for row, one in enumerate(source.origin.records) if is_chosen(one.picture or one.file)]
    skipped = tuple(one for one in source.origin.skipped if is_chosen(one.file))
    if not rows:
        found = "; ".join(count_skipped(skipped)) or "no image or text was found"
        raise DataError(f"{', '.join(map(str, data))}: nothing can be added ({found}); give images or their folder.")
    source = source.take(np.array(rows))
    return replace(source, origin=replace(source.origin, skipped=skipped))


def _place(data: str | Path, folders: dict[str, Path], metadata: str | None) -> str:
    """What the paths of added images begin with; a folder that is in none of the library's is added to them."""
    path = Path(data).resolve()
    table = path.is_file() and path.suffix.lower() in METADATA_SUFFIXES
    if path.suffix.lower() == ".tar" or tables_in(path):
        raise InputError(f"{data} has its images packed; unpack them into a folder, from which the library reads.")
    if not (path.is_dir() or table or (path.is_file() and is_image(path.name))):
        read_raw(data, strict=False)  # raises, because it is not there or has features
    for name, root in folders.items():
        if path == root:
            return name
        if path.is_relative_to(root) and (not table or path.stem == "metadata" or path.name == metadata):
            return "/".join(filter(None, (name, *(path.parent if table else path).relative_to(root).parts)))
        if root.is_dir() and root.is_relative_to(path):
            raise InputError(f"{data} contains {root}, a folder of the library; give the folders next to that one.")
    name = re.sub(r"[^\w .+()-]", "_", path.name).strip(" .") or "folder"
    stem, suffix, number = *os.path.splitext(name), 1
    while name in folders or ((taken := folders[""] / name).exists() and taken != path):
        number += 1
        name = f"{stem}-{number}{suffix}"
    folders[name] = path
    return name


def read_followed(
    library: Library, folders: Mapping[str, Path], known: Mapping[str, ImageFile], on_progress: OnProgress
) -> Source:
    """Read the items of a library's folders that are present; ``known`` are the files that the library knows."""
    report = read_report(library.folder) or {}
    parts = {name: path for name, path in folders.items() if is_present(path)}
    if "" in parts and report.get("metadata"):  # a metadata file with a name of its own
        parts[""] /= report["metadata"]
        if not parts[""].is_file():
            raise DataError(f"The library was built from {parts['']}, which is missing; restore it.")
    source = _read(parts, folders[""], {name: path for name, path in folders.items() if name})
    place = report.get("options", {}).get("place", True)
    return _labelled(library, with_files(source, known=known, place=place, on_progress=on_progress))


def _read(parts: Mapping[str, Path], folder: Path, others: Mapping[str, Path]) -> Source:
    origin, notes = read_folders(parts, folder, others)
    pairs = to_pairs(origin.records, folder=folder, source=str(folder), others=others)
    return Source(pairs, origin, tuple(notes), folder.name)


def is_present(path: Path) -> bool:
    """Whether an image folder of a library is there and not empty; a single image may be missing from its folder."""
    if path.is_dir():
        return is_image_folder(path)
    return path.is_file() or (is_image(path.name) and path.parent.is_dir())


def _labelled(library: Library, source: Source) -> Source:
    """Items with labels and texts as in the build of a library."""
    report = read_report(library.folder) or {}
    source = replace(source, learn_from=report.get("learn_from", source.learn_from))
    return with_texts(source if report.get("classes") is None else with_classes(source, report["classes"]))


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
    """Write items with features in batches, with vectors and copies of images if wanted; ``update`` replaces items."""
    if copy_images:
        _copy_images(source, library.folder / IMAGES)
    prefix, count, start = f"{IMAGES}/" if copy_images else "", len(source.pairs), time.perf_counter()
    for first in range(0, count, _BATCH):
        rows = np.arange(first, min(first + _BATCH, count))
        items = [source.item(row, prefix=prefix) for row in rows.tolist()]
        records = source.origin.records[first : first + _BATCH]
        files = {r.id: source.files[r.picture] for r in records if r.picture and r.picture in source.files}
        codes = codes_of(model, source.pairs, rows, vectors=vectors)
        library.add(items, codes, model=model.fingerprint, files=files, replace=update)
        on_progress(Progress("add items", first + len(rows), count, "item", time.perf_counter() - start))


def load_shards(
    shards: Shards, folder: Path, *, images: Path | None = None, on_progress: OnProgress = ignore
) -> tuple[int, int]:
    """Create a library from shards, or add their new items to it; returns how many are new, and how many there are.

    ``images`` is the folder that the paths of images refer to. CodesError if the library has codes of another model.
    """
    if not (folder / MANIFEST).is_file():
        Library.create(folder, shards.model(), source=images).close()
    report = counter(on_progress, "load shards", len(shards.manifest["shards"]), "shard")
    with Library.open(folder, writable=True) as library:
        before = library.count()
        for number in range(len(shards.manifest["shards"])):
            for block in shards.read(number):
                with library.reading() as connection:
                    known = rows_of_ids(connection, [one.item.id for one in block])
                new = [one for one in block if one.item.id not in known]
                library.add((one.item for one in new), shards.codes(new), model=shards.manifest["model"])
            report(number + 1)
        library.write_snapshot()
        return library.count() - before, library.count()


def _copy_images(source: Source, into: Path) -> None:
    """Link image files into a folder, or copy them if the disk has no links."""
    for record in source.origin.records:
        if record.picture is None or (target := into / record.picture).exists():
            continue
        make_folder(target.parent)
        try:
            os.link(source.origin.path(record.picture), target)
        except OSError:
            shutil.copy2(source.origin.path(record.picture), target)
