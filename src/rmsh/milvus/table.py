"""A Milvus collection of codes with their items: its schema and every call to the server, for versions 2.3 to 2.6.

An entity has an int64 ``key``, its packed ``code`` (see codes.py), padded with zeros to whole bytes, which changes no
distance, and the fields in ``COLUMNS``. Image and text codes are in two partitions. The description of the collection
is a JSON object with its format, the number of bits and what else rmsh must know about it.
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

from rmsh.core.errors import FormatError, InputError, require
from rmsh.core.files import checked_format
from rmsh.core.types import MODALITIES
from rmsh.milvus.connection import Address, Settings, UnavailableError, connect, translate_errors

if TYPE_CHECKING:
    from rmsh.core.types import Modality, PackedArray

FORMAT, VERSION = "rmsh collection", 1
MAX_FOUND = 16_384  # entities that Milvus returns per call
MAX_BYTES, MAX_LABELS = 65_535, 4_096  # of a string and of an item

_KEYS = 8_192  # per expression
_SECONDS = 120.0  # timeout of a call
_PAUSE, _LONGEST_PAUSE = 0.5, 15.0  # seconds before a call is repeated
_LONG_CALLS = ("load_collection", "flush")  # no timeout: their duration depends on the size of the collection

_STRING = {"max_length": MAX_BYTES}
COLUMNS: dict[str, tuple[str, Mapping[str, Any]]] = {  # name: type in Milvus and its options
    "id": ("VARCHAR", _STRING),
    "labels": ("ARRAY", {"element_type": "VARCHAR", "max_capacity": MAX_LABELS, **_STRING}),
    "text": ("VARCHAR", _STRING),
    "has_text": ("BOOL", {}),
    "picture": ("VARCHAR", _STRING),
    "model": ("VARCHAR", {"max_length": 64}),
    "both": ("BOOL", {}),
    "digest": ("INT64", {}),
    "vector": ("VARCHAR", _STRING),  # a second vector field needs Milvus 2.4
}
_INDEXED = ("code", "id")
_EXACT = {"metric_type": "HAMMING", "index_type": "BIN_FLAT"}

Consistency: TypeAlias = Literal["Strong", "Bounded"]

_log = logging.getLogger("rmsh.milvus")


def read_description(description: str, place: str) -> dict[str, Any]:
    """What rmsh must know about a collection; FormatError if another program or another rmsh made it."""
    try:
        about = json.loads(description)
    except ValueError:
        about = None
    hint = "another program made it: give a collection made by rmsh, or a new name"
    checked = checked_format(about, place, name=FORMAT, version=VERSION, hint=hint)
    if lists := checked.get("lists"):
        raise FormatError(f"{place} has {lists} lists for approximate search; drop it and run `rmsh library push`.")
    return checked


class Found(NamedTuple):
    """A hit: its distance, the key of the entity, and the requested fields."""

    distance: int
    key: int
    fields: Mapping[str, Any]


class Table:
    """An open collection, given by its name or an alias; credentials come from the environment (see connection.py).

    With consistency "Strong", a read waits, about 0.2 s, until all earlier writes are visible; with "Bounded" it sees
    them after some seconds.
    """

    def __init__(
        self, address: Address, *, about: Mapping[str, Any] | None = None, consistency: Consistency = "Strong"
    ) -> None:
        self._settings = Settings.read()
        self._client = connect(address.server, self._settings)
        self._consistency = consistency
        self.address = address
        self.patience = 0.0  # seconds during which a call that finds the server unavailable is repeated
        self._silent_until = 0.0  # an outage is reported once
        columns = {*COLUMNS}
        if about is None:  # the collection exists, perhaps under an alias
            found = self._call("describe_collection")
            columns = {field["name"] for field in found["fields"]}
            self.address = Address(address.server, found["collection_name"])
            about = read_description(found["description"], str(self.address))
        self.about = about
        self.has_vectors = "vector" in columns  # not in collections of older versions
        self.bits = int(about["bits"])

    @classmethod
    def create(cls, address: Address, bits: int, **about: Any) -> Self:
        """Create a collection, to be prepared; RmshError if there is one with other facts."""
        table = cls(address, about={"bits": bits, "lists": 0, **about})  # older versions read the number of lists
        description = json.dumps({"format": FORMAT, "version": VERSION, **table.about})
        schema = _make_schema(bits, description=description)
        table._call("create_collection", schema=schema, consistency_level="Bounded")
        return table

    @classmethod
    def find(cls, address: Address) -> Self | None:
        """Open a collection, or return None if there is none."""
        settings = Settings.read()
        with translate_errors(str(address), settings):
            exists = connect(address.server, settings).has_collection(address.name)
        return cls(address) if exists else None

    def _call(self, method: str, *arguments: Any, name: str = "", **options: Any) -> Any:
        """Call a method of the client on this collection, or on another name; repeated while there is patience."""
        timeout, begin, pause = None if method in _LONG_CALLS else _SECONDS, time.monotonic(), _PAUSE
        while True:
            try:
                with translate_errors(str(self.address), self._settings):
                    call = getattr(self._client, method)
                    return call(name or self.address.name, *arguments, timeout=timeout, **options)
            except UnavailableError as error:
                if time.monotonic() - begin >= self.patience:
                    raise
                if begin >= self._silent_until:
                    self._silent_until = begin + self.patience
                    _log.warning("%s Trying again for %.0f minutes.", error, self.patience / 60)
                time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  # so that not all calls come at once
                pause = min(2 * pause, _LONGEST_PAUSE)

    def close(self) -> None:
        self._client.close()

    def prepare(self) -> None:
        """Create missing partitions and indexes, as after :meth:`create`, and load the collection."""
        for name in sorted(set(MODALITIES) - set(self._call("list_partitions"))):
            self._call("create_partition", name)
        missing = sorted(set(_INDEXED) - set(self._call("list_indexes")))
        if missing:
            indexes = self._client.prepare_index_params()
            for field in missing:  # an index of ids is the server's default: which kinds it has depends on its version
                indexes.add_index(field, **(_EXACT if field == "code" else {}))
            self._call("create_index", indexes, sync=False)
        self._call("load_collection")

    def flush(self) -> None:
        """Make the server write its data to storage and index it."""
        self._call("flush")

    def drop(self) -> None:
        self._call("drop_collection")

    def set_alias(self, alias: str) -> None:
        """Point an alias to this collection, in one step."""
        exists = self._call("has_collection", name=alias)
        self._call("alter_alias" if exists else "create_alias", alias)

    def list_collections(self) -> list[str]:
        with translate_errors(self.address.server, self._settings):
            return sorted(self._client.list_collections())

    def upsert(self, entities: Sequence[Mapping[str, Any]], *, partition: Modality) -> None:
        """Insert entities, replacing those with the same keys; ``code`` is given as bytes."""
        self._call("upsert", list(entities), partition_name=partition)

    def delete(self, keys: Sequence[int]) -> None:
        """Delete the entities with these keys; unknown keys are ignored."""
        for some in _blocks(keys, _KEYS):
            self._call("delete", filter=_key_in(some))

    def count(self, where: str = "", *, partition: str = "") -> int:
        return int(self.query(where, ["count(*)"], partition=partition)[0]["count(*)"])

    def query(
        self, where: str, fields: Sequence[str], *, partition: str = "", limit: int = MAX_FOUND
    ) -> list[dict[str, Any]]:
        """Fields of the entities that satisfy an expression; of more than the limit, those with the lowest keys."""
        at_most: dict[str, Any] = {} if not where or "count(*)" in fields else {"limit": limit}
        found = self._call("query", where, list(fields), **self._scope(partition), **at_most)
        return [dict(entity) for entity in found]

    def by_keys(self, keys: Sequence[int], fields: Sequence[str], *, where: str = "") -> dict[int, dict[str, Any]]:
        """Fields of the entities with some keys that satisfy an expression, by key."""
        expressions = (both(_key_in(some), where) for some in _blocks(keys, _KEYS))
        found = (self.query(expression, ["key", *fields]) for expression in expressions)
        return {int(entity["key"]): entity for block in found for entity in block}

    def nearest(
        self, packed: PackedArray, k: int, *, partition: str, where: str = "", fields: Sequence[str] = ()
    ) -> list[list[Found]]:
        """The k nearest entities of each query, uint8 (Q, bytes), or all if there are fewer; by distance, then key.

        The server chooses which of the entities at the largest distance are included.
        """
        limit = min(k, MAX_FOUND)
        if k > MAX_FOUND and self.count(where, partition=partition) > MAX_FOUND:
            raise InputError(f"Got k = {k:,}; Milvus returns at most {MAX_FOUND:,} neighbours: give a smaller k.")
        scope = {"filter": where, "output_fields": ["key", *fields], **self._scope(partition)}
        scope |= {"anns_field": "code", "search_params": {"metric_type": "HAMMING"}}
        found: list[list[Found]] = []
        for some in _blocks(packed, max(1, MAX_FOUND // limit)):
            results = self._call("search", [bytes(code) for code in some], limit=limit, **scope)
            found += [sorted(map(_found, hits), key=lambda hit: hit[:2]) for hits in results]
        return found

    def _scope(self, partition: str) -> dict[str, Any]:
        partitions = {"partition_names": [partition]} if partition else {}
        return {"consistency_level": self._consistency, **partitions}


def _make_schema(bits: int, *, description: str) -> Any:
    pymilvus: Any = require("pymilvus", "milvus")
    types = pymilvus.DataType
    schema = pymilvus.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False, description=description)
    schema.add_field("key", types.INT64, is_primary=True)
    for name, (kind, options) in COLUMNS.items():
        values = {option: types[value] if option == "element_type" else value for option, value in options.items()}
        schema.add_field(name, types[kind], **values)
    schema.add_field("code", types.BINARY_VECTOR, dim=-(-bits // 8) * 8)
    return schema


def both(*expressions: str) -> str:
    """Expressions joined by and; empty ones are left out.

    Example:
        >>> both("a == 1", "", "b == 2")
        '(a == 1) and (b == 2)'
    """
    return " and ".join(f"({expression})" for expression in expressions if expression)


def _key_in(keys: Sequence[int]) -> str:
    return f"key in [{','.join(map(str, keys))}]"


def _found(hit: Mapping[str, Any]) -> Found:
    return Found(round(hit["distance"]), int(hit["entity"]["key"]), hit["entity"])


def _blocks(values: Any, size: int) -> Iterator[Any]:
    return (values[start : start + size] for start in range(0, len(values), size))
