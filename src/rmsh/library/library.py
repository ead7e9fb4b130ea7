"""A library: open it, add, update, remove, search. A change is durable when its call returns, and is seen at once.

Several processes may have a library open. Any number of them read; those that write take turns, batch by batch, and
wait for each other up to a timeout. Several threads may use one ``Library``; after a fork, open it anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from rmsh.core.errors import InputError
from rmsh.index.scan import Scan
from rmsh.library import writing
from rmsh.library.database import Writer
from rmsh.library.folder import create_folder, read_manifest, settle, write_manifest
from rmsh.library.items import Batch, Item, checked_ids
from rmsh.library.queries import generation_of
from rmsh.library.reader import Reader
from rmsh.library.restoring import finish_restore
from rmsh.library.snapshot_writer import SnapshotKeeper

if TYPE_CHECKING:
    from rmsh.codes import Codes
    from rmsh.core.types import Modality
    from rmsh.index.store import StoredIndex
    from rmsh.model import Model

__all__ = ["Library"]

T = TypeVar("T")


class Library(Reader):
    """Items with their codes in a folder; made by :meth:`create` or :meth:`open`, and closed by ``with``.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from rmsh.hash_function import HashFunction, Layer
        >>> from rmsh.model import Model
        >>> as_they_are = Layer(np.eye(3, dtype=np.float32), np.zeros(3, dtype=np.float32), "none")
        >>> model = Model({"text": HashFunction((as_they_are,))}, "example", {})
        >>> codes = model.encode(np.array([[1, 1, 1], [1, -1, -1]], np.float32), "text", ids=["a", "b"])
        >>> items = [Item("a", text="a cat"), Item("b", text="a dog")]
        >>> with tempfile.TemporaryDirectory() as folder, Library.create(folder, model) as library:
        ...     library.add(items, {"text": codes}, model=model.fingerprint)
        ...     found = library.search(codes, 1, to="text", model=model.fingerprint)
        >>> [(hit.item.text, hit.distance) for (hit,) in found]
        [('a cat', 0), ('a dog', 0)]
    """

    def __init__(self, folder: Path, *, engine: type[StoredIndex]) -> None:
        super().__init__(folder, engine=engine)
        self._writer: Writer | None = None
        self._keeper: SnapshotKeeper | None = None

    @classmethod
    def create(cls, folder: Path | str, model: Model, *, source: Path | str | None = None) -> Self:
        """Make an empty library for the codes of a model, and open it for writing.

        Args:
            folder: where; a new folder, or an empty one.
            model: what makes its codes; a copy is kept in the library.
            source: the folder that the pictures of items lie in; the library's own where None.

        Raises:
            InputError: there is something in the folder.
        """
        create_folder(Path(folder), model, source=None if source is None else Path(source))
        return cls.open(folder, writable=True)

    @classmethod
    def open(
        cls, folder: Path | str, *, writable: bool = False, timeout: float = 30.0, engine: type[StoredIndex] = Scan
    ) -> Self:
        """Open a library.

        Args:
            folder: of the library.
            writable: whether it is to be changed.
            timeout: how many seconds to wait for another writer.
            engine: the index class that searches its codes.

        Raises:
            FormatError: it is no library, is damaged, or is of a newer rmsh.
        """
        if writable:
            finish_restore(Path(folder))
        library = cls(Path(folder), engine=engine)
        try:
            library._check(read_manifest(library.folder))
            if writable:
                library._begin_writing(timeout)
        except BaseException:
            library.close()
            raise
        return library

    def _begin_writing(self, timeout: float) -> None:
        self._writer = Writer(self.folder, timeout=timeout)
        if read_manifest(self.folder).get("model") != self.generation().fingerprint:
            self.settle()  # a recoding was cut off after its codes had been put in
        self._keeper = SnapshotKeeper(self.folder, self._readers)

    def close(self) -> None:
        """Close it; other processes are not disturbed."""
        super().close()
        if self._writer is not None:
            self._writer.close()

    def add(self, items: Iterable[Item], codes: Mapping[Modality, Codes], *, model: str) -> None:
        """Add items, all or none.

        Args:
            items: with ids that are new.
            codes: codes of pictures and of texts, matched by id; each item has at least one.
            model: the fingerprint of the model that made the codes.

        Raises:
            InputError: an id is there already, or something does not fit.
            CodesError: the codes are of another length or another model.
        """
        self._write(Batch(tuple(items), codes, model), writing.insert)

    def update(self, items: Iterable[Item], codes: Mapping[Modality, Codes], *, model: str) -> None:
        """Put new content under ids that are there, all or none; what an item was before is gone.

        Raises:
            InputError: an id is not there, or something does not fit.
            CodesError: the codes are of another length or another model.
        """
        self._write(Batch(tuple(items), codes, model), writing.replace)

    def remove(self, ids: Iterable[str]) -> None:
        """Remove items, all or none.

        Raises:
            InputError: an id is not there.
        """
        self._write(checked_ids(ids), writing.delete)

    def _write(self, batch: T, change: Callable[[sqlite3.Connection, T], int]) -> None:
        with self.transaction() as connection:
            rows = change(connection, batch)
        if self._keeper is not None:
            self._keeper.changed(rows)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A block of changes to the database that is kept whole or not at all.

        Raises:
            InputError: the library is open for reading only.
            RmshError: another writer does not finish, or the disk is full; nothing was changed.
        """
        with self._writing().transaction() as connection:
            yield connection

    @contextmanager
    def maintenance(self) -> Iterator[sqlite3.Connection]:
        """The connection that writes, outside of a transaction: for statements that make their own."""
        with self._writing().alone() as connection:
            yield connection

    def _writing(self) -> Writer:
        if self._writer is None:
            raise self._read_only()
        return self._writer

    def _read_only(self) -> InputError:
        return InputError(f"The library {self.folder} is open for reading only; open it with writable=True.")

    def settle(self) -> None:
        """Let model folder, manifest and snapshot follow the database, after other codes were put in."""
        with self.transaction() as connection:
            settle(self.folder, generation_of(connection))
            write_manifest(self.folder, connection)
        if self._keeper is not None:
            self._keeper.renew()

    def write_snapshot(self) -> None:
        """Write the snapshot of now.

        Raises:
            InputError: the library is open for reading only.
            RmshError: it cannot be written; nothing is lost.
        """
        if self._keeper is None:
            raise self._read_only()
        self._keeper.write()
