"""Connections to the database of a library: many that read, each seeing one state, and one that writes durably.

What happens to real machines, each as one sentence: a full disk, a read-only folder, a damaged database, a
writer that does not finish.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path

from rmsh.core.errors import FormatError, InputError, RmshError

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
            f"The database of the library {folder} is damaged ({error}); restore a backup with `rmsh library restore`."
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


DATABASE = "items.sqlite"
RESTORING = ".restoring"  # folder inside a library that a restore works in


def is_restoring(folder: Path) -> bool:
    """Whether a restore is replacing the files of a library, or was interrupted while it did."""
    return (folder / RESTORING / "restore.json").exists()


def connect_reader(folder: Path) -> sqlite3.Connection:
    """Connect for reading only; a library in a folder that we may not write to opens too."""
    connection = _connect(folder / DATABASE, "mode=ro")
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        if os.access(folder, os.W_OK) or _file_state(folder)[-1]:
            raise
        # SQLite wants to make its files beside the database and cannot. All there is stands in the database itself.
        connection = _connect(folder / DATABASE, "immutable=1", kind=_Unlocked)
    connection.execute("PRAGMA query_only = ON")
    return connection


class _Unlocked(sqlite3.Connection):
    """A connection that takes no locks: what it read counts only if the files are the same afterwards."""


def _file_state(folder: Path) -> tuple[int, int, int]:
    """When the database was written, its size, and that of the log beside it."""
    database, log = (folder / DATABASE).stat(), folder / f"{DATABASE}-wal"
    return database.st_mtime_ns, database.st_size, log.stat().st_size if log.exists() else 0


def file_identity(folder: Path) -> tuple[int, int]:
    """Which file the database is; another one once it was replaced."""
    found = (folder / DATABASE).stat()
    return found.st_dev, found.st_ino


def connect_writer(folder: Path, *, timeout: float, create: bool = False) -> sqlite3.Connection:
    """Connect for writing: what is committed is on the disk."""
    connection = _connect(folder / DATABASE, "mode=rwc" if create else "mode=rw", timeout=timeout)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")  # macOS leaves data in the drive's own memory otherwise
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA cache_size = -65536")  # KiB; large batches touch many pages of the indexes
    return connection


def _connect(
    path: Path, options: str, *, timeout: float = 30.0, kind: type[sqlite3.Connection] = sqlite3.Connection
) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?{options}"
    connection = sqlite3.connect(
        uri, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False, factory=kind
    )
    # A damaged text need not be UTF-8. It must be readable all the same, so that its checksum can be compared.
    connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    return connection


class Readers:
    """Connections that read, as many as threads ask at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._idle: list[tuple[sqlite3.Connection, tuple[int, int]]] = []  # with the file each one has open
        self._closed = False

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection inside a transaction: everything read in the block is of one state."""
        if self._closed:
            raise InputError(f"The library {self._folder} was closed; open it again.")
        with explained(self._folder):
            state, file = _file_state(self._folder), file_identity(self._folder)
            connection = self._connected(file)
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                self._put_back(connection, file)
            if isinstance(connection, _Unlocked) and _file_state(self._folder) != state:
                raise RmshError(
                    f"The library {self._folder} was written to while it was read without locks; try again."
                )

    def _connected(self, file: tuple[int, int]) -> sqlite3.Connection:
        """An idle connection to the database file as it is now, or a new one: a restore may replace the file."""
        while self._idle:
            try:
                connection, opened = self._idle.pop()
            except IndexError:  # another thread took the last one
                break
            if opened == file:
                return connection
            connection.close()
        return connect_reader(self._folder)

    def _put_back(self, connection: sqlite3.Connection, file: tuple[int, int]) -> None:
        connection.rollback()
        if isinstance(connection, _Unlocked):
            connection.close()
            return
        self._idle.append((connection, file))
        if self._closed:
            self.close()

    def close(self) -> None:
        """Close the connections nobody uses; those in use follow when they are put back."""
        self._closed = True
        while self._idle:
            self._idle.pop()[0].close()


class Writer:
    """The connection that writes; one transaction at a time, in this process and among all.

    Args:
        folder: of the library.
        timeout: seconds to wait for another writer.
    """

    def __init__(self, folder: Path, *, timeout: float) -> None:
        self._folder = folder
        self._timeout = timeout
        self._turn = threading.Lock()
        with explained(folder):
            self._file = file_identity(folder)
            self._connection = connect_writer(folder, timeout=timeout)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A block that is kept whole, and is on the disk when it ends, or not at all."""
        with self.alone() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._check_not_restored()
                sign_in(self._folder)
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _check_not_restored(self) -> None:
        """Refuse to write into a database that is being replaced, or was replaced, by a restored one.

        Raises:
            RmshError: it says what to do.
        """
        if is_restoring(self._folder):
            raise RmshError(
                f"The library {self._folder} is being restored from a backup; wait until that has finished. If it was "
                "interrupted, open the library again or repeat `rmsh library restore`."
            )
        if file_identity(self._folder) != self._file:
            raise RmshError(
                f"The library {self._folder} was restored from a backup while it was open for writing; nothing was "
                "written: open it again."
            )

    @contextmanager
    def alone(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time, outside of a transaction."""
        if not self._turn.acquire(timeout=self._timeout):
            raise InputError(f"Another thread writes to the library {self._folder}; wait until it ends, and try again.")
        try:
            with explained(self._folder):
                yield self._connection
        finally:
            self._turn.release()

    def close(self) -> None:
        """Close the connection; the last one to close empties the log into the database."""
        with self.alone() as connection:
            connection.close()
