"""The pictures at hand of some data, by the ids of its items: files of the data itself, or the archive beside it."""

from __future__ import annotations

import base64
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rmsh.data.pairs import is_raw
from rmsh.features.images import read_picture

if TYPE_CHECKING:
    from rmsh.data.open import Opened

__all__ = ["Gallery", "open_gallery"]

ARCHIVE = "images.tar"  # pictures named by a padded id, as coco66k has them
_SIDE = 120


@dataclass(frozen=True)
class Gallery:
    """Where pictures are.

    Args:
        files: id -> a file, or the name inside the archive.
        archive: of all of them, None where each is a file.
    """

    files: Mapping[str, str]
    archive: Path | None = None

    def __contains__(self, name: str) -> bool:
        return name in self.files

    def thumbnail(self, name: str) -> str:
        """A small JPEG of an item's picture as base64."""
        picture = read_picture(self._content(name))
        picture.thumbnail((_SIDE, _SIDE))
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=82)
        return base64.b64encode(file.getvalue()).decode()

    def _content(self, name: str) -> bytes:
        if self.archive is None:
            return Path(self.files[name]).read_bytes()
        with tarfile.open(self.archive) as archive:
            file = archive.extractfile(self.files[name])
            return file.read() if file is not None else b""


def open_gallery(opened: Opened) -> Gallery:
    """The pictures of some data; an empty gallery where it has features only."""
    pairs = opened.pairs
    if pairs.images is not None and is_raw(pairs.images):
        shown = zip(pairs.ids.tolist(), pairs.images.tolist(), pairs.has_image.tolist(), strict=True)
        return Gallery({name: path for name, path, there in shown if there})
    archive = Path(pairs.source) / ARCHIVE
    if not archive.is_file():
        return Gallery({})
    with tarfile.open(archive) as members:
        names = members.getnames()
    return Gallery({Path(name).stem.lstrip("0") or "0": name for name in names}, archive)
