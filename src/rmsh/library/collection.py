"""A library on a Milvus server, for reading: with a model folder it is all that searching and serving need."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from rmsh.codes import Codes
from rmsh.data.beside import read_credit
from rmsh.errors import CodesError, FormatError, InputError
from rmsh.index.base import check_k, check_radius
from rmsh.index.milvus_connection import Address, Settings
from rmsh.index.milvus_filters import literal, to_expression
from rmsh.index.milvus_table import MOST, Consistency, Found, Table
from rmsh.library.collection_layout import SHOWN, item_of, row_of
from rmsh.library.items import Hit, Item, check_modality, checked_ids, picture_inside
from rmsh.library.reading import Generation
from rmsh.model import Model, load

if TYPE_CHECKING:
    from rmsh.index.filters import Filter
    from rmsh.types import Modality

__all__ = ["Collection"]

_MOST_IDS = MOST // 2  # while a push goes on, an item may be there twice


class Collection:
    """What `rmsh library push` brought to a server; it reads as a library does, and is closed by ``with``.

    Several threads may use one. It stays with the codes it found when it was opened: where a push brings codes of
    another model, open it again.

    Args:
        table: the codes and items.
        model: that made the codes.
        pictures: the folder of the pictures, where there is one on this machine.
    """

    def __init__(self, table: Table, model: Model, *, pictures: Path | None = None) -> None:
        self._table = table
        self._model = model
        self._pictures = pictures
        self._generation = Generation(int(table.about["generation"]), str(table.about["model"]), table.bits)

    @classmethod
    def open(
        cls,
        address: str,
        model: Path | str,
        *,
        pictures: Path | None = None,
        consistency: Consistency = "Bounded",
        probes: int | None = None,
    ) -> Self:
        """Open a collection; who asks, and by what right, stands in the environment (see milvus_connection.py).

        Args:
            address: ``http(s)://HOST:PORT/NAME``.
            model: the folder of the model that made its codes.
            pictures: the folder of its pictures; without it no picture has a path.
            consistency: "Bounded" answers at once and sees what was pushed after some seconds; "Strong" waits for it.
            probes: of a collection of lists, how many of them a search looks at; an eighth where None.

        Raises:
            InputError: it is no address, or there is no model.
            RmshError: the server cannot be reached or refuses us, or there is no such collection.
            FormatError: the collection is of another program, or of a newer rmsh.
            CodesError: its codes are of another model.
        """
        place, made_by = Address.parse(address), load(model)
        table = Table.open(place, settings=Settings.read(), consistency=consistency, probes=probes)
        try:
            _check(table, made_by, f"{place}")
        except BaseException:
            table.close()
            raise
        return cls(table, made_by, pictures=pictures)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._table.close()

    def generation(self) -> Generation:
        """Whose codes it holds, and how long they are."""
        return self._generation

    def model(self) -> Model:
        """The model that makes its codes."""
        return self._model

    def count(self) -> int:
        """How many items there are."""
        return self._table.count(partition="image") + self._table.count("both == false", partition="text")

    def get(self, name: str) -> Item | None:
        """The item of an id, or None."""
        found = self._table.query(_has_id([name]), ["key", *SHOWN])
        newest = max(found, key=lambda entity: int(entity["key"]), default=None)
        return None if newest is None else item_of(newest)

    def codes(self, ids: Iterable[str], modality: Modality) -> Codes:
        """The codes of some items' pictures or texts, in the order of the ids; items that have none are left out.

        Raises:
            InputError: more are asked for than Milvus finds.
        """
        check_modality(modality)
        names = checked_ids(ids)
        if len(names) > _MOST_IDS:
            raise InputError(f"Codes of {len(names):,} items were asked for; give up to {_MOST_IDS:,} ids at once.")
        found = self._table.query(_has_id(names), ["key", "id", "code"], partition=modality) if names else []
        by_age = sorted(found, key=lambda entity: int(entity["key"]))
        newest = {str(entity["id"]): entity["code"][0] for entity in by_age}
        there = [name for name in names if name in newest]
        packed = np.frombuffer(b"".join(newest[name] for name in there), dtype=np.uint8)
        return Codes(packed.reshape(len(there), -(-self._table.bits // 8)), self._table.bits, np.array(there))

    def picture_path(self, item: Item) -> Path | None:
        """Where the picture of an item is, or None where it has none, or none on this machine.

        Raises:
            InputError: a link leads out of the folder of the pictures.
        """
        return None if self._pictures is None else picture_inside(self._pictures, item)

    def credit(self) -> str:
        """Whom to thank for the pictures, from CREDIT.txt in their folder; "" where there is none on this machine."""
        return "" if self._pictures is None else read_credit(self._pictures)

    def search(self, codes: Codes, k: int, *, to: Modality, model: str, where: Filter | None = None) -> list[list[Hit]]:
        """The k nearest items of each query, nearest first; which of equally distant ones come last is open.

        Args:
            codes: the queries.
            k: how many to find, up to 16,384.
            to: whether the codes of pictures or of texts are compared.
            model: the fingerprint of the model that made the codes.
            where: which items may be found; words of texts are not looked up here.

        Raises:
            CodesError: the codes are of another length or another model.
            InputError: the filter asks for words of texts, or k is too large.
        """
        condition = self._checked(codes, to, model=model, where=where)
        return _hits(self._table.nearest(codes.packed, check_k(k), where=condition, fields=SHOWN, partition=to))

    def within(
        self, codes: Codes, radius: int, *, to: Modality, model: str, where: Filter | None = None
    ) -> list[list[Hit]]:
        """All items at a distance of at most ``radius`` of each query; the rest is as in :meth:`search`."""
        condition = self._checked(codes, to, model=model, where=where)
        reach = min(check_radius(radius), self._table.bits)
        return _hits(self._table.within(codes.packed, reach, where=condition, fields=SHOWN, partition=to))

    def _checked(self, codes: Codes, to: Modality, *, model: str, where: Filter | None) -> str:
        """The expression of a filter, of a question that may be asked."""
        check_modality(to)
        self._generation.check(model, codes)
        return "" if where is None else to_expression(where)


def _check(table: Table, model: Model, place: str) -> None:
    if "library" not in table.about:
        raise FormatError(f"{place} is an index without items; give the name that `rmsh library push` was given.")
    if table.about["model"] != model.fingerprint:
        raise CodesError(
            f"The model has the fingerprint {model.fingerprint}, the codes of {place} are of {table.about['model']}; "
            "give the model that made them."
        )


def _has_id(ids: Iterable[str]) -> str:
    return f"id in [{', '.join(map(literal, checked_ids(ids)))}]"


def _hits(found: list[list[Found]]) -> list[list[Hit]]:
    return [[Hit(item_of(one.fields), one.distance, row_of(one.key)) for one in hits] for hits in found]
