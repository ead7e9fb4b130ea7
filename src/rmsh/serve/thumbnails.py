"""Thumbnails for the page, rendered from the pixels, so that no metadata is passed on, and cached."""

from __future__ import annotations

import threading
from collections import OrderedDict
from hashlib import sha256
from pathlib import Path

from rmsh.core.errors import DataError
from rmsh.features.images import thumbnail
from rmsh.serve.limits import MOST_PIXELS

_KEPT = 64 << 20  # bytes in memory
_REFUSED = b"refused"  # cached for a file that cannot be read, so that a hostile file costs time only once


class ByteCache:
    """A least-recently-used cache of byte strings, limited in total size.

    Example:
        >>> cache = ByteCache(5)
        >>> cache.put("a", b"123"); cache.put("b", b"45"); cache.put("c", b"6")
        >>> cache.get("a"), cache.get("b")
        (None, b'45')
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: str, value: bytes) -> None:
        with self._lock:
            self._size += len(value) - len(self._kept.pop(key, b""))
            self._kept[key] = value
            while self._size > self._most:
                self._size -= len(self._kept.popitem(last=False)[1])


class Thumbnails:
    """Renders and caches thumbnails."""

    def __init__(self) -> None:
        self._cache = ByteCache(_KEPT)

    def name(self, path: Path, side: int) -> str:
        """Cache key and ETag; it changes when the file changes."""
        state = path.stat()
        return sha256(f"{path}\0{state.st_mtime_ns}\0{state.st_size}\0{side}".encode()).hexdigest()[:32]

    def jpeg(self, path: Path, side: int) -> bytes:
        """JPEG of an image, upright, within a square of ``side``; raises DataError if it cannot be read."""
        name = self.name(path, side)
        kept = self._cache.get(name)
        if kept is None:
            try:
                kept = thumbnail(path, side, most_pixels=MOST_PIXELS)
            except DataError:
                self._cache.put(name, _REFUSED)
                raise
            self._cache.put(name, kept)
        if kept == _REFUSED:
            raise DataError(f"{path} could not be read as an image; replace the file.")
        return kept
