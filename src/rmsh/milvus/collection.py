"""A library on a Milvus server, for reading: with a model folder it is all that searching and serving need.

How a library lies in a collection of a Milvus server; stated here and nowhere else.

- A push fills the collection ``NAME_FINGERPRINT``, and lets the alias ``NAME`` stand for it once everything is there.
  Codes of another model get a collection of their own, so whoever searches never meets codes of two models.
- There is one entity a code. An item with a code of its picture and one of its text has two, in the partitions
  ``image`` and ``text``; the key is twice the row of the item, plus 1 for a text, so that keys are ordered as rows are.
- Every entity has what is shown of its item, so that a model folder and a collection suffice to search and to serve:

      id         the id                                    labels   the names of the labels
      text       the text, empty where there is none       has_text whether there is one
      picture    the key of picture and thumbnail: a path below the folder of the pictures; empty where there is none
      model      the fingerprint of the model that made the code
      both       whether the item has a code of the other kind too
      digest     of all the others and of the code, to see what a push has to write

- A string has up to 65,535 bytes, an item up to 4,096 labels.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from rmsh.codes import Codes
from rmsh.core.errors import CodesError, FormatError, InputError
from rmsh.core.types import MODALITIES
from rmsh.data.readers.folder import read_credit
from rmsh.index.base import check_k, check_radius
from rmsh.library.items import Hit, Item, check_modality, checked_ids, picture_inside
from rmsh.library.queries import Generation
from rmsh.milvus.connection import Address, Settings
from rmsh.milvus.filters import literal, to_expression
from rmsh.milvus.table import MOST, Column, Consistency, Found, Table
from rmsh.model import Model, load

if TYPE_CHECKING:
    from rmsh.core.types import Modality
    from rmsh.index.filters import Filter

_BYTES, _LABELS = 65_535, 4_096
_STRING = {"max_length": _BYTES}

COLUMNS = (
    Column("id", "VARCHAR", _STRING, indexed=True),
    Column("labels", "ARRAY", {"element_type": "VARCHAR", "max_capacity": _LABELS, **_STRING}),
    Column("text", "VARCHAR", _STRING),
    Column("has_text", "BOOL"),
    Column("picture", "VARCHAR", _STRING),
    Column("model", "VARCHAR", {"max_length": 64}),
    Column("both", "BOOL"),
    Column("digest", "INT64"),
)
SHOWN = ("id", "labels", "text", "has_text", "picture")  # what makes an item


def filled(place: Address, fingerprint: str) -> Address:
    """The collection that holds the codes of a model, where the alias is at ``place``.

    Example:
        >>> str(filled(Address.parse("http://localhost:19530/photos"), "0123456789abcdef"))
        'http://localhost:19530/photos_0123456789abcdef'
    """
    return Address(place.server, f"{place.name}_{fingerprint}")


def is_filled(name: str, place: Address) -> bool:
    """Whether a collection has the name of one that was filled for an alias, by whatever model.

    Example:
        >>> is_filled("photos_0123456789abcdef", Address.parse("http://localhost:19530/photos"))
        True
    """
    start, _, fingerprint = name.rpartition("_")
    return start == place.name and len(fingerprint) == 16 and set(fingerprint) <= set("0123456789abcdef")


def key_of(row: int, modality: Modality) -> int:
    """The key of a code.

    Example:
        >>> key_of(7, "image"), key_of(7, "text"), row_of(15)
        (14, 15, 7)
    """
    return 2 * row + MODALITIES.index(modality)


def row_of(key: int) -> int:
    """The row of the item of a key."""
    return key >> 1


def entity_of(row: int, item: Item, *, modality: Modality, code: bytes, model: str, both: bool) -> dict[str, Any]:
    """A code with its item, as it lies in the collection.

    Raises:
        InputError: a value is larger than Milvus takes.
    """
    _check_size(item)
    shown = {
        "id": item.id,
        "labels": list(item.labels),
        "text": item.text or "",
        "has_text": item.text is not None,
        "picture": item.picture or "",
        "model": model,
        "both": both,
    }
    content = json.dumps(shown, sort_keys=True).encode() + code
    digest = int.from_bytes(blake2b(content, digest_size=8).digest(), signed=True)
    return {"key": key_of(row, modality), **shown, "digest": digest, "code": code}


def _check_size(item: Item) -> None:
    for value in (item.id, item.text or "", item.picture or "", *item.labels):
        if len(value) > _BYTES // 4 and len(value.encode()) > _BYTES:
            raise InputError(
                f"The item {item.id[:40]!r} has a string of {len(value.encode()):,} bytes; Milvus takes up to "
                f"{_BYTES:,}: shorten it."
            )
    if len(item.labels) > _LABELS:
        raise InputError(
            f"The item {item.id!r} has {len(item.labels):,} labels; Milvus takes up to {_LABELS:,}: give it fewer."
        )


def item_of(fields: Mapping[str, Any]) -> Item:
    """The item of an entity.

    Example:
        >>> item = Item("7", text="", labels=("dog",))
        >>> item_of(entity_of(1, item, modality="text", code=b"a", model="m", both=False)) == item
        True
    """
    text = fields["text"] if fields["has_text"] else None
    return Item(fields["id"], text, fields["picture"] or None, tuple(fields["labels"]))


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
