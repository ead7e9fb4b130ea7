"""Connections to the database of a library: many readers, each with one consistent state, and one durable writer.

Errors of SQLite and of the operating system (full disk, read-only folder, damaged database, another writer) are
translated into messages that say what to do.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from rmsh.core.errors import FormatError, InputError, RmshError
from rmsh.core.files import atomic, open_regular, private_opener
from rmsh.library.items import checksum_of
from rmsh.library.queries import last_change
from rmsh.library.schema import RESTORE, codes_checksum

DATABASE = "items.sqlite"
ACKNOWLEDGED = "acknowledged"  # the last acknowledged changes

_log = logging.getLogger("rmsh.library")

_SLOTS, _SLOT_BYTES = 8, 64

_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_FORBIDDEN = {errno.EROFS, errno.EACCES, errno.EPERM}
_FORBIDDEN_BY_SQLITE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_TOOBIG}


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and the operating system into errors of rmsh that name the library or file."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        translated = _translate(error, path)
        if translated is None:
            raise
        raise translated from error


def _translate(error: sqlite3.Error | OSError, path: Path) -> RmshError | None:
    """The error of rmsh, or None if the cause is a bug in rmsh."""
    number, code = (error.errno, 0) if isinstance(error, OSError) else (0, primary_code(error))
    if number in _FULL or code == sqlite3.SQLITE_FULL:
        return RmshError(f"The disk of {path} is full; nothing was changed. Free some space and try again.")
    if number in _FORBIDDEN or code in _FORBIDDEN_BY_SQLITE:
        return RmshError(f"{path} cannot be opened or written ({error}); make the folder writable, or use a copy.")
    if isinstance(error, OSError):
        return RmshError(f"{path} cannot be read or written ({error.strerror}); check the path.")
    if code == sqlite3.SQLITE_BUSY:
        return RmshError(f"The library {path} is being written to by another program; try again later.")
    # A statement without a mistake, with values that were checked before, fails only if the database is damaged.
    failed = code == sqlite3.SQLITE_ERROR and "syntax error" not in str(error)
    if code in _DAMAGED or failed or "constraint failed" in str(error):
        found = " ".join(str(error).split())  # a definition of a table has several lines
        return FormatError(f"The database of the library {path} is damaged ({found}); {RESTORE}.")
    if code == sqlite3.SQLITE_IOERR:
        return RmshError(f"Reading or writing {path} failed ({error}); nothing was changed. Check the disk.")
    return None


def primary_code(error: sqlite3.Error) -> int:
    """The SQLite error code without the details of an extended code; 0 if there is none."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def read_acknowledged(folder: Path) -> tuple[int, str] | None:
    """Number and token of the last change that a writer acknowledged; None if that is unknown."""
    changes = []
    with suppress(OSError, InputError), open_regular(folder / ACKNOWLEDGED, most=_SLOTS * _SLOT_BYTES) as file:
        while slot := file.read(_SLOT_BYTES):
            with suppress(ValueError):
                seq, token, checksum = slot.decode("ascii").split()
                if checksum_of(int(seq), token) == int(checksum):
                    changes.append((int(seq), token))
    return max(changes, default=None)


def write_acknowledged(folder: Path, seq: int, token: str) -> None:
    """Record the last acknowledged change outside the database, whose log may be damaged or replaced.

    Changes take turns in a few slots, so that an interrupted write destroys at most the oldest one.
    """
    path = folder / ACKNOWLEDGED
    if not path.exists():
        with atomic(path) as file:
            file.write(b"\n" * (_SLOTS * _SLOT_BYTES))
    with path.open("r+b", buffering=0) as file:
        file.seek(seq % _SLOTS * _SLOT_BYTES)
        file.write(f"{seq} {token} {checksum_of(seq, token)}".encode().ljust(_SLOT_BYTES))
        os.fsync(file.fileno())


def connect_reader(folder: Path) -> sqlite3.Connection:
    """Connect for reading only; this also works in a folder without write permission."""
    connection = _connect(folder / DATABASE, "mode=ro")
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        connection.close()
        if not isinstance(error, sqlite3.OperationalError) or os.access(folder, os.W_OK) or _file_state(folder)[-1]:
            raise
        # SQLite cannot create its files next to the database, but with an empty log it does not need them.
        connection = _connect(folder / DATABASE, "immutable=1", kind=_Unlocked)
    connection.execute("PRAGMA query_only = ON")
    return connection


class _Connection(sqlite3.Connection):
    """A connection that reports the name of a table or column that is not UTF-8 as the damage it is."""

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        try:
            return super().execute(*arguments)
        except UnicodeDecodeError as error:
            damage = sqlite3.DatabaseError("a table definition is not UTF-8")
            damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise damage from error


class _Unlocked(_Connection):
    """A connection without locks: what it read is valid only if the files are unchanged afterwards."""


def _file_state(folder: Path) -> tuple[int, int, int]:
    """Modification time and size of the database, and the size of its write-ahead log."""
    database, log = (folder / DATABASE).stat(), folder / f"{DATABASE}-wal"
    return database.st_mtime_ns, database.st_size, log.stat().st_size if log.exists() else 0


def new_database(folder: Path) -> Path:
    """The path of an empty file for a database, as private as its folder; so are the files that SQLite adds to it."""
    with open(folder / DATABASE, "xb", opener=private_opener):
        return folder / DATABASE


def connect_writer(folder: Path, *, timeout: float, create: bool = False) -> sqlite3.Connection:
    """Connect for writing; committed transactions survive a power cut."""
    connection = _connect(new_database(folder) if create else folder / DATABASE, "mode=rw", timeout=timeout)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # otherwise macOS leaves data in the cache of the drive
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cache_size = -65536")  # KiB; large batches touch many pages of the indexes
    except BaseException:
        connection.close()
        raise
    for function in (checksum_of, codes_checksum):
        connection.create_function(function.__name__, -1, function, deterministic=True)
    return connection


def _connect(
    path: Path, options: str, *, timeout: float = 30.0, kind: type[sqlite3.Connection] = _Connection
) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?{options}"
    connection = sqlite3.connect(
        uri, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False, factory=kind
    )
    # A damaged text may not be UTF-8, but it must be readable, so that its checksum can be compared.
    connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    return connection


class Readers:
    """A pool of connections for reading, one per concurrent thread."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, str(folder / DATABASE)
        self._idle: list[tuple[sqlite3.Connection, os.stat_result]] = []  # each with the file that it has open
        self._closed = False

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection inside a transaction: everything read in the block belongs to one state."""
        if self._closed:
            raise InputError(f"The library {self._folder} was closed; open it again.")
        with translate_errors(self._folder):
            file = os.stat(self._path)
            connection = self._acquire(file)
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                connection.rollback()
                if isinstance(connection, _Unlocked):
                    connection.close()
                else:
                    self._idle.append((connection, file))
                if self._closed:
                    self.close()
            before = file.st_mtime_ns, file.st_size, 0  # a log that is not empty cannot be read without locks
            if isinstance(connection, _Unlocked) and _file_state(self._folder) != before:
                raise RmshError(f"{self._folder} was written to while it was read without locks; try again.")

    def _acquire(self, file: os.stat_result) -> sqlite3.Connection:
        """An idle connection to the current database file, or a new one: a restore may replace the file."""
        with suppress(IndexError):  # none left
            while True:
                connection, opened = self._idle.pop()
                if os.path.samestat(opened, file):
                    return connection
                connection.close()
        return connect_reader(self._folder)

    def close(self) -> None:
        """Close the idle connections; those in use are closed when they are released."""
        self._closed = True
        while self._idle:
            self._idle.pop()[0].close()


class Writer:
    """The connection for writing: one transaction at a time, across threads and processes."""

    def __init__(self, folder: Path, *, timeout: float) -> None:
        self._folder = folder
        self._timeout = timeout  # seconds to wait for another writer
        self._lock = threading.Lock()
        with translate_errors(folder):
            self._file = (folder / DATABASE).stat()
            self._connection = connect_writer(folder, timeout=timeout)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A block of changes that is committed durably as a whole, or not at all."""
        with self.exclusive() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if not os.path.samestat((self._folder / DATABASE).stat(), self._file):
                    raise RmshError(f"The library {self._folder} was restored from a backup meanwhile; open it again.")
                before = last_change(connection)
                yield connection
                change = last_change(connection)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            if change != before:
                try:
                    write_acknowledged(self._folder, *change)
                except OSError as error:  # the change itself is on the disk
                    _log.warning("%s cannot be written (%s)", self._folder / ACKNOWLEDGED, error)

    @contextmanager
    def exclusive(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time, outside a transaction."""
        if not self._lock.acquire(timeout=self._timeout):
            raise InputError(f"Another thread is writing to the library {self._folder}; try again later.")
        try:
            with translate_errors(self._folder):
                yield self._connection
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the connection; the last one to close writes the log back to the database."""
        with self.exclusive() as connection:
            connection.close()
