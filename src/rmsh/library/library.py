"""The library: open it, then add, update, remove and search items.

A change is durable when its call returns, and visible at once. Several processes may open a library: any number may
read; writers take turns, one batch at a time, and wait for each other up to a timeout. Several threads may share one
``Library``; after a fork, open it again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rmsh.core.errors import FormatError, InputError, RmshError
from rmsh.core.types import MODALITIES, BitArray, IntArray, Modality, Store
from rmsh.data.readers.folder import read_credit
from rmsh.index.filters import Filter, to_mask
from rmsh.library import database, queries, writing
from rmsh.library.folder import create_folder, find_model, image_folders, read_manifest, read_report, update_files
from rmsh.library.items import Batch, CandidateQuery, Candidates, Hit, Item, check_modality, checked_ids, image_path
from rmsh.library.photos import ImageFile, label_hints
from rmsh.library.schema import RESTORE, check_version
from rmsh.library.snapshot import SnapshotWriter
from rmsh.library.views import View, Views
from rmsh.model import Model, load

if TYPE_CHECKING:
    from rmsh.codes import Codes
    from rmsh.library.queries import Generation

T = TypeVar("T")


class Library(AbstractContextManager["Library"]):
    """Items with their codes in a folder; returned by :meth:`create` and :meth:`open`, closed by ``with``.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from rmsh.hash_function import HashFunction, Layer
        >>> from rmsh.model import Model
        >>> identity = Layer(np.eye(3, dtype=np.float32), np.zeros(3, dtype=np.float32), "none")
        >>> model = Model({"text": HashFunction((identity,))}, "example", {})
        >>> codes = model.encode(np.array([[1, 1, 1], [1, -1, -1]], np.float32), "text", ids=["a", "b"])
        >>> items = [Item("a", text="a cat"), Item("b", text="a dog")]
        >>> with tempfile.TemporaryDirectory() as folder, Library.create(folder, model) as library:
        ...     library.add(items, {"text": codes}, model=model.fingerprint)
        ...     found = library.search(codes, 1, to="text", model=model.fingerprint)
        >>> [(hit.item.text, hit.distance) for (hit,) in found]
        [('a cat', 0), ('a dog', 0)]
    """

    has_images = True  # unlike a collection without a folder of images

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._readers = database.Readers(folder)
        self._views = Views(folder)
        self._snapshot = SnapshotWriter(folder, self._readers)
        self._writer: database.Writer | None = None
        self._count: tuple[tuple[int, str], int] | None = None  # the number of items after a change

    @classmethod
    def create(
        cls, folder: Path | str, model: Model, *, source: Path | str | None = None, store: Store = "codes+vectors"
    ) -> Self:
        """Create an empty library for the codes of a model, and open it for writing.

        Args:
            folder: a new or empty folder.
            model: the model that computes the codes; the library keeps a copy.
            source: folder that contains the images of the items; None for the folder of the library.
            store: whether the vectors of codes are stored too, if they have any; this cannot be changed later.

        Raises:
            InputError: the folder is not empty, or ``store`` is unknown.
        """
        create_folder(Path(folder), model, source=None if source is None else Path(source), store=store)
        return cls.open(folder, writable=True)

    @classmethod
    def open(cls, folder: Path | str, *, writable: bool = False, timeout: float = 30.0) -> Self:
        """Open a library.

        Args:
            folder: folder of the library.
            writable: whether to open it for changes.
            timeout: seconds to wait for another writer.

        Raises:
            FormatError: it is not a library, is damaged, or was written by a newer rmsh.
        """
        library = cls(Path(folder))
        try:
            library._check()
            if writable:
                library._writer = database.Writer(library.folder, timeout=timeout)
                if read_manifest(library.folder).get("model") != library.generation().fingerprint:
                    library.update_files()  # recoding was interrupted after the new codes had been put to use
                library._snapshot.check()
        except BaseException:
            library.close()
            raise
        return library

    def _check(self) -> None:
        """Check that database and manifest exist, have the current format, and belong together."""
        manifest, acknowledged = read_manifest(self.folder), database.read_acknowledged(self.folder)
        if not (self.folder / database.DATABASE).is_file():
            raise FormatError(f"The library {self.folder} has no {database.DATABASE}; {RESTORE}.")
        with self.reading() as connection:
            check_version(connection, self.folder)
            found, lost = queries.facts_of(connection).id, queries.lost_changes(connection, acknowledged)
        if found == manifest.get("id") and lost is None:
            return
        problem = "contains files of two libraries" if lost is None else f"has lost {lost}"
        more = " and --replace" if lost is None else f", or accept the loss with `rmsh library repair {self.folder}`"
        raise FormatError(f"The library {self.folder} {problem}; {RESTORE}{more}.")

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the library; other processes that use it are not affected."""
        self._readers.close()
        if self._writer is not None:
            self._writer.close()

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection to the database; everything read in the block belongs to one state."""
        return self._readers.reading()

    def generation(self) -> Generation:
        """The fingerprint of the current model, and the length of its codes."""
        with self.reading() as connection:
            return queries.generation_of(connection)

    def model(self) -> Model:
        """The model that computes the codes of this library."""
        generation = self.generation()
        try:
            return load(find_model(self.folder, generation))
        except RmshError:
            if self.generation() == generation:
                raise
            return self.model()  # the library was recoded in between

    def count(self) -> int:
        """The number of items; FormatError if it is uncertain."""
        with self.reading() as connection:
            change = queries.last_change(connection)
            if self._count is None or self._count[0] != change:
                self._count = change, queries.count_items(connection)
            return self._count[1]

    def get(self, name: str) -> Item | None:
        """The item with an ID, or None; FormatError if it is damaged."""
        with self.reading() as connection:
            rows = queries.rows_of_ids(connection, checked_ids([name]))
            items = queries.items_of_rows(connection, rows.values())
            return next((item for item in items.values() if item.id == name), None)

    def codes(self, ids: Iterable[str], modality: Modality) -> Codes:
        """The image or text codes of some items, in the order of the IDs, without items that have none.

        Damaged items are omitted too, with a warning in the log; a single one raises FormatError.
        """
        check_modality(modality)
        names = checked_ids(ids)
        damaged: list[str] = []
        with self.reading() as connection:
            found = queries.codes_of_ids(connection, names, modality, on_damage=damaged.append)
        if damaged and len(names) == 1:
            raise FormatError(damaged[0])
        self._views.warn(damaged)
        return found

    def picture_path(self, item: Item) -> Path | None:
        """The path of an item's image, or None; InputError if a link leads out of the image folder."""
        with self.reading() as connection:
            folders = image_folders(connection, self.folder, of=item.picture)
        return image_path(folders.pop("", self.folder), item, folders)

    def credit(self) -> str:
        """The image credits, from CREDIT.txt in the folder; "" if there is no such file."""
        return read_credit(self.folder)

    def warning(self) -> str:
        """The warning of the build that made the current codes, or ""."""
        report = read_report(self.folder) or {}
        return str(report.get("warning", "")) if report.get("model") == self.generation().fingerprint else ""

    def hints(self, where: Filter) -> list[str]:
        """Sentences about labels of a filter that no item has, and labels that may be meant."""
        with self.reading() as connection:
            return label_hints(self._views.labels(connection), where)

    def search(self, codes: Codes, k: int, *, to: Modality, model: str, where: Filter | None = None) -> list[list[Hit]]:
        """The k nearest items of each query, nearest first; equal distances are ordered by row.

        Args:
            codes: codes of the queries.
            k: number of items to find.
            to: whether to compare with the image codes or the text codes of the items.
            model: fingerprint of the model that computed the codes.
            where: which items may be found.

        Raises:
            CodesError: the codes have another length or belong to another model.
        """
        check_modality(to)
        with self.reading() as connection:
            view = self._views.at(connection, to)
            view.generation.check(model, codes)
            mask = self._mask(connection, view, where)
            while view.is_valid():
                found = view.search(codes, k, where=mask)
                items, damaged = queries.intact_items(connection, found.rows.ravel().tolist())
                if not damaged and view.is_valid():
                    return [_hits(items, *found.of(query)) for query in range(len(found))]
                self._views.warn(damaged.values())  # and search without them
                intact = ~view.mask_of([np.array(sorted(damaged), dtype=np.int64)])
                mask = intact if mask is None else mask & intact
        return self.search(codes, k, to=to, model=model, where=where)  # another program overwrote the snapshot

    def candidates(self, query: CandidateQuery, use: Callable[[Candidates], T]) -> T:
        """Compare some items more closely with a query; returns what ``use`` returns for their codes and vectors.

        ``use`` is called with the candidates, whose items it may read, in one state of the library; it may be called
        again if another program overwrites the snapshot. A code of another length or model raises CodesError.
        """
        with self.reading() as connection:
            views = {modality: self._views.at(connection, modality) for modality in MODALITIES}
            while len({(view.seq, view.token) for view in views.values()}) > 1:  # the second may be of a later state
                views = {modality: self._views.at(connection, modality) for modality in MODALITIES}
            views[query.to].generation.check(query.model, query.codes)
            rows, mask = self._candidate_rows(connection, views, query)
            places, codes = views[query.to].locate(rows)
            allowed = (places >= 0) & (True if mask is None else mask[places])
            rows, located = rows[allowed], {query.to: (places[allowed], codes[allowed])}
            stored, has, lost = {}, {}, list[str]()
            for modality, view in views.items():
                places, codes = located.get(modality) or view.locate(rows)
                stored[modality] = codes.astype("<u8").view(np.uint8)[:, : query.codes.packed.shape[1]]
                has[modality] = places >= 0
            read = partial(queries.vectors_of_rows, connection, on_damage=lost.append)
            vectors = views["image"].vectors.of(rows, read)
            self._views.warn(lost)
            items = partial(self._intact_items, connection)
            used = use(Candidates(rows, stored, has, vectors, items, len(views[query.to]), views["image"].words))
            if all(view.is_valid() for view in views.values()):
                return used
        return self.candidates(query, use)

    def _candidate_rows(
        self, connection: sqlite3.Connection, views: Mapping[Modality, View], query: CandidateQuery
    ) -> tuple[IntArray, BitArray | None]:
        """Rows of :meth:`candidates` and others, int64 (n,) increasing, and the mask that they have to pass."""

        def with_label() -> IntArray:
            return queries.most_frequent(self._views.rows_with_labels(connection, query.labels), query.count)

        found = [self._unless_damaged(with_label)]
        if query.words:
            found.append(self._unless_damaged(lambda: queries.rows_with_words(connection, query.words, query.count)))
        masks = {}
        for modality, view in views.items():
            masks[modality] = self._mask(connection, view, query.where)
            found.append(view.search(query.codes, query.count, where=masks[modality]).rows[0])
        return np.unique(np.concatenate(found)), masks[query.to]

    def _intact_items(self, connection: sqlite3.Connection, rows: Iterable[int]) -> Mapping[int, Item]:
        items, damaged = queries.intact_items(connection, rows)
        self._views.warn(damaged.values())
        return items

    def _unless_damaged(self, find: Callable[[], IntArray]) -> IntArray:
        """Rows from an index, or none if it is damaged, which is logged: other ways to find items go on."""
        try:
            with database.translate_errors(self.folder):
                return find()
        except FormatError as error:
            self._views.warn([str(error)])
            return np.empty(0, dtype=np.int64)

    def _mask(self, connection: sqlite3.Connection, view: View, where: Filter | None) -> BitArray | None:
        if where is None:
            return None
        labels = partial(self._views.labels, connection)
        return to_mask(where, lambda condition: view.mask_of(queries.matching_rows(connection, condition, labels)))

    def add(
        self,
        items: Iterable[Item],
        codes: Mapping[Modality, Codes],
        *,
        model: str,
        files: Mapping[str, ImageFile] | None = None,
        replace: bool = False,
    ) -> None:
        """Add new items, or replace existing ones completely; all or none.

        Args:
            items: items with new IDs, or with existing ones if they are replaced.
            codes: image codes and text codes, matched by ID; every item needs at least one.
            model: fingerprint of the model that computed the codes.
            files: what is known about their image files, by ID.
            replace: whether to replace existing items.

        Raises:
            InputError: an ID exists already, or does not exist although it is to be replaced, or a value is invalid.
            CodesError: the codes have another length or belong to another model.
        """
        batch = Batch(tuple(items), codes, model, files or {})
        self._write(batch, writing.replace if replace else writing.insert)

    def remove(self, ids: Iterable[str]) -> None:
        """Remove items, all or none; InputError if an ID does not exist."""
        self._write(checked_ids(ids), writing.delete)

    def _write(self, batch: T, change: Callable[[sqlite3.Connection, T], int]) -> None:
        with self.transaction() as connection:
            rows = change(connection, batch)
        self._snapshot.changed(rows)

    def transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        """A block of changes to the database that is committed as a whole or not at all."""
        return self._writable().transaction()

    def maintenance(self) -> AbstractContextManager[sqlite3.Connection]:
        """The connection for writing outside a transaction, for statements such as VACUUM."""
        return self._writable().exclusive()

    def _writable(self) -> database.Writer:
        if self._writer is None:
            raise InputError(f"The library {self.folder} is open for reading only; open it with writable=True.")
        return self._writer

    def update_files(self) -> None:
        """Make model folder, manifest and snapshot follow the database after its codes were replaced."""
        with self.transaction() as connection:
            update_files(self.folder, connection)
        self._snapshot.update()

    def write_snapshot(self) -> None:
        """Write a snapshot of the current state."""
        self._writable()
        self._snapshot.write()


def _hits(items: Mapping[int, Item], rows: IntArray, distances: NDArray[np.int32]) -> list[Hit]:
    return [Hit(items[row], distance, row) for row, distance in zip(rows.tolist(), distances.tolist(), strict=True)]
