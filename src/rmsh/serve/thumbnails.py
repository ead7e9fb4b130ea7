"""Thumbnails for the page, rendered from the pixels, so that no metadata is passed on, and cached."""

from __future__ import annotations

import threading
from collections import OrderedDict
from hashlib import sha256
from pathlib import Path

from rmsh.core.errors import DataError
from rmsh.features.extract import file_state
from rmsh.features.images import thumbnail
from rmsh.serve.limits import MOST_PIXELS

_REFUSED = b"refused"  # cached for a file that cannot be read, so that a hostile file costs time only once


def etag(path: Path, side: int) -> str:
    """Name of a thumbnail; it changes when the file changes."""
    return sha256("\0".join(map(str, (path, file_state(path), side))).encode()).hexdigest()[:32]


class Thumbnails:
    """Renders thumbnails, and keeps those used last, up to a total size in bytes."""

    def __init__(self, most: int = 64 << 20) -> None:
        self._most = most
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def jpeg(self, path: Path, side: int) -> bytes:
        """JPEG of an image, upright, within a square of ``side``; raises DataError if it cannot be read."""
        name = etag(path, side)
        with self._lock:
            kept = self._kept.get(name)
            if kept is not None:
                self._kept.move_to_end(name)
        if kept is None:
            try:
                kept = thumbnail(path, side, most_pixels=MOST_PIXELS)
            except DataError:
                self._keep(name, _REFUSED)
                raise
            self._keep(name, kept)
        if kept == _REFUSED:
            raise DataError(f"{path} could not be read as an image; replace the file.")
        return kept

    def _keep(self, name: str, content: bytes) -> None:
        with self._lock:
            self._size += len(content) - len(self._kept.pop(name, b""))
            self._kept[name] = content
            while self._size > self._most:
                self._size -= len(self._kept.popitem(last=False)[1])
