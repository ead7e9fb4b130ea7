"""Connections to the database of a library: many that read, each seeing one state, and one that writes durably."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rmsh.errors import InputError, RmshError
from rmsh.library.faults import explained, sign_in

__all__ = ["DATABASE", "Readers", "Writer", "connect_reader", "connect_writer"]

DATABASE = "items.sqlite"


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
    return sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False, factory=kind)


class Readers:
    """Connections that read, as many as threads ask at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._idle: list[sqlite3.Connection] = []
        self._closed = False

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection inside a transaction: everything read in the block is of one state."""
        if self._closed:
            raise InputError(f"The library {self._folder} was closed; open it again.")
        with explained(self._folder):
            state = _file_state(self._folder)
            connection = self._connected()
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                self._put_back(connection)
            if isinstance(connection, _Unlocked) and _file_state(self._folder) != state:
                raise RmshError(
                    f"The library {self._folder} was written to while it was read without locks; try again."
                )

    def _connected(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return connect_reader(self._folder)

    def _put_back(self, connection: sqlite3.Connection) -> None:
        connection.rollback()
        if isinstance(connection, _Unlocked):
            connection.close()
            return
        self._idle.append(connection)
        if self._closed:
            self.close()

    def close(self) -> None:
        """Close the connections nobody uses; those in use follow when they are put back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()


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
            self._connection = connect_writer(folder, timeout=timeout)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A block that is kept whole, and is on the disk when it ends, or not at all."""
        with self.alone() as connection:
            connection.execute("BEGIN IMMEDIATE")
            sign_in(self._folder)
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

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
