"""Bringing a library of an older format to the present one, and putting back a manifest that was lost."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from rmsh.errors import FormatError
from rmsh.library import schema
from rmsh.library.database import DATABASE, connect_writer
from rmsh.library.faults import explained
from rmsh.library.folder import settle, write_manifest
from rmsh.library.reading import generation_of

__all__ = ["upgrade"]


def upgrade(folder: Path, *, timeout: float = 30.0) -> tuple[int, int]:
    """Upgrade a library in place; one that is up to date stays as it is.

    Returns:
        The format it had, and the format it has.

    Raises:
        FormatError: it is no library, is damaged, or is of a newer rmsh.
    """
    if not (folder / DATABASE).is_file():
        raise FormatError(
            f"{folder} has no {DATABASE}, which holds all items of a library; give the folder of a library."
        )
    with explained(folder), closing(connect_writer(folder, timeout=timeout)) as connection:
        version = schema.version_of(connection, folder)
        schema.migrate(connection, version)
        connection.execute("BEGIN IMMEDIATE")
        settle(folder, generation_of(connection))
        write_manifest(folder, connection)
        connection.execute("COMMIT")
    return version, schema.VERSION
