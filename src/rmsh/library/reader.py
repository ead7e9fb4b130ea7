"""The half of a library that reads: what is in it, and what is near a code."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from rmsh.core.errors import FormatError, RmshError
from rmsh.data.readers.folder import read_credit
from rmsh.library.database import DATABASE, Readers, is_restoring
from rmsh.library.filters import filter_mask
from rmsh.library.folder import load_model
from rmsh.library.items import Hit, Item, check_modality, checked_ids, picture_inside
from rmsh.library.queries import codes_of_ids, generation_of, intact_items, items_of_rows, rows_of_ids
from rmsh.library.schema import check_version
from rmsh.library.views import Views
from rmsh.library.warnings import Warnings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmsh.codes import Codes
    from rmsh.core.types import BitArray, IntArray, Modality
    from rmsh.index.filters import Filter
    from rmsh.index.store import StoredIndex
    from rmsh.library.queries import Generation
    from rmsh.library.views import View
    from rmsh.model import Model

__all__ = ["Reader"]

_Found: TypeAlias = "Iterable[tuple[IntArray, NDArray[np.int32]]]"  # rows and distances of each query


class Reader:
    """What :class:`rmsh.library.Library` does without changing anything.

    Args:
        folder: of the library.
        engine: the index that searches its codes.
    """

    def __init__(self, folder: Path, *, engine: type[StoredIndex]) -> None:
        self.folder = folder
        self._readers = Readers(folder)
        self._warnings = Warnings()
        self._views = Views(folder, engine=engine, warnings=self._warnings)

    def _check(self, manifest: Mapping[str, Any]) -> None:
        if not (self.folder / DATABASE).is_file():
            raise FormatError(
                f"The library {self.folder} has no {DATABASE}, which holds all its items; restore a backup with "
                "`rmsh library restore`."
            )
        with self._readers.reading() as connection:
            check_version(connection, self.folder)
            (name,) = connection.execute("SELECT id FROM library").fetchone()
        if name != manifest.get("id") and is_restoring(self.folder):
            raise RmshError(
                f"The library {self.folder} is being restored from a backup; try again in a moment. If it was "
                "interrupted, repeat `rmsh library restore`."
            )
        if name != manifest.get("id"):
            raise FormatError(
                f"{self.folder} mixes files of two libraries; restore a backup with `rmsh library restore --replace`."
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
        """The item of an id, or None.

        Raises:
            FormatError: the item is damaged.
        """
        with self.reading() as connection:
            rows = rows_of_ids(connection, checked_ids([name]))
            items = items_of_rows(connection, rows.values())
            return next((item for item in items.values() if item.id == name), None)

    def codes(self, ids: Iterable[str], modality: Modality) -> Codes:
        """The codes of some items' pictures or texts, in the order of the ids; items that have none are left out.

        A damaged item is left out of several, with a warning in the log.

        Raises:
            FormatError: the only item asked for is damaged.
        """
        check_modality(modality)
        names = checked_ids(ids)
        sentences: list[str] = []
        with self.reading() as connection:
            generation = generation_of(connection)
            found = codes_of_ids(connection, names, modality, generation=generation, on_damage=sentences.append)
        if sentences and len(names) == 1:
            raise FormatError(sentences[0])
        self._warnings.about(sentences)
        return found

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

            def nearest(mask: BitArray | None) -> _Found:
                found = view.search(codes, k, where=mask)
                return zip(found.rows, found.distances, strict=True)

            return self._hits(nearest, where, view=view, connection=connection)

    def within(
        self, codes: Codes, radius: int, *, to: Modality, model: str, where: Filter | None = None
    ) -> list[list[Hit]]:
        """All items at a distance of at most ``radius`` of each query; the rest is as in :meth:`search`."""
        with self._searching(codes, to, model) as (connection, view):

            def near(mask: BitArray | None) -> _Found:
                found = view.within(codes, radius, where=mask)
                return map(found.of, range(len(found)))

            return self._hits(near, where, view=view, connection=connection)

    def _hits(
        self,
        find: Callable[[BitArray | None], _Found],
        where: Filter | None,
        *,
        view: View,
        connection: sqlite3.Connection,
    ) -> list[list[Hit]]:
        """What a search finds, with the items; damaged items are excluded, and the search repeated without them."""
        mask = None if where is None else filter_mask(where, view, connection=connection)
        while True:
            queries = [list(zip(rows.tolist(), far.tolist(), strict=True)) for rows, far in find(mask)]
            items, damaged = intact_items(connection, {row for hits in queries for row, _ in hits})
            if not damaged:
                return [[Hit(items[row], distance, row) for row, distance in hits] for hits in queries]
            self._warnings.about(damaged.values())
            intact = ~view.mask_of(np.array(sorted(damaged), dtype=np.int64))
            mask = intact if mask is None else mask & intact

    @contextmanager
    def _searching(self, codes: Codes, to: Modality, model: str) -> Iterator[tuple[sqlite3.Connection, View]]:
        """The codes as they are now, and a connection that sees the items as they are with them."""
        check_modality(to)
        with self.reading() as connection:
            view = self._views.at(connection, to)
            view.generation.check(model, codes)
            yield connection, view
