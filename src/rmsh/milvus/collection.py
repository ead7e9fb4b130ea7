"""A library on a Milvus server, read-only; together with a model folder it is all that searching and serving need.

How a library is stored in a collection, stated only here:

- A push fills the collection ``NAME_FINGERPRINT`` and points the alias ``NAME`` to it when it is complete. Codes of
  another model go to another collection, so a reader never sees codes of two models.
- There is one entity per code. An item with an image code and a text code has two entities, in the partitions ``image``
  and ``text``. The key is twice the row of the item, plus 1 for a text, so keys are ordered as rows are.
- Every entity carries the content of its item:

      id         the id
      labels     the names of the labels, at most 4,096
      text       the text, empty if there is none
      has_text   whether there is a text
      picture    path of the image in the image folder, empty if there is none
      model      fingerprint of the model that computed the code
      both       whether the item also has a code of the other modality
      vector     the vector of the code (see codes.py) in Base64, empty if there is none
      digest     hash of all of these and the code, so that a push writes only changes

- Collections of older versions have no vectors, and stay as they are.
- A string has at most 65,535 bytes.

A filter becomes a Milvus expression in which every value is a string literal. Words of a text are refused, because
Milvus 2.3 cannot look them up.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from rmsh.codes import Codes
from rmsh.core.errors import CodesError, FormatError, InputError
from rmsh.core.types import MODALITIES
from rmsh.data.readers.folder import read_credit
from rmsh.index.base import check_k
from rmsh.index.filters import And, Filter, Id, Label, Not, Or
from rmsh.library.items import CandidateQuery, Candidates, Hit, Item, check_modality, checked_ids, image_path
from rmsh.library.queries import Generation, stack_vectors
from rmsh.milvus.connection import Address
from rmsh.milvus.table import MAX_BYTES, MAX_FOUND, MAX_LABELS, Consistency, Table
from rmsh.model import Model, load

if TYPE_CHECKING:
    from rmsh.core.types import Modality

T = TypeVar("T")

_ITEM_FIELDS = ("id", "labels", "text", "has_text", "picture")
_MAX_IDS = MAX_FOUND // 2  # during a push an item may be stored twice


def key_of(row: int, modality: Modality) -> int:
    """The key of a code."""
    return 2 * row + MODALITIES.index(modality)


def row_of(key: int) -> int:
    """The row of an item from the key of one of its codes."""
    return key >> 1


def entity_of(
    row: int, item: Item, *, modality: Modality, code: bytes, model: str, both: bool, vector: bytes | None = b""
) -> dict[str, Any]:
    """The entity of a code and its item, or InputError if a value is larger than Milvus allows.

    ``vector`` is None in a collection without vectors.
    """
    for value in (item.id, item.text or "", item.picture or "", *item.labels):
        if len(value) > MAX_BYTES // 4 and len(value.encode()) > MAX_BYTES:
            size = f"{len(value.encode()):,} bytes; Milvus allows {MAX_BYTES:,}"
            raise InputError(f"Item {item.id[:40]!r} has a string of {size}: shorten it.")
    if len(item.labels) > MAX_LABELS:
        found = f"{len(item.labels):,} labels; Milvus allows {MAX_LABELS:,}"
        raise InputError(f"Item {item.id!r} has {found}: remove some.")
    content = {
        "id": item.id,
        "labels": list(item.labels),
        "text": item.text or "",
        "has_text": item.text is not None,
        "picture": item.picture or "",
        "model": model,
        "both": both,
    }
    hashed = blake2b(json.dumps(content, sort_keys=True).encode() + code + (vector or b""), digest_size=8)
    digest = int.from_bytes(hashed.digest(), signed=True)
    encoded = {} if vector is None else {"vector": b64encode(vector).decode()}
    return {"key": key_of(row, modality), **content, "digest": digest, "code": code, **encoded}


def item_of(fields: Mapping[str, Any]) -> Item:
    """The item of an entity."""
    text = fields["text"] if fields["has_text"] else None
    return Item(fields["id"], text, fields["picture"] or None, tuple(fields["labels"]))


def vector_of(fields: Mapping[str, Any]) -> bytes | None:
    """The vector of an entity, or None."""
    stored = fields.get("vector")
    return b64decode(stored) if stored else None


def literal(value: str | Sequence[str]) -> str:
    r"""A string or a list of strings as a Milvus literal: quotes, backslashes and control characters are escaped.

    Other characters are not escaped: Milvus does not read the surrogate pairs that JSON uses above 16 bits.

    Example:
        >>> print(literal('a "quoted" \\ and\nmore'))
        "a \"quoted\" \\ and\nmore"
        >>> literal(["a", "b"])
        '["a", "b"]'
    """
    return json.dumps(value, ensure_ascii=False)


def to_expression(condition: Filter) -> str:
    """Compile a filter to an expression, or raise InputError if it contains a condition on texts.

    Example:
        >>> to_expression(Label("dog") & ~Id("7"))
        '(array_contains(labels, "dog")) and (not (id == "7"))'
    """
    if isinstance(condition, Not):
        return f"not ({to_expression(condition.part)})"
    if isinstance(condition, (And, Or)):
        return f" {condition.word} ".join(f"({to_expression(part)})" for part in condition.parts)
    if isinstance(condition, Label):
        return f"array_contains(labels, {literal(condition.value)})"
    if isinstance(condition, Id):
        return f"id == {literal(condition.value)}"
    raise InputError(
        f"Got the filter {condition}; Milvus supports label= and id=, joined by and, or, not. For conditions on texts, "
        'also for -word and "a phrase" in a query, search the library\'s folder.'
    )


class Collection(AbstractContextManager["Collection"]):
    """A library that `rmsh library push` copied to a server; it is read as a library is, and can be used in ``with``.

    Several threads may share it. It keeps reading the codes of the model it was opened with: after a push with another
    model, open it again.
    """

    def __init__(self, table: Table, model: Model, *, pictures: Path | None = None) -> None:
        self._table = table
        self._model = model
        self._pictures = pictures
        self._coded = ["code", "vector"] if table.has_vectors else ["code"]
        self._generation = Generation(int(table.about["generation"]), str(table.about["model"]), table.bits)

    @classmethod
    def open(
        cls, address: str, model: Path | str, *, pictures: Path | None = None, consistency: Consistency = "Bounded"
    ) -> Self:
        """Open a collection; credentials come from the environment (see connection.py).

        Args:
            address: ``http(s)://HOST:PORT/NAME``.
            model: folder of the model that computed its codes.
            pictures: the image folder; without it images have no path.
            consistency: "Bounded" does not wait, and sees a push after some seconds; "Strong" waits for it.

        Raises:
            InputError: the address is invalid, or there is no model.
            RmshError: the server is unreachable or rejects the credentials, or there is no such collection.
            FormatError: the collection was made by another program, by a newer rmsh, or for approximate search.
            CodesError: another model computed its codes.
        """
        parsed, loaded = Address.parse(address), load(model)
        table = Table(parsed, consistency=consistency)
        try:
            if "library" not in table.about:
                raise FormatError(f"{address} is an index without items; give the address of a pushed library.")
            if (made_by := table.about["model"]) != loaded.fingerprint:
                found = f"The model is {loaded.fingerprint}, {address} has codes of {made_by}"
                raise CodesError(f"{found}; give that model.")
        except BaseException:
            table.close()
            raise
        return cls(table, loaded, pictures=pictures)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._table.close()

    def generation(self) -> Generation:
        """The fingerprint of the model and the number of bits of its codes."""
        return self._generation

    def model(self) -> Model:
        """The model that computes its codes."""
        return self._model

    def count(self) -> int:
        """Number of items."""
        return self._table.count(partition="image") + self._table.count("both == false", partition="text")

    def get(self, name: str) -> Item | None:
        """The item with this id, or None."""
        found = self._table.query(f"id in {literal(checked_ids([name]))}", ["key", *_ITEM_FIELDS])
        newest = max(found, key=lambda entity: int(entity["key"]), default=None)
        return None if newest is None else item_of(newest)

    def codes(self, ids: Iterable[str], modality: Modality) -> Codes:
        """The image or text codes of at most 8,192 items, in the order of the ids; items without one are left out."""
        check_modality(modality)
        names = checked_ids(ids)
        if len(names) > _MAX_IDS:
            raise InputError(f"Got {len(names):,} ids; give at most {_MAX_IDS:,} ids at once.")
        expression = f"id in {literal(names)}"
        found = self._table.query(expression, ["key", "id", *self._coded], partition=modality) if names else []
        newest = {str(entity["id"]): entity for entity in sorted(found, key=lambda entity: int(entity["key"]))}
        known = [newest[name] for name in names if name in newest]
        packed = self._generation.to_array([entity["code"][0] for entity in known])
        vectors = {row: vector for row, vector in enumerate(map(vector_of, known)) if vector is not None}
        complete = stack_vectors([*vectors], vectors) if vectors and len(vectors) == len(known) else None
        return Codes(packed, self._generation.bits, np.array([entity["id"] for entity in known]), complete)

    @property
    def has_images(self) -> bool:
        """Whether a folder of images was given."""
        return self._pictures is not None

    def picture_path(self, item: Item) -> Path | None:
        """The path of an item's image, or None if it has none here; InputError if a link leads out of the folder."""
        return None if self._pictures is None else image_path(self._pictures, item)

    def credit(self) -> str:
        """The content of CREDIT.txt in the image folder, or ""."""
        return "" if self._pictures is None else read_credit(self._pictures)

    def warning(self) -> str:
        """An empty string: the report of a build stays in its library."""
        return ""

    def search(self, codes: Codes, k: int, *, to: Modality, model: str, where: Filter | None = None) -> list[list[Hit]]:
        """Like :meth:`Library.search`, for k up to 16,384; the server breaks ties at the largest distance.

        Raises:
            CodesError: the codes have another length or another model.
            InputError: the filter has a condition on texts, which are not supported, or k is too large.
        """
        condition = self._check_query(codes, to, model=model, where=where)
        found = self._table.nearest(codes.packed, check_k(k), where=condition, fields=_ITEM_FIELDS, partition=to)
        return [[Hit(item_of(one.fields), one.distance, row_of(one.key)) for one in hits] for hits in found]

    def candidates(self, query: CandidateQuery, use: Callable[[Candidates], T]) -> T:
        """Like :meth:`Library.candidates`, but words are not looked up; InputError if the filter has them."""
        condition = self._check_query(query.codes, query.to, model=query.model, where=query.where)
        rows = set(self._labelled_rows(query.labels, query.count))
        for modality in MODALITIES:
            # Twice as many: of equally distant ones, the server returns any, and a library the first.
            most = min(2 * query.count, MAX_FOUND)
            (hits,) = self._table.nearest(query.codes.packed, most, where=condition, partition=modality)
            rows |= {row_of(hit.key) for hit in hits[: query.count]}
        keys = [key_of(row, modality) for row in sorted(rows) for modality in MODALITIES]
        found = self._table.by_keys(keys, [*_ITEM_FIELDS, *self._coded], where=condition)
        kept = np.array([row for row in sorted(rows) if key_of(row, query.to) in found], dtype=np.int64)
        stored, has, vectors = {}, {}, {}
        for modality in MODALITIES:
            entities = {row: found.get(key_of(row, modality), {}) for row in kept.tolist()}
            has[modality] = np.array([bool(entity) for entity in entities.values()], dtype=np.bool_)
            none = [bytes(query.codes.packed.shape[1])]
            stored[modality] = self._generation.to_array([e.get("code", none)[0] for e in entities.values()])
            known = {row: vector for row, e in entities.items() if (vector := vector_of(e)) is not None}
            vectors[modality] = stack_vectors(kept.tolist(), known)

        def read(some: Iterable[int]) -> dict[int, Item]:
            return {row: item_of(found[key_of(row, query.to)]) for row in some}

        return use(Candidates(kept, stored, has, vectors, read, self._totals[query.to]))

    @cached_property
    def _totals(self) -> dict[Modality, int]:
        """The number of codes of each modality, counted once: the cut-off for weak matches hardly depends on it."""
        return {modality: self._table.count(partition=modality) for modality in MODALITIES}

    def _labelled_rows(self, labels: Sequence[str], count: int) -> list[int]:
        """Rows with any of these labels, those with most of them first, at most ``count``.

        They are the first of all, unless several labels exist and more than 4 * count items have one of them.
        """
        if not labels:
            return []
        limit = min(4 * count * len(MODALITIES), MAX_FOUND)
        found = self._table.query(f"array_contains_any(labels, {literal(labels)})", ["key", "labels"], limit=limit)
        matches = {row_of(int(entity["key"])): len({*labels} & {*entity["labels"]}) for entity in found}
        return sorted(matches, key=lambda row: (-matches[row], row))[:count]

    def _check_query(self, codes: Codes, to: Modality, *, model: str, where: Filter | None) -> str:
        """Check a query, and return its filter as an expression."""
        check_modality(to)
        self._generation.check(model, codes)
        return "" if where is None else to_expression(where)
