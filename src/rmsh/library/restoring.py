"""The folder that a restore works in, and how an interrupted restore is finished or undone.

``.restoring`` lies inside the library and holds the verified copy of the backup (``new``), the files that it replaces
(``replaced``), and ``restore.json``, which is there from before the first file is replaced until after the last one.
The database decides: it is replaced in one step, and once it has the token in ``restore.json``, everything else follows
it; before that, nothing that is in use has changed. A lock shows whether the process that restores is still running.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path

from rmsh.core.errors import RmshError
from rmsh.core.files import flush_folder, read_json
from rmsh.library.database import DATABASE, RESTORING, connect_reader, explained, is_restoring
from rmsh.library.folder import MANIFEST, MODEL, NEXT_MODEL, find_model, settle, write_manifest
from rmsh.library.queries import change_token, generation_of, last_change
from rmsh.library.snapshot import SNAPSHOT

__all__ = ["finish_restore", "keep_replaced", "restoring", "roll_forward"]

_log = logging.getLogger("rmsh.library")

_PARTS = {DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", MANIFEST, MODEL, SNAPSHOT, "writer.json"}


@contextmanager
def restoring(folder: Path) -> Iterator[Path]:
    """The folder to restore in, empty and locked; removed when the block ends.

    Raises:
        RmshError: another process restores this library.
    """
    finish_restore(folder)
    work = folder / RESTORING
    with explained(folder), _locked(folder):
        try:
            yield work
        except BaseException:
            _finish(folder)
            raise
    shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    (folder / RESTORING).mkdir(exist_ok=True)
    # SQLite's locks work on every system, and end with the process.
    with closing(sqlite3.connect(folder / RESTORING / "lock", timeout=0, isolation_level=None)) as lock:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise RmshError(
                f"Another process is restoring the library {folder}; wait until it has finished."
            ) from error
        yield


def finish_restore(folder: Path) -> None:
    """Finish or undo a restore that was interrupted; without one, nothing happens.

    Raises:
        RmshError: the restore is still running.
    """
    if not (folder / RESTORING).is_dir():
        return
    with explained(folder), _locked(folder):
        _finish(folder)


def _finish(folder: Path) -> None:
    """Finish or undo a restore, by whoever holds its lock."""
    if is_restoring(folder):
        if _is_replaced(folder):
            roll_forward(folder)
        else:
            _roll_back(folder)
    kept = keep_replaced(folder)
    if kept is not None:
        _log.warning("a restore of %s was interrupted; the files that it replaced are in %s", folder, kept)
    shutil.rmtree(folder / RESTORING, ignore_errors=True)


def _is_replaced(folder: Path) -> bool:
    """Whether the database is already the restored one."""
    wanted = read_json(folder / RESTORING / "restore.json")["token"]
    try:
        with closing(connect_reader(folder)) as connection:
            return bool(change_token(connection, last_change(connection)) == wanted)
    except sqlite3.Error:
        return False


def roll_forward(folder: Path) -> None:
    """Let model, snapshot, images and manifest follow the restored database; may be repeated."""
    work = folder / RESTORING
    with closing(connect_reader(folder)) as connection:
        settle(folder, generation_of(connection), force=True)
        if (work / "new" / SNAPSHOT).exists():
            os.replace(work / "new" / SNAPSHOT, folder / SNAPSHOT)
        for path in sorted(each for each in (work / "new").rglob("*") if each.is_file()):
            name = path.relative_to(work / "new")
            if name.parts[0] not in _PARTS:
                _put_in_place(path, folder / name, work / "replaced" / name)
        write_manifest(folder, connection)
    flush_folder(folder)
    (work / "restore.json").unlink()
    flush_folder(work)


def _put_in_place(path: Path, target: Path, replaced: Path) -> None:
    """Move an image to its place; a different one that was there is kept."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        replaced.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(target, replaced)
    os.replace(path, target)
    flush_folder(target.parent)


def _roll_back(folder: Path) -> None:
    """Forget a restore that had not replaced the database: nothing else in use was changed."""
    work = folder / RESTORING
    with suppress(sqlite3.Error, RmshError), closing(connect_reader(folder)) as connection:
        if find_model(folder, generation_of(connection)) == folder / MODEL:
            shutil.rmtree(folder / NEXT_MODEL, ignore_errors=True)
    shutil.rmtree(work / "replaced", ignore_errors=True)
    (work / "restore.json").unlink()


def keep_replaced(folder: Path) -> Path | None:
    """Move the replaced files to a folder of the library that is not removed; None where there are none."""
    if not (folder / RESTORING / "replaced").is_dir():
        return None
    begin = kept = folder / f"replaced-{datetime.now():%Y%m%d-%H%M%S}"
    number = 1
    while kept.exists():
        number += 1
        kept = begin.with_name(f"{begin.name}-{number}")
    os.rename(folder / RESTORING / "replaced", kept)
    flush_folder(folder)
    return kept
