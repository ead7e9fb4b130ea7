"""Atomic writes, reading the JSON files that rmsh writes, and the folder for files that can be recomputed.

A file is written under a temporary name in the same folder, flushed to disk and renamed; then the folder is flushed, so
that the rename itself survives a power cut.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from rmsh.core.errors import DataError, FormatError, RmshError

# Control characters except tab and line feed, marks that reverse the direction of writing, and lone surrogates.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@contextmanager
def atomic(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears at ``path`` only if the block succeeds."""
    make_folder(path.parent)
    temporary = temporary_path(path)
    try:
        with open(temporary, "xb", opener=private_opener) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def make_folder(folder: Path, *, mode: int = 0o777) -> None:
    """Create a folder, and those above it, unless they exist; each is at least as private as the one that it is in.

    The folder above is flushed, so that a new folder survives a power cut if a file in it does.
    """
    if not folder.is_dir():
        make_folder(folder.parent)
        try:
            folder.mkdir(mode=mode & folder.parent.stat().st_mode, exist_ok=True)
            flush_folder(folder.parent)
        except FileExistsError as error:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from error


def private_opener(path: str, flags: int) -> int:
    """An opener for ``open``: a new file is as private as its folder, and the process's umask applies."""
    return os.open(path, flags, 0o666 & os.stat(os.path.dirname(path) or ".").st_mode)


def copy_file(source: Path, target: Path) -> None:
    """Copy a regular file, atomically."""
    with open_regular(source) as original, atomic(target) as copy:
        shutil.copyfileobj(original, copy)


def check_space(folder: Path, size: int) -> None:
    """Raise RmshError if the disk of a folder has less than ``size`` bytes free."""
    free = shutil.disk_usage(folder).free
    if free < size:
        found = f"The disk of {folder} has {free >> 20:,} MB free, and about {size >> 20:,} MB are needed"
        raise RmshError(f"{found}; free some space, or choose a folder on another disk.")


def temporary_path(path: Path) -> Path:
    """An unused hidden name next to ``path``."""
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


def open_regular(path: Path, *, inside: Path | None = None, most: int | None = None) -> io.BufferedReader:
    """Open a regular file for reading: never a pipe or a device, which could block or have no end.

    It must not lead out of the folder ``inside``, even by a link, or be larger than ``most`` bytes. What is not allowed
    raises DataError; a file that does not exist or cannot be opened raises OSError.
    """
    found = Path(os.path.realpath(path, strict=True))
    if inside is not None and not found.is_relative_to(inside.resolve()):
        raise DataError(f"{path} is a link that leads out of {inside}; put a copy of the file there.")
    # Without O_NONBLOCK, opening a pipe would wait for its writer. The resolved path has no link at its end.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(found, flags)
    status = os.fstat(handle)
    regular = stat.S_ISREG(status.st_mode)
    if regular and (most is None or status.st_size <= most):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if regular:
        raise DataError(f"{path} has {status.st_size:,} bytes, {most:,} are allowed; divide it.")
    raise DataError(f"{path} is a folder, a pipe or a device; give a regular file.")


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file atomically."""
    with atomic(path) as file:
        file.write(text.encode())


def printable(text: str) -> str:
    r"""Text that is safe for a terminal and a UTF-8 file: control characters are shown as in JSON.

    Example:
        >>> printable("a\x1b[2Jb\x9b\n")
        'a\\u001b[2Jb\\u009b\n'
    """
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, atomically; NaN and infinity raise ValueError."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file that rmsh wrote."""
    try:
        with open_regular(path) as file:
            return json.loads(file.read().decode("utf-8"))
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
        given = f"{source} has version {found!r} of {name!r}"
        raise FormatError(f"{given}, this rmsh reads up to version {version}; update rmsh.")
    return content


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_folder() -> Path:
    """The folder for files that can be recomputed: that of ``RMSH_CACHE``, or ``rmsh`` in the user's cache folder."""
    import platformdirs

    return Path(os.environ.get("RMSH_CACHE") or platformdirs.user_cache_path("rmsh", appauthor=False))
