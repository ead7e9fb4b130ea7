"""Read the state and the facts of image files: of all files of a build, and of those that changed for a sync."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rmsh.core.errors import DataError, FormatError
from rmsh.core.files import make_folder, open_regular, read_json, write_json
from rmsh.core.progress import OnProgress, counter, ignore
from rmsh.data.records import Origin, locate
from rmsh.features.decoding import processors
from rmsh.features.extract import file_state
from rmsh.features.images import read_photo
from rmsh.features.photo import Photo
from rmsh.library.photos import ImageFile


def read_files(
    origin: Origin,
    names: Iterable[str],
    *,
    known: Mapping[str, ImageFile] | Path,
    place: bool = True,
    on_progress: OnProgress = ignore,
) -> dict[str, ImageFile]:
    """The image files of data by name; those that cannot be read are left out, because their encoder reports them.

    ``known`` are files as they were before, or a JSON file of them, which is updated; a file with the same size and
    time of change is not read again. ``place`` keeps where an image was taken.
    """
    names, before = list(names), _load(known) if isinstance(known, Path) else known
    report = counter(on_progress, "read files", len(names), "file")

    def read(name: str) -> ImageFile | None:
        folder, path = locate(name, origin.folder, origin.others)
        state, earlier = file_state(path), before.get(name)
        if state is None or (earlier is not None and [earlier.size, earlier.modified] == state):
            return earlier if state else None
        try:
            with open_regular(path, inside=folder) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if earlier is not None and earlier.hash == digest:
                return replace(earlier, size=state[0], modified=state[1])
            return ImageFile(state[0], state[1], digest, read_photo(path))
        except (DataError, OSError):
            return None

    found = {}
    with ThreadPoolExecutor(processors(), thread_name_prefix="rmsh-files") as pool:
        for count, (name, file) in enumerate(zip(names, pool.map(read, names), strict=True), start=1):
            if file is not None:
                found[name] = file
            report(count)
    if isinstance(known, Path) and found != before:
        make_folder(known.parent, mode=0o700)
        write_json(known, {name: _to_json(file) for name, file in found.items()})
    return found if place else {name: replace(f, photo=replace(f.photo, place=None)) for name, f in found.items()}


def _to_json(file: ImageFile) -> dict[str, Any]:
    return asdict(file) | {"photo": asdict(file.photo) | {"look": file.photo.look.hex()}}


def _load(path: Path) -> dict[str, ImageFile]:
    """Files as they were written; an unusable list is made again."""
    if not path.is_file():
        return {}
    with suppress(FormatError, AttributeError, KeyError, TypeError, ValueError):
        return {
            str(name): ImageFile(
                int(file["size"]), int(file["modified"]), str(file["hash"]), Photo.parse(file["photo"])
            )
            for name, file in read_json(path).items()
        }
    return {}
