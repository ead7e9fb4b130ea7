"""How a library lies in a collection of a Milvus server; stated here and nowhere else.

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
from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from rmsh.errors import InputError
from rmsh.index.milvus_connection import Address
from rmsh.index.milvus_schema import Column
from rmsh.library.items import Item
from rmsh.types import MODALITIES

if TYPE_CHECKING:
    from rmsh.types import Modality

__all__ = ["COLUMNS", "SHOWN", "entity_of", "filled", "is_filled", "item_of", "key_of", "row_of"]

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
