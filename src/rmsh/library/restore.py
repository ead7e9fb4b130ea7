"""Restoring a library from a backup, so that no moment, and no interruption, leaves a mixture of the two.

The backup is copied into the library and verified there before anything is replaced. The database is then replaced by
one SQLite transaction, which also replaces what its write-ahead log says; open readers see the restored state with
their next question. A database that SQLite cannot open is replaced as a file.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import sqlite3
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from rmsh.core.errors import FormatError, InputError, RmshError
from rmsh.core.files import flush_folder, read_json, write_json
from rmsh.library import schema
from rmsh.library.database import DATABASE, connect_reader, connect_writer, explained
from rmsh.library.folder import (
    MANIFEST,
    MODEL,
    NEXT_MODEL,
    check_is_library,
    find_model,
    new_folder,
    settle,
    write_manifest,
)
from rmsh.library.maintenance import upgrade
from rmsh.library.queries import change_token, generation_of, last_change
from rmsh.library.restoring import keep_replaced, restoring, roll_forward
from rmsh.library.snapshot import SNAPSHOT, write_snapshot
from rmsh.library.verify import verify
from rmsh.library.writing import log

__all__ = ["Restored", "restore"]

_PAGE_SIZES = {1 << power for power in range(9, 17)}
_UNUSABLE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR}


@dataclass(frozen=True)
class Restored:
    """What a restore did.

    Args:
        library: ID of the library.
        items: number of its items.
        replaced: folder of the files that were replaced, where they were kept.
    """

    library: str
    items: int
    replaced: Path | None


def restore(backup: Path, to: Path, *, replace: bool = False, keep: bool = False, timeout: float = 30.0) -> Restored:
    """Make a library what a backup of it is; after an interruption, run it again.

    Args:
        backup: folder that `rmsh library backup` wrote; it is not changed.
        to: folder of the library; it may be missing or empty.
        replace: whether a library with another ID may be replaced.
        keep: whether to keep the replaced files, in a folder of the library.
        timeout: seconds to wait for a writer.

    Raises:
        InputError: the target is another library, or not a library.
        FormatError: the backup is damaged; nothing was changed.
        RmshError: a writer did not finish in time, or the disk is full.
    """
    check_is_library(backup)
    if to.exists() and backup.resolve() == to.resolve():
        raise InputError(f"{backup} was given as backup and as library; give two different folders.")
    if not to.exists() or (to.is_dir() and not any(to.iterdir())):
        with new_folder(to) as unfinished:
            _copy(backup, unfinished, pictures_of=None)
        return _result(to, None)
    if not to.is_dir() or not ((to / MANIFEST).exists() or (to / DATABASE).exists()):
        raise InputError(f"{to} is neither empty nor a library; give the folder of a library, or a new folder.")
    with restoring(to) as work:
        _copy(backup, work / "new", pictures_of=to)
        _check_same_library(backup, to, replace=replace)
        _replace(work, to, backup, timeout=timeout)
        problems = verify(to).problems
        if problems:
            raise RmshError(
                f"{to} was restored but is not intact: {problems[0]} The replaced files: {keep_replaced(to)}."
            )
        kept = keep_replaced(to) if keep else None
    return _result(to, kept)


def _result(folder: Path, replaced: Path | None) -> Restored:
    with closing(connect_reader(folder)) as connection:
        (name,) = connection.execute("SELECT id FROM library").fetchone()
        return Restored(name, connection.execute("SELECT count(*) FROM items").fetchone()[0], replaced)


def _check_same_library(backup: Path, to: Path, *, replace: bool) -> None:
    wanted, found = _id_of(backup), _id_of(to)
    if wanted != found and not replace:
        raise InputError(
            f"The backup {backup} is of the library {wanted}, {to} is {found or 'of unknown ID'}; give the folder of "
            "that library, a new folder, or --replace."
        )


def _id_of(folder: Path) -> str | None:
    """The ID of a library, from the manifest, or else from the database."""
    try:
        return str(read_json(folder / MANIFEST)["id"])
    except (OSError, FormatError, KeyError, TypeError):
        pass
    try:
        with closing(connect_reader(folder)) as connection:
            return str(connection.execute("SELECT id FROM library").fetchone()[0])
    except sqlite3.Error:
        return None


def _copy(backup: Path, copy: Path, *, pictures_of: Path | None) -> None:
    """Copy a backup, verify the copy, and mark the copied state as one of its own.

    Args:
        backup: its folder.
        copy: a folder to fill.
        pictures_of: library whose images need not be copied where they are the same.

    Raises:
        FormatError: the backup is damaged.
    """
    copy.mkdir(exist_ok=True)
    with explained(backup), closing(connect_reader(backup)) as source:
        with closing(sqlite3.connect(copy / DATABASE)) as target:
            source.backup(target)
        model = find_model(backup, generation_of(source))
        version = schema.version_of(source, backup)
    shutil.copytree(model, copy / MODEL)
    for name in (MANIFEST, SNAPSHOT):
        if (backup / name).exists():
            shutil.copyfile(backup / name, copy / name)
    if version < schema.VERSION:
        upgrade(copy)
    problems = verify(copy).problems
    if problems:
        found = problems[0].replace(str(copy), str(backup))
        raise FormatError(f"The backup {backup} is damaged, and nothing was restored: {found}")
    with closing(connect_writer(copy, timeout=0)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        log(connection, "recode", [0])  # a token of its own: open readers recognise the restored state as a new one
        connection.execute("COMMIT")
        write_snapshot(copy / SNAPSHOT, connection)
        write_manifest(copy, connection)
        _copy_pictures(backup, copy, connection, known=pictures_of)
    _flush(copy)


def _copy_pictures(backup: Path, copy: Path, connection: sqlite3.Connection, *, known: Path | None) -> None:
    if connection.execute("SELECT source FROM library").fetchone()[0] is not None:
        return
    for (picture,) in connection.execute("SELECT DISTINCT picture FROM items WHERE picture IS NOT NULL"):
        if not (backup / picture).is_file() or (known is not None and _is_same(backup / picture, known / picture)):
            continue
        (copy / picture).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(backup / picture, copy / picture)


def _is_same(file: Path, other: Path) -> bool:
    return other.is_file() and filecmp.cmp(file, other, shallow=False)


def _flush(folder: Path) -> None:
    """Bring every file below a folder to the disk."""
    for path in [*folder.rglob("*"), folder]:
        if path.is_dir():
            flush_folder(path)
        else:
            with path.open("rb+") as file:
                os.fsync(file.fileno())


def _replace(work: Path, to: Path, backup: Path, *, timeout: float) -> None:
    """Replace the files of a library by those that lie ready."""
    with closing(connect_reader(work / "new")) as connection:
        token = change_token(connection, last_change(connection))
    usable = _announce(work, to, {"token": token, "backup": str(backup)}, timeout=timeout)
    _copy_replaced(to, work / "replaced")
    shutil.rmtree(to / NEXT_MODEL, ignore_errors=True)
    os.rename(work / "new" / MODEL, to / NEXT_MODEL)
    flush_folder(to)
    if not (usable and _replace_content(work / "new", to, timeout=timeout)):
        _replace_file(work / "new", to)
    roll_forward(to)


def _announce(work: Path, to: Path, facts: dict[str, str], *, timeout: float) -> bool:
    """Write restore.json under the writer lock, which stops all writers; return whether SQLite can use the database."""
    try:
        with closing(connect_writer(to, timeout=timeout)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            with suppress(sqlite3.Error, TypeError):  # these tables may be damaged
                settle(to, generation_of(connection))  # a model that waits for its place must not be lost
            write_json(work / "restore.json", facts)
            connection.execute("COMMIT")
        return True
    except sqlite3.Error as error:
        if (getattr(error, "sqlite_errorcode", 0) & 0xFF) not in _UNUSABLE:
            raise
        write_json(work / "restore.json", facts)
        return False


def _copy_replaced(to: Path, replaced: Path) -> None:
    replaced.mkdir()
    for name in (DATABASE, f"{DATABASE}-wal", MANIFEST, SNAPSHOT):
        if (to / name).is_file():
            shutil.copy2(to / name, replaced / name)
    if (to / MODEL).is_dir():
        shutil.copytree(to / MODEL, replaced / MODEL)
    _flush(replaced)


def _replace_content(new: Path, to: Path, *, timeout: float) -> bool:
    """Replace the content of the database in one transaction; False where its file is too damaged for that."""
    deadline = time.monotonic() + timeout

    def check(status: int, _remaining: int, _total: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and time.monotonic() > deadline:
            raise RmshError(f"The library {to} is being written to; wait until that ends, and restore it again.")

    try:
        with closing(connect_writer(to, timeout=timeout)) as target:
            (size,) = target.execute("PRAGMA page_size").fetchone()
            _set_page_size(new, size)
            with closing(connect_reader(new)) as source:
                source.backup(target, progress=check, sleep=0.05)
    except sqlite3.Error as error:
        if (getattr(error, "sqlite_errorcode", 0) & 0xFF) not in _UNUSABLE:
            raise
        return False
    return True


def _set_page_size(new: Path, size: int) -> None:
    """Give the copy the page size of the database that it replaces, which SQLite requires."""
    with closing(sqlite3.connect(new / DATABASE, isolation_level=None)) as connection:
        if connection.execute("PRAGMA page_size").fetchone()[0] != size and size in _PAGE_SIZES:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute(f"PRAGMA page_size = {size}")
            connection.execute("VACUUM")


def _replace_file(new: Path, to: Path) -> None:
    """Replace a database that SQLite cannot open; the log of the old one goes first, so that it is never replayed."""
    with closing(connect_writer(new, timeout=0)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for name in (f"{DATABASE}-wal", f"{DATABASE}-shm"):
        (to / name).unlink(missing_ok=True)
    flush_folder(to)
    os.replace(new / DATABASE, to / DATABASE)
    flush_folder(to)
