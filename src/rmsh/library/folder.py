"""The files of a library's folder: the manifest, written last, the model, and how both follow the database.

The database is the truth about which model the codes are of. A new model waits in ``model.next`` until the database
says that its codes serve; then it takes the place of ``model``. Whoever looks in between finds it where it waits.

Making the folder of a library: everything under another name, then one rename, so that it is there whole or not.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmsh.core.errors import FormatError, InputError, RmshError
from rmsh.core.files import checked_format, flush_folder, read_json, write_json
from rmsh.library.database import connect_writer, explained
from rmsh.library.queries import generation_of
from rmsh.library.schema import VERSION, create_tables
from rmsh.model import load

if TYPE_CHECKING:
    from rmsh.library.queries import Generation
    from rmsh.model import Model

MANIFEST = "manifest.json"
FORMAT = "rmsh library"

MODEL = "model"
NEXT_MODEL, _OLD = "model.next", "model.old"


def check_is_library(folder: Path) -> None:
    """Refuse a path where there is nothing of a library.

    Raises:
        FormatError: it says what is there.
    """
    if (folder / MANIFEST).is_file() or (folder / "items.sqlite").is_file():
        return
    found = "has no manifest.json" if folder.is_dir() else "is a file" if folder.exists() else "does not exist"
    raise FormatError(f"{folder} {found}; give the folder of a library, such as `rmsh build` makes.")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a library.

    Raises:
        FormatError: the folder is no library, or one of a newer rmsh, or its manifest is damaged.
    """
    check_is_library(folder)
    path = folder / MANIFEST
    try:
        content = read_json(path)
    except (FileNotFoundError, IsADirectoryError, FormatError) as error:
        found = "has a manifest.json that cannot be read" if path.exists() else "has no manifest.json"
        raise FormatError(
            f"{folder} {found}; `rmsh library upgrade {folder}` writes it anew from items.sqlite."
        ) from error
    return checked_format(content, path, name=FORMAT, version=VERSION, hint="give the folder of a library")


def write_manifest(folder: Path, connection: sqlite3.Connection) -> None:
    """Write what the database says into the manifest, where that is something new."""
    (library,) = connection.execute("SELECT id FROM library").fetchone()
    generation = generation_of(connection)
    facts = {"id": library, "bits": generation.bits, "model": generation.fingerprint}
    manifest = {"format": FORMAT, "version": VERSION, **facts}
    try:
        if read_json(folder / MANIFEST) == manifest:
            return
    except (OSError, FormatError):
        pass
    write_json(folder / MANIFEST, manifest)


def stage_model(folder: Path, model: Model) -> None:
    """Put a new model beside the one in use."""
    if _fingerprint(folder / NEXT_MODEL) != model.fingerprint:
        shutil.rmtree(folder / NEXT_MODEL, ignore_errors=True)
        model.save(folder / NEXT_MODEL)


def settle(folder: Path, generation: Generation, *, force: bool = False) -> None:
    """Give the model of a generation its place; every step may be the last one before a power cut.

    The manifest, which is written next, flushes the folder and with it the renames.

    Args:
        folder: of the library.
        generation: whose model is to be used.
        force: whether a waiting model replaces one with the same fingerprint, whose files may be damaged.
    """
    if (force or _fingerprint(folder / MODEL) != generation.fingerprint) and _fingerprint(
        folder / NEXT_MODEL
    ) == generation.fingerprint:
        shutil.rmtree(folder / _OLD, ignore_errors=True)
        if (folder / MODEL).exists():
            os.rename(folder / MODEL, folder / _OLD)
        os.rename(folder / NEXT_MODEL, folder / MODEL)
    shutil.rmtree(folder / _OLD, ignore_errors=True)


def find_model(folder: Path, generation: Generation) -> Path:
    """The folder of the model that made the codes of a generation.

    Raises:
        FormatError: it is not there.
    """
    for name in (MODEL, NEXT_MODEL, MODEL):  # once more: it may have moved while we looked
        if _fingerprint(folder / name) == generation.fingerprint:
            return folder / name
    raise FormatError(
        f"The library {folder} has no model of fingerprint {generation.fingerprint}, which made its codes; "
        "restore a backup with `rmsh library restore`."
    )


def _fingerprint(folder: Path) -> str | None:
    """The fingerprint a model folder says it has, or None where there is no finished model."""
    try:
        return str(read_json(folder / "config.json")["fingerprint"])
    except (OSError, RmshError, KeyError, TypeError):
        return None


def load_model(folder: Path, generation: Generation) -> Model:
    """The model that made the codes of a generation."""
    return load(find_model(folder, generation))


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
