"""Codes with further fields in a collection of a Milvus server: made, filled, asked. Calls are those of 2.3 to 2.6.

An entity has an int64 ``key``, its packed ``code`` (see codes.py) padded with zeros to whole bytes, which changes no
distance, and the columns the collection was made with. Milvus finds up to 16,384 entities a call; where more are within
a radius, the keys are split until fewer are.

What a collection of a Milvus server is made of: its fields, its indexes, and a description that says whose it is.

What rmsh has to know of a collection, such as the length of its codes, stands in its description, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

from rmsh.core.errors import InputError, require
from rmsh.core.files import checked_format
from rmsh.milvus.connection import Address, Settings, connect, explained
from rmsh.milvus.filters import both, keys_in

if TYPE_CHECKING:
    from rmsh.core.types import PackedArray

FORMAT, VERSION = "rmsh collection", 1


class Column(NamedTuple):
    """A field beside key and code.

    Args:
        name: of the field.
        type: as Milvus calls it.
        options: of that type.
        indexed: whether strings are looked up in an index, and not one by one.
    """

    name: str
    type: str
    options: Mapping[str, Any] = {}
    indexed: bool = False


def make_schema(bits: int, columns: Sequence[Column], *, description: str) -> Any:
    """The schema of a collection, as pymilvus has it."""
    pymilvus: Any = require("pymilvus", "milvus")
    types = pymilvus.DataType
    schema = pymilvus.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False, description=description)
    schema.add_field("key", types.INT64, is_primary=True)
    for column in columns:
        named = {name: types[value] if name == "element_type" else value for name, value in column.options.items()}
        schema.add_field(column.name, types[column.type], **named)
    schema.add_field("code", types.BINARY_VECTOR, dim=-(-bits // 8) * 8)
    return schema


def make_indexes(client: Any, names: Sequence[str], *, lists: int) -> Any:
    """Indexes of some fields: of codes, in so many lists where that is not 0, and of strings."""
    indexes = client.prepare_index_params()
    for name in names:
        if name != "code":
            indexes.add_index(name)  # of the kind the server thinks best: which it has depends on its version
        elif lists:
            indexes.add_index(name, metric_type="HAMMING", index_type="BIN_IVF_FLAT", params={"nlist": lists})
        else:
            indexes.add_index(name, metric_type="HAMMING", index_type="BIN_FLAT")
    return indexes


def about_text(about: Mapping[str, Any]) -> str:
    """What is to be known of a collection, as its description.

    Example:
        >>> about_text({"bits": 64})
        '{"format": "rmsh collection", "version": 1, "bits": 64}'
    """
    return json.dumps({"format": FORMAT, "version": VERSION, **about})


def read_about(description: str, place: str) -> dict[str, Any]:
    """Undo :func:`about_text`.

    Raises:
        FormatError: the collection at that place is of another program, or of a newer rmsh.

    Example:
        >>> read_about(about_text({"bits": 64}), "photos")["bits"]
        64
    """
    try:
        about = json.loads(description)
    except ValueError:
        about = None
    hint = "it is of another program: give one that rmsh made, or another name"
    return checked_format(about, place, name=FORMAT, version=VERSION, hint=hint)


MOST = 16_384  # what Milvus finds in one call

_KEYS = 8_192  # in one expression
_SECONDS = 120.0  # until a server that does not answer is taken for gone
_LONG_CALLS = ("load_collection", "flush")  # these take as long as the collection is large

Consistency: TypeAlias = Literal["Strong", "Bounded"]


class Found(NamedTuple):
    """An entity that was found: its key, its distance, and the fields that were asked for."""

    key: int
    distance: int
    fields: Mapping[str, Any]


class Table:
    """A collection; made by :meth:`create` or :meth:`open`.

    Args:
        client: a ``MilvusClient``.
        address: of the server and the collection.
        settings: of the connection.
        about: what its description says.
        consistency: "Strong" sees all that was written before a question, and waits for it, about 0.2 s; "Bounded"
            sees all that is some seconds old.
        probes: of how many lists of an approximate collection are looked at; an eighth where None.
    """

    def __init__(
        self,
        client: Any,
        address: Address,
        *,
        settings: Settings,
        about: Mapping[str, Any],
        consistency: Consistency = "Strong",
        probes: int | None = None,
    ) -> None:
        self.address = address
        self.about = about
        self.bits = int(about["bits"])
        self._client = client
        self._settings = settings
        self._consistency = consistency
        self._lists = int(about["lists"])
        self._probes = min(self._lists, probes or -(-self._lists // 8))

    @classmethod
    def create(
        cls,
        address: Address,
        bits: int,
        *,
        settings: Settings,
        columns: Sequence[Column] = (),
        partitions: Sequence[str] = (),
        lists: int = 0,
        **about: Any,
    ) -> Self:
        """Make a collection and load it.

        Args:
            address: of the new collection.
            bits: the length of a code.
            settings: of the connection.
            columns: its further fields.
            partitions: its parts.
            lists: 0 for ``BIN_FLAT``, which is exact, or the number of lists of ``BIN_IVF_FLAT``.
            about: what to keep in its description.
        """
        client = connect(address.server, settings)
        about = {"bits": bits, "lists": lists, **about}
        table = cls(client, address, settings=settings, about=about)
        schema = make_schema(bits, columns, description=about_text(about))
        table._ask("create_collection", schema=schema, consistency_level="Bounded")
        table.prepare(columns, partitions)
        return table

    @classmethod
    def open(
        cls, address: Address, *, settings: Settings, consistency: Consistency = "Strong", probes: int | None = None
    ) -> Self:
        """Open a collection, or the one that an alias stands for.

        Raises:
            RmshError: it is not there, or the server cannot be reached.
            FormatError: it is of another program, or of a newer rmsh.
        """
        client = connect(address.server, settings)
        with explained(str(address), settings):
            found = client.describe_collection(address.name)
        about = read_about(found["description"], str(address))
        there = Address(address.server, found["collection_name"])
        return cls(client, there, settings=settings, about=about, consistency=consistency, probes=probes)

    @classmethod
    def find(cls, address: Address, *, settings: Settings) -> Self | None:
        """Open a collection, or the one that an alias stands for, where there is one."""
        client = connect(address.server, settings)
        with explained(str(address), settings):
            there = client.has_collection(address.name)
        return cls.open(address, settings=settings) if there else None

    def _ask(self, call: str, *arguments: Any, **options: Any) -> Any:
        timeout = None if call in _LONG_CALLS else _SECONDS
        with explained(str(self.address), self._settings):
            return getattr(self._client, call)(self.address.name, *arguments, timeout=timeout, **options)

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def prepare(self, columns: Sequence[Column], partitions: Sequence[str]) -> None:
        """Make partitions and indexes that are not there, as after making the collection was cut off, and load it."""
        for name in sorted(set(partitions) - set(self._ask("list_partitions"))):
            self._ask("create_partition", name)
        indexed = {column.name for column in columns if column.indexed} | {"code"}
        missing = sorted(indexed - set(self._ask("list_indexes")))
        if missing:
            self._ask("create_index", make_indexes(self._client, missing, lists=self._lists), sync=False)
        self._ask("load_collection")

    def flush(self) -> None:
        """Let the server write what it holds to its storage and index it."""
        self._ask("flush")

    def drop(self) -> None:
        """Remove the collection and all that is in it."""
        self._ask("drop_collection")

    def set_alias(self, alias: str) -> None:
        """Let an alias stand for this collection, at once and in place of what it stood for."""
        with explained(str(self.address), self._settings):
            there = self._client.has_collection(alias)
        self._ask("alter_alias" if there else "create_alias", alias)

    def neighbours(self) -> list[str]:
        """The names of all collections of the same database."""
        with explained(self.address.server, self._settings):
            return sorted(self._client.list_collections())

    def upsert(self, entities: Sequence[Mapping[str, Any]], *, partition: str = "") -> None:
        """Put entities in, each in place of one that has its key; ``code`` is given as bytes."""
        self._ask("upsert", list(entities), partition_name=partition)

    def delete(self, keys: Sequence[int]) -> None:
        """Remove the entities of some keys; keys that are not there are passed over."""
        for some in _blocks(keys, _KEYS):
            self._ask("delete", filter=keys_in(some))

    def count(self, where: str = "", *, partition: str = "") -> int:
        """How many entities there are that fulfil an expression."""
        return int(self.query(where, ["count(*)"], partition=partition)[0]["count(*)"])

    def query(self, where: str, fields: Sequence[str], *, partition: str = "") -> list[dict[str, Any]]:
        """Fields of the entities that fulfil an expression, in no order; at most 16,384 are to be expected."""
        limit = {} if not where or "count(*)" in fields else {"limit": MOST}
        found = self._ask("query", where, list(fields), **self._scope(partition), **limit)
        return [dict(entity) for entity in found]

    def nearest(
        self, packed: PackedArray, k: int, *, where: str = "", fields: Sequence[str] = (), partition: str = ""
    ) -> list[list[Found]]:
        """The k nearest entities of each query, uint8 (Q, bytes), or as many as there are; nearest first, then by key.

        Which of equally distant ones come last is the server's choice.

        Raises:
            InputError: more are asked for than Milvus finds.
        """
        limit = self._limit(k, where, partition)
        scope = {"filter": where, "output_fields": ["key", *fields], **self._scope(partition)}
        found: list[list[Found]] = []
        for some in _blocks(packed, max(1, MOST // limit)):
            hits = self._search(some, limit, {"nprobe": self._probes} if self._lists else {}, scope)
            if self._probes < self._lists and min(map(len, hits)) < limit:  # those lists hold fewer than k
                hits = self._search(some, limit, {"nprobe": self._lists}, scope)
            found += hits
        return found

    def _limit(self, k: int, where: str, partition: str) -> int:
        if k > MOST and self.count(where, partition=partition) > MOST:
            raise InputError(f"{k:,} nearest were asked for; Milvus finds up to {MOST:,} a query: ask for fewer.")
        return min(k, MOST)

    def within(
        self, packed: PackedArray, radius: int, *, where: str = "", fields: Sequence[str] = (), partition: str = ""
    ) -> list[list[Found]]:
        """All entities at a distance of at most ``radius`` of each query; the rest is as in :meth:`nearest`."""
        scope = {"output_fields": ["key", *fields], **self._scope(partition)}
        queries = (packed[start : start + 1] for start in range(len(packed)))
        return [sorted(self._within(query, radius, scope=scope, where=where), key=_order) for query in queries]

    def _within(self, query: PackedArray, radius: int, *, scope: Mapping[str, Any], where: str) -> list[Found]:
        """All hits of one query; where a call finds as many as it can, the halves of the keys are asked apart.

        The bound of Milvus is strict. Asked for a radius, an index of lists gives up after lists that have nothing
        near, so there the nearest are asked for.
        """
        params = {"nprobe": self._lists} if self._lists else {"radius": radius + 1}
        (found,) = self._search(query, MOST, params, {**scope, "filter": where})
        near = [hit for hit in found if hit.distance <= radius]
        if len(near) < MOST:
            return near
        middle = sorted(hit.key for hit in near)[MOST // 2]
        halves = (both(where, f"key {side} {middle}") for side in ("<", ">="))
        return [hit for half in halves for hit in self._within(query, radius, scope=scope, where=half)]

    def _search(
        self, packed: PackedArray, limit: int, params: Mapping[str, Any], scope: Mapping[str, Any]
    ) -> list[list[Found]]:
        how = {"metric_type": "HAMMING", "params": dict(params)}
        data = [bytes(code) for code in packed]
        answer = self._ask("search", data, limit=limit, anns_field="code", search_params=how, **scope)
        return [sorted((_found(hit) for hit in hits), key=_order) for hits in answer]

    def _scope(self, partition: str) -> dict[str, Any]:
        parts = {"partition_names": [partition]} if partition else {}
        return {"consistency_level": self._consistency, **parts}


def _order(found: Found) -> tuple[int, int]:
    return found.distance, found.key


def _found(hit: Mapping[str, Any]) -> Found:
    fields = dict(hit["entity"])
    return Found(int(fields.pop("key")), round(hit["distance"]), fields)


def _blocks(values: Any, size: int) -> Iterator[Any]:
    return (values[start : start + size] for start in range(0, len(values), size))
