"""The files of a library besides its database: manifest and model, which follow the database, and image folders.

The database decides which model the codes belong to. A new model waits in ``model.next`` until the database says that
its codes are in use, and is then renamed to ``model``; in between it is found under the first name. A new library is
created under a temporary name and then renamed.

The image folders of a library are the one that it was built from, and further folders, images and metadata files. The
path of an image in a further folder begins with the name of that folder, see :func:`rmsh.data.records.locate`. The
table ``folders`` is additional: a library without it has one folder. Where a library and a folder may be moved
together, the way from one to the other is stored too, and followed first.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from rmsh.core.errors import FormatError, InputError, RmshError
from rmsh.core.files import checked_format, flush_folder, read_json, temporary_path, write_json
from rmsh.core.types import STORES, Store
from rmsh.library import database
from rmsh.library.items import checksum_of, is_intact
from rmsh.library.queries import Generation, facts_of, generation_of, last_change
from rmsh.library.schema import RESTORE, VERSION, create_tables
from rmsh.model import Model, load

MANIFEST = "manifest.json"
REPORT = "report.json"
MODEL, NEXT_MODEL, _OLD_MODEL = "model", "model.next", "model.old"

_FORMAT = "rmsh library"


def check_is_library(folder: Path) -> None:
    """Raise FormatError if a path contains no part of a library."""
    if (folder / MANIFEST).is_file() or (folder / database.DATABASE).is_file():
        return
    found = "has no manifest.json" if folder.is_dir() else "is a file" if folder.exists() else "does not exist"
    raise FormatError(f"{folder} {found}; give the folder of a library, as created by `rmsh build`.")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a library; FormatError if it is missing, damaged or too new."""
    check_is_library(folder)
    path = folder / MANIFEST
    try:
        content = read_json(path)
    except (FileNotFoundError, IsADirectoryError, FormatError) as error:
        found = "has an unreadable manifest.json" if path.exists() else "has no manifest.json"
        raise FormatError(f"{folder} {found}; recreate it with `rmsh library upgrade {folder}`.") from error
    return checked_format(content, path, name=_FORMAT, version=VERSION, hint="give the folder of a library")


def read_report(folder: Path) -> dict[str, Any] | None:
    """The report of a build; None if the build is unfinished, or the library was made in another way."""
    try:
        report = read_json(folder / REPORT)
        return report if (folder / MANIFEST).is_file() and "key" in report else None
    except (OSError, FormatError, TypeError):
        return None


def write_manifest(folder: Path, connection: sqlite3.Connection) -> None:
    """Write the manifest from the database, unless it is up to date."""
    generation = generation_of(connection)
    facts = {"id": facts_of(connection).id, "bits": generation.bits, "model": generation.fingerprint}
    manifest = {"format": _FORMAT, "version": VERSION, **facts}
    try:
        if read_json(folder / MANIFEST) == manifest:
            return
    except (OSError, FormatError):
        pass
    write_json(folder / MANIFEST, manifest)


def stage_model(folder: Path, model: Model) -> None:
    """Save a new model next to the current one, unless an intact copy is there already."""
    with suppress(RmshError):
        if load(folder / NEXT_MODEL).fingerprint == model.fingerprint:
            return
    shutil.rmtree(folder / NEXT_MODEL, ignore_errors=True)
    model.save(folder / NEXT_MODEL)


def install_model(folder: Path, generation: Generation, *, force: bool = False) -> None:
    """Rename the staged model if it belongs to the generation in use; safe to interrupt at any step.

    ``force`` also replaces a model with the same fingerprint, whose files may be damaged. Writing the manifest, which
    follows, flushes the folder and with it the renames.
    """
    needed = force or _fingerprint(folder / MODEL) != generation.fingerprint
    if needed and _fingerprint(folder / NEXT_MODEL) == generation.fingerprint:
        shutil.rmtree(folder / _OLD_MODEL, ignore_errors=True)
        if (folder / MODEL).exists():
            os.rename(folder / MODEL, folder / _OLD_MODEL)
        os.rename(folder / NEXT_MODEL, folder / MODEL)
    shutil.rmtree(folder / _OLD_MODEL, ignore_errors=True)


def update_files(folder: Path, connection: sqlite3.Connection) -> None:
    """Make model folder and manifest follow the database."""
    install_model(folder, generation_of(connection))
    write_manifest(folder, connection)


def find_model(folder: Path, generation: Generation) -> Path:
    """The folder of the model of a generation; FormatError if it is missing."""
    for name in (MODEL, NEXT_MODEL, MODEL):  # twice, because it may be renamed in between
        if _fingerprint(folder / name) == generation.fingerprint:
            return folder / name
    raise FormatError(f"The library {folder} has no model with the fingerprint {generation.fingerprint}; {RESTORE}.")


def _fingerprint(folder: Path) -> str | None:
    try:
        return str(read_json(folder / "config.json")["fingerprint"])
    except (OSError, RmshError, KeyError, TypeError):
        return None


def create_folder(folder: Path, model: Model, *, source: Path | None, store: Store) -> None:
    """Create an empty library; InputError if the folder exists and is not empty, or ``store`` is unknown."""
    if store not in STORES:
        raise InputError(f"A library cannot store {store!r}; give one of {', '.join(STORES)}.")
    with new_folder(folder) as unfinished:
        model.save(unfinished / MODEL)
        with closing(database.connect_writer(unfinished, timeout=0, create=True)) as connection:
            create_tables(connection, model.fingerprint, bits=model.bits, store=store)
            if source is not None:
                set_folder(connection, folder, "", source)
            database.write_acknowledged(unfinished, *last_change(connection))
            write_manifest(unfinished, connection)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder that is renamed to ``folder`` if the block succeeds, and removed otherwise."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} already exists and is not empty; give a new folder.")
    with database.translate_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = temporary_path(folder)
        unfinished.mkdir(mode=0o700)
        try:
            yield unfinished
            if folder.exists():
                folder.rmdir()  # Windows cannot rename onto an existing folder
            os.rename(unfinished, folder)
            flush_folder(folder.parent)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise


_CREATE = """
CREATE TABLE IF NOT EXISTS folders (
    name TEXT PRIMARY KEY,
    path TEXT NOT NULL,
    near TEXT,
    checksum INTEGER NOT NULL
)
"""


def image_folders(connection: sqlite3.Connection, library: Path, *, of: str | None = None) -> dict[str, Path]:
    """Where the images of a library are, by name; the first folder is "". Empty if the library keeps its own images.

    ``of`` is the path of one image, whose folder and the first are returned.

    Raises:
        FormatError: a place is damaged.
    """
    first = facts_of(connection).source
    if first is None:
        return {}
    found, home = {"": Path(first)}, library.resolve()
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'folders'").fetchone() is None:
        return found
    chosen, values = ("", ()) if of is None else ("WHERE name IN ('', ?)", (of.partition("/")[0],))
    for *stored, checksum in connection.execute(f"SELECT * FROM folders {chosen}", values):  # noqa: S608
        if not is_intact(stored, checksum):
            raise FormatError(f"The list of image folders of {library} is damaged; restore a backup.")
        name, path, near = stored
        found[name] = Path(path)
        if near is not None and (moved := Path(os.path.normpath(home / near))).exists():
            found[name] = moved
    return found


def set_folder(connection: sqlite3.Connection, library: Path, name: str, path: Path, near: str | None = None) -> None:
    """Store where an image folder of a library is; inside a write transaction.

    ``near`` is the way from the library to the folder; by default that to a folder next to the library, below it or
    around it.
    """
    home, path = library.resolve(), path.resolve()
    if near is None and (path.is_relative_to(home.parent) or home.is_relative_to(path)):
        near = Path(os.path.relpath(path, home)).as_posix()
    values = (name, str(path), near)
    connection.execute(_CREATE)
    connection.execute("INSERT OR REPLACE INTO folders VALUES (?, ?, ?, ?)", (*values, checksum_of(*values)))
    if not name:
        statement = "UPDATE library SET source = :path, checksum = checksum_of(id, generation, :path)"
        connection.execute(statement, {"path": str(path)})


def forget_folder(connection: sqlite3.Connection, name: str) -> None:
    """Forget a further folder unless an item has an image in it; inside a write transaction."""
    used = "SELECT 1 FROM items WHERE picture = :name OR substr(picture, 1, length(:name) + 1) = :name || '/'"
    connection.execute(f"DELETE FROM folders WHERE name = :name AND NOT EXISTS ({used})", {"name": name})  # noqa: S608
