"""Making the folder of a library: everything under another name, then one rename, so that it is there whole or not."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rmsh.errors import InputError
from rmsh.files import flush_folder
from rmsh.library.database import connect_writer
from rmsh.library.faults import explained
from rmsh.library.folder import MODEL, write_manifest
from rmsh.library.schema import create_tables

if TYPE_CHECKING:
    from rmsh.model import Model

__all__ = ["create_folder", "new_folder"]


def create_folder(folder: Path, model: Model, *, source: Path | None) -> None:
    """Make the folder of an empty library.

    Raises:
        InputError: the folder is there and not empty.
    """
    where = None if source is None else str(source.resolve())
    with new_folder(folder) as unfinished:
        model.save(unfinished / MODEL)
        with closing(connect_writer(unfinished, timeout=0, create=True)) as connection:
            create_tables(connection, model.fingerprint, bits=model.bits, source=where)
            write_manifest(unfinished, connection)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill that gets its name when the block ends well, and is gone when it does not.

    Raises:
        InputError: the folder is there and not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there already and not empty; give a new folder.")
    with explained(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".tmp"))
        try:
            yield unfinished
            unfinished.chmod(0o777 & ~_umask())
            if folder.exists():
                folder.rmdir()  # Windows renames onto nothing only
            os.rename(unfinished, folder)
            flush_folder(folder.parent)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
