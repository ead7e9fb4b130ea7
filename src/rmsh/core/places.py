"""Places that several machines share: a folder on a shared disk, or a URL of fsspec such as ``s3://bucket/folder``.

On a disk, a file is written atomically; in an object store, it appears when it is complete.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rmsh.core.errors import InputError, require
from rmsh.core.files import atomic, open_regular


def is_url(place: str) -> bool:
    """Whether a place is a URL rather than a path."""
    return "://" in place


class Place:
    """A folder by path or URL; the names of files in it may have folders before them."""

    def __init__(self, place: str | Path) -> None:
        self.name, self._store = str(place).rstrip("/") or "/", None
        if not is_url(self.name):
            self._root = self.name = str(Path(self.name).absolute())
            return
        fsspec: Any = require("fsspec", "ray")
        try:
            self._store, self._root = fsspec.url_to_fs(self.name)
        except (ImportError, ValueError) as error:  # no package for this kind of URL
            raise InputError(f"{self.name} cannot be opened ({error}); install the package, or give a path.") from error

    def states(self) -> dict[str, str]:
        """The names of the files directly in the folder, sorted, with strings that change when the files do."""
        if self._store is None:
            files = sorted(file for file in Path(self._root).glob("*") if file.is_file())
            return {file.name: f"{(s := file.stat()).st_size} {s.st_mtime_ns}" for file in files}
        found = sorted(self._store.find(self._root, maxdepth=1))
        return {path.rpartition("/")[2]: str(self._store.ukey(path)) for path in found}

    def read(self, name: str) -> bytes:
        """The content of a file; FileNotFoundError if there is none."""
        if self._store is not None:
            return bytes(self._store.cat_file(f"{self._root}/{name}"))
        with open_regular(Path(self._root, name)) as file:
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        """Write a file, and the folders that it is in."""
        if self._store is None:
            with atomic(Path(self._root, name)) as file:
                file.write(content)
        else:
            self._store.makedirs(f"{self._root}/{name}".rpartition("/")[0], exist_ok=True)
            self._store.pipe_file(f"{self._root}/{name}", content)

    def fetch(self, name: str, folder: Path) -> Path:
        """The path of a file, or of a copy in ``folder`` if the place is a URL."""
        if self._store is None:
            return Path(self._root, name)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        self._store.get_file(f"{self._root}/{name}", str(folder / name))
        return folder / name
