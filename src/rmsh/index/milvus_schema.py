"""What a collection of a Milvus server is made of: its fields, its indexes, and a description that says whose it is.

What rmsh has to know of a collection, such as the length of its codes, stands in its description, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rmsh.errors import require
from rmsh.files import checked_format

__all__ = ["Column", "about_text", "make_indexes", "make_schema", "read_about"]

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
