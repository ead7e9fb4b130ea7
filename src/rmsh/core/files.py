"""Atomic writes, and reading the JSON files that rmsh writes.

A file is written under a temporary name in the same folder, flushed to disk and renamed; then the folder is flushed, so
that the rename itself survives a power cut.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from rmsh.core.errors import FormatError


@contextmanager
def atomic(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears at ``path`` only if the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(path)
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def temporary_path(path: Path) -> Path:
    """An unused hidden name next to ``path``.

    Create the file or folder with ``open("xb")`` or ``mkdir()``: unlike the functions of ``tempfile``, these apply the
    process's umask, so that the result has the permissions of any other new file.
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def flush_folder(folder: Path) -> None:
    """Flush a folder to disk, so that files created, renamed or removed in it survive a power cut."""
    if os.name == "nt":  # Windows cannot open a folder to flush it
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
    """Write a value as indented JSON, atomically; NaN and infinity raise ValueError."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file that rmsh wrote."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{path} is not valid JSON ({error}); restore or recreate it.") from error


def checked_format(content: Any, source: object, *, name: str, version: int, hint: str) -> dict[str, Any]:
    """Return the content of a file written by rmsh if its ``format`` and ``version`` can be read.

    ``source`` names the file in the error message; ``hint`` says what to do if it has another format.

    Example:
        >>> checked_format({"format": "rmsh", "version": 3}, "x.json", name="rmsh", version=2, hint="recreate it")
        Traceback (most recent call last):
        rmsh.core.errors.FormatError: x.json has version 3 of 'rmsh', this rmsh reads up to version 2; update rmsh.
    """
    if not isinstance(content, dict) or content.get("format") != name:
        raise FormatError(f"{source} is not of the format {name!r}; {hint}.")
    found = content.get("version")
    if not isinstance(found, int) or not 1 <= found <= version:
        raise FormatError(
            f"{source} has version {found!r} of {name!r}, this rmsh reads up to version {version}; update rmsh."
        )
    return content


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
