"""The half of a library that reads: what is in it, and what is near a code."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rmsh.core.errors import FormatError, RmshError
from rmsh.data.readers.folder import read_credit
from rmsh.library.database import DATABASE, Readers
from rmsh.library.filters import filter_mask
from rmsh.library.folder import load_model
from rmsh.library.items import Hit, Item, check_modality, checked_ids, picture_inside
from rmsh.library.queries import codes_of_ids, generation_of, items_of_rows, rows_of_ids
from rmsh.library.schema import check_version
from rmsh.library.views import Views

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rmsh.codes import Codes
    from rmsh.core.types import IntArray, Modality
    from rmsh.index.filters import Filter
    from rmsh.index.store import StoredIndex
    from rmsh.library.queries import Generation
    from rmsh.library.views import View
    from rmsh.model import Model

__all__ = ["Reader"]


class Reader:
    """What :class:`rmsh.library.Library` does without changing anything.

    Args:
        folder: of the library.
        engine: the index that searches its codes.
    """

    def __init__(self, folder: Path, *, engine: type[StoredIndex]) -> None:
        self.folder = folder
        self._readers = Readers(folder)
        self._views = Views(folder, engine=engine)

    def _check(self, manifest: Mapping[str, Any]) -> None:
        if not (self.folder / DATABASE).is_file():
            raise FormatError(
                f"The library {self.folder} has no {DATABASE}, which holds all its items; put it back from a backup."
            )
        with self._readers.reading() as connection:
            check_version(connection, self.folder)
            (name,) = connection.execute("SELECT id FROM library").fetchone()
        if name != manifest.get("id"):
            raise FormatError(
                f"{self.folder} mixes files of two libraries; put {DATABASE} and manifest.json back from one backup."
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it; other processes are not disturbed."""
        self._readers.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to the database for a block of questions; all answers are of one state."""
        with self._readers.reading() as connection:
            yield connection

    def generation(self) -> Generation:
        """Whose codes it holds at present, and how long they are."""
        with self.reading() as connection:
            return generation_of(connection)

    def model(self) -> Model:
        """The model that makes its codes."""
        generation = self.generation()
        try:
            return load_model(self.folder, generation)
        except RmshError:
            if self.generation() == generation:
                raise
            return self.model()  # other codes were put in while we looked

    def count(self) -> int:
        """How many items there are."""
        with self.reading() as connection:
            return int(connection.execute("SELECT count(*) FROM items").fetchone()[0])

    def get(self, name: str) -> Item | None:
        """The item of an id, or None."""
        with self.reading() as connection:
            rows = rows_of_ids(connection, checked_ids([name]))
            return next(iter(items_of_rows(connection, rows.values()).values()), None)

    def codes(self, ids: Iterable[str], modality: Modality) -> Codes:
        """The codes of some items' pictures or texts, in the order of the ids; items that have none are left out."""
        check_modality(modality)
        with self.reading() as connection:
            return codes_of_ids(connection, checked_ids(ids), modality, generation=generation_of(connection))

    def picture_path(self, item: Item) -> Path | None:
        """Where the picture of an item is, or None where it has none.

        Raises:
            InputError: a link leads out of the folder of the pictures.
        """
        if item.picture is None:
            return None
        with self.reading() as connection:
            (source,) = connection.execute("SELECT source FROM library").fetchone()
        return picture_inside(Path(source or self.folder), item)

    def credit(self) -> str:
        """Whom to thank for the pictures, from CREDIT.txt in the folder; "" where there is none."""
        return read_credit(self.folder)

    def search(self, codes: Codes, k: int, *, to: Modality, model: str, where: Filter | None = None) -> list[list[Hit]]:
        """The k nearest items of each query, nearest first; equal distances are ordered by row.

        Args:
            codes: the queries.
            k: how many to find.
            to: whether the codes of pictures or of texts are compared.
            model: the fingerprint of the model that made the codes.
            where: which items may be found.

        Raises:
            CodesError: the codes are of another length or another model.
        """
        with self._searching(codes, to, model) as (connection, view):
            mask = None if where is None else filter_mask(where, view, connection=connection)
            found = view.search(codes, k, where=mask)
            return _hits(connection, zip(found.rows, found.distances, strict=True))

    def within(
        self, codes: Codes, radius: int, *, to: Modality, model: str, where: Filter | None = None
    ) -> list[list[Hit]]:
        """All items at a distance of at most ``radius`` of each query; the rest is as in :meth:`search`."""
        with self._searching(codes, to, model) as (connection, view):
            mask = None if where is None else filter_mask(where, view, connection=connection)
            found = view.within(codes, radius, where=mask)
            return _hits(connection, map(found.of, range(len(found))))

    @contextmanager
    def _searching(self, codes: Codes, to: Modality, model: str) -> Iterator[tuple[sqlite3.Connection, View]]:
        """The codes as they are now, and a connection that sees the items as they are with them."""
        check_modality(to)
        with self.reading() as connection:
            view = self._views.at(connection, to)
            view.generation.check(model, codes)
            yield connection, view


def _hits(connection: sqlite3.Connection, found: Iterable[tuple[IntArray, NDArray[np.int32]]]) -> list[list[Hit]]:
    queries = [list(zip(rows.tolist(), distances.tolist(), strict=True)) for rows, distances in found]
    items = items_of_rows(connection, {row for hits in queries for row, _ in hits})
    return [[Hit(items[row], distance, row) for row, distance in hits] for hits in queries]
