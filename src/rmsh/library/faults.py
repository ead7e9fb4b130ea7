"""What happens to real machines, each as one sentence: a full disk, a read-only folder, a damaged database, a
writer that does not finish.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from rmsh.errors import FormatError, RmshError

__all__ = ["explained", "sign_in"]

_WRITER = "writer.json"

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG} if hasattr(errno, "EDQUOT") else {errno.ENOSPC, errno.EFBIG}
_FORBIDDEN = {errno.EROFS, errno.EACCES, errno.EPERM}


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn what SQLite and the system report about a library, or a file, into a sentence that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        found = _of_sqlite(error, folder)
        if found is None:
            raise
        raise found from error
    except OSError as error:
        raise _of_system(error, folder) from error


def _of_sqlite(error: sqlite3.Error, folder: Path) -> RmshError | None:
    """The sentence for what happens to machines; None for what is a mistake of ours."""
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF  # the rest of an extended code is detail
    if code == sqlite3.SQLITE_FULL:
        return _full(folder)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return _forbidden(folder, str(error))
    if code == sqlite3.SQLITE_BUSY:
        return RmshError(
            f"The library {folder} is being written to{_holder(folder)}; wait until that ends, and try again."
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return FormatError(
            f"The database of the library {folder} is damaged ({error}); put items.sqlite back from a backup, and see "
            "`rmsh library verify`."
        )
    if code == sqlite3.SQLITE_IOERR:
        return RmshError(f"The disk of {folder} fails ({error}); nothing of this step was kept.")
    return None


def _of_system(error: OSError, folder: Path) -> RmshError:
    if error.errno in _FULL:
        return _full(folder)
    if error.errno in _FORBIDDEN:
        return _forbidden(folder, str(error))
    return RmshError(f"{folder} cannot be read or written ({error.strerror}); check it, or give another.")


def _full(folder: Path) -> RmshError:
    return RmshError(
        f"The disk of {folder} is full; nothing of this step was kept and nothing else is lost: free some "
        "space and do it again."
    )


def _forbidden(folder: Path, reason: str) -> RmshError:
    return RmshError(
        f"{folder} cannot be opened or written to ({reason}); make its folder writable, or work on a copy."
    )


def sign_in(folder: Path) -> None:
    """Leave a note who is writing, for whoever has to wait; called by who holds the write lock."""
    note = {"process": os.getpid(), "host": platform.node(), "program": Path(sys.argv[0]).name or "python"}
    with suppress(OSError):  # the note is a courtesy
        (folder / _WRITER).write_text(json.dumps({**note, "since": datetime.now().isoformat(timespec="seconds")}))


def _holder(folder: Path) -> str:
    try:
        note = json.loads((folder / _WRITER).read_text())
        return f" by process {note['process']} ({note['program']}) on {note['host']}, since {note['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return " by another program"
