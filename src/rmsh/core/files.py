"""Writing files that are there whole or not at all, and reading our own JSON.

A file is written under another name in the same folder, flushed to the disk, and renamed; then the folder is flushed,
so that the rename itself survives a power cut.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from rmsh.core.errors import FormatError


@contextmanager
def atomic(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears under ``path`` only when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def flush_folder(folder: Path) -> None:
    """Make what was created, renamed or removed in a folder survive a power cut."""
    if os.name == "nt":  # Windows has no handle to flush a folder by
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file atomically."""
    with atomic(path) as file:
        file.write(text.encode())


def write_json(path: Path, value: Any) -> None:
    """Write a value as readable JSON, atomically; numbers that JSON does not know are refused."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file of ours."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{path} is not readable as JSON ({error}); write it anew.") from error


def checked_format(content: Any, place: object, *, name: str, version: int, hint: str) -> dict[str, Any]:
    """The content of a file of ours, or refuse that of another program, or of a newer rmsh.

    Args:
        content: any value; ours says ``format`` and ``version``.
        place: where it is from, for people.
        name: of the format.
        version: the newest of it that is read.
        hint: what to do where it is something else.

    Raises:
        FormatError: it is of another format, or of a version that is not read.

    Example:
        >>> checked_format({"format": "rmsh", "version": 3}, "x.json", name="rmsh", version=2, hint="make it anew")
        Traceback (most recent call last):
        rmsh.core.errors.FormatError: x.json has version 3 of 'rmsh', this rmsh reads up to version 2; update rmsh.
    """
    if not isinstance(content, dict) or content.get("format") != name:
        raise FormatError(f"{place} is not of the format {name!r}; {hint}.")
    found = content.get("version")
    if not isinstance(found, int) or not 1 <= found <= version:
        raise FormatError(
            f"{place} has version {found!r} of {name!r}, this rmsh reads up to version {version}; update rmsh."
        )
    return content


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
