"""Backing up a library while it is in use, and restoring it.

A backup is verified before it gets its final name. A restore never leaves a mixture of backup and library, even if it
is interrupted: the backup is copied into the folder ``.restoring`` of the library and verified there before anything is
replaced. The database is then replaced in one SQLite transaction, which also supersedes its write-ahead log, and open
readers see the restored state in their next transaction. A database that SQLite cannot open is replaced as a file. The
database decides which of the other files are in use: the model waits beside the current one, the snapshot of another
history is ignored, and the restored log begins after every change that was acknowledged. Repeating an interrupted
restore completes it.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rmsh.core.errors import FormatError, InputError, RmshError
from rmsh.core.files import check_space, copy_file, flush_folder, make_folder, read_json
from rmsh.core.locks import try_lock
from rmsh.data.readers.folder import texts_in
from rmsh.data.records import folder_name, locate
from rmsh.library import database, schema
from rmsh.library.folder import (
    MANIFEST,
    MODEL,
    NEXT_MODEL,
    check_is_library,
    find_model,
    image_folders,
    install_model,
    new_folder,
    set_folder,
    write_manifest,
)
from rmsh.library.maintenance import upgrade
from rmsh.library.queries import count_items, facts_of, generation_of, last_change
from rmsh.library.snapshot import SNAPSHOT, write_snapshot
from rmsh.library.verify import verify
from rmsh.library.writing import log_new_codes

if TYPE_CHECKING:
    from rmsh.library.library import Library

_IMAGES = "images"  # folder of a backup with copies of image folders
_AHEAD = 1 << 20  # changes that writers may acknowledge while a backup is copied and verified
_UNUSABLE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR}
_UNUSABLE |= {sqlite3.SQLITE_READONLY}  # pages of another size, which cannot be changed in place


def backup(library: Library, out: Path, *, with_images: bool = False) -> int:
    """Copy one consistent state of a library to a new folder; return how many image files are missing.

    Images inside the folder of the library are copied; those in other folders only ``with_images``, with their texts.
    """
    with new_folder(out) as unfinished:
        path = database.new_database(unfinished)
        while True:
            model = library.model()
            with closing(sqlite3.connect(path)) as copy:
                with library.reading() as connection, database.translate_errors(out):
                    connection.backup(copy)
                if generation_of(copy).fingerprint == model.fingerprint:
                    break  # otherwise the library was recoded in between
        model.save(unfinished / MODEL)
        with closing(database.connect_writer(unfinished, timeout=0)) as connection:
            missing = _copy_folders(library.folder, unfinished, connection, outside=with_images)
            write_snapshot(unfinished / SNAPSHOT, connection)
            database.write_acknowledged(unfinished, *last_change(connection))
            write_manifest(unfinished, connection)
        problems = verify(unfinished).problems
        if problems:
            raise RmshError(f"The copy of {library.folder} is damaged and was deleted: {problems[0]}")
        # The last writer to close removes SQLite's temporary files.
        database.connect_writer(unfinished, timeout=0).close()
    return missing


def _copy_folders(library: Path, target: Path, connection: sqlite3.Connection, *, outside: bool) -> int:
    """Copy the images inside a library, or all, with captions and metadata files, into its backup.

    Returns how many images are missing. If the disk has too little space for all of them, none is copied.
    """
    folders, home = image_folders(connection, library), library.resolve()
    near = {
        name: f"{_IMAGES}/{number}/{path.name}"
        for number, (name, path) in enumerate(folders.items(), start=1)
        if outside or path.resolve().is_relative_to(home)
    }
    files: dict[Path, Path] = {}  # by copy
    for name, place in near.items():
        path, copy = folders[name], target / place
        if path.is_dir():
            files |= {copy / text: path / text for text in texts_in(path)}
        else:  # an image or a metadata file
            files |= {copy.with_name(one.name): one for one in (path, path.with_suffix(".txt")) if one.is_file()}
    copies = {name: target / place for name, place in near.items()}
    for (picture,) in connection.execute("SELECT DISTINCT picture FROM items WHERE picture IS NOT NULL"):
        if not folders or folder_name(picture, folders) in near:  # a library without folders keeps its own images
            original = locate(picture, folders.get("", library), folders)[1]
            files[locate(picture, copies.get("", target), copies)[1]] = original
    present = {copy: file for copy, file in files.items() if file.is_file()}
    check_space(target, sum(file.stat().st_size for file in present.values()))
    for copy, file in present.items():
        make_folder(copy.parent)
        copy_file(file, copy)
    for name, place in near.items():
        set_folder(connection, target, name, folders[name], place)
    return len(files) - len(present)


@dataclass(frozen=True)
class RestoreResult:
    """The ID and the number of items of a restored library, and the folder of the replaced files if they were kept."""

    library: str
    items: int
    replaced: Path | None


def restore(
    backup: Path, to: Path, *, replace: bool = False, keep: bool = False, timeout: float = 30.0
) -> RestoreResult:
    """Restore a library from a backup; if interrupted, run it again.

    ``to`` is a library or a new folder; ``replace`` allows replacing a library with another ID, and ``keep`` keeps the
    replaced files in a folder inside the library. A damaged backup raises FormatError, and nothing is changed.
    """
    check_is_library(backup)
    if to.exists() and backup.resolve() == to.resolve():
        raise InputError(f"{backup} cannot be both the backup and the library; give two different folders.")
    if not to.exists() or (to.is_dir() and not any(to.iterdir())):
        with new_folder(to) as unfinished:
            _copy_backup(backup, unfinished, to)
        return _result(to)
    if not to.is_dir() or not ((to / MANIFEST).exists() or (to / database.DATABASE).exists()):
        raise InputError(f"{to} is neither empty nor a library; give the folder of a library, or a new folder.")
    with database.translate_errors(to), _working_in(to) as work:
        _copy_backup(backup, work / "new", to)
        wanted, found = _read_id(backup), _read_id(to)
        if wanted != found and not replace:
            both = f"The backup {backup} belongs to the library {wanted}, {to} has the ID {found or 'unknown'}"
            raise InputError(f"{both}; give the folder of that library, a new folder, or --replace.")
        _replace_database(work / "new", to, work / "replaced", timeout=timeout)
        kept, is_whole = to / f"replaced-{datetime.now():%Y%m%d-%H%M%S-%f}", False
        try:
            _replace_files(work / "new", to, work / "replaced")
            problems = verify(to).problems
            is_whole = not problems
        finally:
            if keep or not is_whole:
                os.rename(work / "replaced", kept)
                flush_folder(to)
        if problems:
            raise RmshError(f"{to} was restored but is damaged: {problems[0]} The replaced files are in {kept}.")
    return _result(to, kept if keep else None)


@contextmanager
def _working_in(folder: Path) -> Iterator[Path]:
    """An empty folder for the files of a restore, deleted at the end; RmshError if another process has it."""
    work, lock = folder / ".restoring", folder / ".restoring.lock"
    with try_lock(lock) as acquired:
        if not acquired:
            raise RmshError(f"Another process is restoring the library {folder}; try again later.")
        shutil.rmtree(work, ignore_errors=True)
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)
            lock.unlink(missing_ok=True)


def _result(folder: Path, replaced: Path | None = None) -> RestoreResult:
    with closing(database.connect_reader(folder)) as connection:
        return RestoreResult(facts_of(connection).id, count_items(connection), replaced)


def _read_id(folder: Path) -> str | None:
    """The ID of a library, from the manifest, or else from the database."""
    try:
        return str(read_json(folder / MANIFEST)["id"])
    except (OSError, FormatError, KeyError, TypeError):
        pass
    try:
        with closing(database.connect_reader(folder)) as connection:
            return facts_of(connection).id
    except (sqlite3.Error, FormatError):
        return None


def _copy_backup(backup: Path, copy: Path, library: Path) -> None:
    """Copy a backup and verify the copy, which will replace ``library``; FormatError if it is damaged.

    Images that ``library`` has already are not copied, nor is an image folder that is where it was.
    """
    make_folder(copy)
    with database.translate_errors(backup), closing(database.connect_reader(backup)) as source:
        with closing(sqlite3.connect(database.new_database(copy))) as target:
            source.backup(target)
        model = find_model(backup, generation_of(source))
        version = schema.version_of(source, backup)
    shutil.copytree(model, copy / MODEL)
    for name in (MANIFEST, SNAPSHOT):
        if (backup / name).exists():
            copy_file(backup / name, copy / name)
    if version < schema.VERSION:
        upgrade(copy)
    problems = verify(copy).problems
    if problems:
        found = problems[0].replace(str(copy), str(backup))
        raise FormatError(f"The backup {backup} is damaged, and nothing was restored: {found}")
    with closing(database.connect_writer(copy, timeout=0)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM changes")  # open readers do not know the new token, and read all codes again
        log_new_codes(connection, after=(database.read_acknowledged(library) or (0, ""))[0] + _AHEAD)
        connection.execute("COMMIT")
        write_snapshot(copy / SNAPSHOT, connection)
        database.write_acknowledged(copy, *last_change(connection))
        write_manifest(copy, connection)
        kept = image_folders(connection, backup)  # those in the backup, if it has them
        pictures = connection.execute("SELECT DISTINCT picture FROM items WHERE picture IS NOT NULL")
        for name in () if kept else (picture for (picture,) in pictures):  # images inside the library
            image, known = backup / name, library / name
            if image.is_file() and not (known.is_file() and filecmp.cmp(image, known, shallow=False)):
                copy_file(image, copy / name)
        for name, path in image_folders(connection, copy).items():
            if path.exists():
                set_folder(connection, library, name, path)
            elif kept[name].is_relative_to(backup.resolve()):
                parent = kept[name].parent
                check_space(copy, sum(file.stat().st_size for file in parent.rglob("*") if file.is_file()))
                shutil.copytree(parent, copy / parent.relative_to(backup.resolve()), dirs_exist_ok=True)
    _flush(copy)


def _flush(folder: Path) -> None:
    """Flush every file below a folder to disk."""
    for path in [*folder.rglob("*"), folder]:
        if path.is_dir():
            flush_folder(path)
        else:
            with path.open("rb+") as file:
                os.fsync(file.fileno())


def _replace_database(new: Path, to: Path, replaced: Path, *, timeout: float) -> None:
    """Replace the database of a library by that of the verified copy; copies of what is replaced are kept."""
    usable = _set_aside(to, replaced, timeout=timeout)
    shutil.rmtree(to / NEXT_MODEL, ignore_errors=True)
    os.rename(new / MODEL, to / NEXT_MODEL)  # where it is found as soon as the database is that of the backup
    flush_folder(to)
    if not (usable and _replace_content(new, to, timeout=timeout)):
        _replace_file(new, to)


def _replace_files(new: Path, to: Path, replaced: Path) -> None:
    """Make the model, the snapshot, the manifest and images follow the restored database; may be repeated."""
    with closing(database.connect_reader(to)) as connection:
        install_model(to, generation_of(connection), force=True)
        database.write_acknowledged(to, *last_change(connection))
        write_manifest(to, connection)
    above = {MANIFEST, database.ACKNOWLEDGED, *(f"{database.DATABASE}{suffix}" for suffix in ("", "-wal", "-shm"))}
    for path in sorted(each for each in new.rglob("*") if each.is_file()):
        name = path.relative_to(new)
        if name.parts[0] not in above:
            if (to / name).exists():
                make_folder((replaced / name).parent)
                shutil.copy2(to / name, replaced / name)
            make_folder((to / name).parent)
            os.replace(path, to / name)
            flush_folder((to / name).parent)


def _set_aside(to: Path, replaced: Path, *, timeout: float) -> bool:
    """Copy the files that are about to be replaced; return whether SQLite can use the database."""

    def copy() -> None:
        make_folder(replaced)
        for name in (database.DATABASE, f"{database.DATABASE}-wal", MANIFEST):
            if (to / name).is_file():
                shutil.copy2(to / name, replaced / name)
        if (to / MODEL).is_dir():
            shutil.copytree(to / MODEL, replaced / MODEL, dirs_exist_ok=True)
        _flush(replaced)

    try:
        with closing(database.connect_writer(to, timeout=timeout)) as connection:
            connection.execute("BEGIN IMMEDIATE")  # no writer changes them meanwhile
            with suppress(sqlite3.Error, RmshError):  # these tables may be damaged
                install_model(to, generation_of(connection))  # otherwise a staged model would be lost
            copy()
            connection.execute("COMMIT")
        return True
    except sqlite3.Error as error:
        if database.primary_code(error) not in _UNUSABLE:
            raise
        copy()
        return False


def _replace_content(new: Path, to: Path, *, timeout: float) -> bool:
    """Replace the content of the database in one transaction; False if its file is too damaged for that."""
    deadline = time.monotonic() + timeout

    def check(status: int, _remaining: int, _total: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and time.monotonic() > deadline:
            raise RmshError(f"The library {to} is being written to; restore it again when that has finished.")

    try:
        with (
            closing(database.connect_writer(to, timeout=timeout)) as target,
            closing(database.connect_reader(new)) as source,
        ):
            source.backup(target, progress=check, sleep=0.05)
    except sqlite3.Error as error:
        if database.primary_code(error) not in _UNUSABLE:
            raise
        return False
    return True


def _replace_file(new: Path, to: Path) -> None:
    """Replace a database that SQLite cannot open; its log is removed first, so that it is never replayed."""
    with closing(database.connect_writer(new, timeout=0)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for name in (f"{database.DATABASE}-wal", f"{database.DATABASE}-shm"):
        (to / name).unlink(missing_ok=True)
    flush_folder(to)
    os.replace(new / database.DATABASE, to / database.DATABASE)
    flush_folder(to)
