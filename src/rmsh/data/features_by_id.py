"""Features that were made elsewhere: one row an item, found by its id, or in the order of the owner's list."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import numpy as np

from rmsh.data.assemble import assemble
from rmsh.data.choose import locate
from rmsh.data.columns import listed
from rmsh.data.keys import meaning
from rmsh.data.matrices import Place, places_in
from rmsh.errors import DataError

if TYPE_CHECKING:
    from rmsh.data.columns import Column
    from rmsh.data.keys import Role
    from rmsh.types import IdArray, IntArray

__all__ = ["read_features", "rows_of"]


def read_features(
    text: str, role: Role, ids: IdArray, *, wanted: IntArray, canonical_id: Callable[[str], str]
) -> tuple[Column, str]:
    """Read the features of some items from "FILE" or "FILE:KEY".

    Args:
        text: the file; where it has ids beside the matrix, rows are found by them, otherwise it must have one row for
            each of ``ids``, in their order.
        role: "images" or "texts".
        ids: (n,) of all items, in the owner's order.
        wanted: (m,) the rows of the items to read.
        canonical_id: turns the file's spelling of an id into ours.

    Returns:
        Features (m, d), and a sentence about where they are from.

    Raises:
        DataError: items are not in the file, or it is not clear which row is whose.
    """
    place = locate(text, role)
    beside = [other for other in places_in(place.path) if meaning(other.key) == ("ids", "all")]
    pairs, _ = assemble({role: (place,)}, source=place.where)
    column = cast("Column", pairs.images if role == "images" else pairs.texts)
    if beside:
        rows, how = rows_of(_read_ids(beside[0], canonical_id), ids[wanted], place.where), "by id"
    elif len(pairs) == len(ids):
        rows, how = wanted, "in the owner's order"
    else:
        raise DataError(
            f"{place.where} has {len(pairs):,} rows and no ids beside it, and there are {len(ids):,} items; add the "
            "key 'ids' with one id a row, or give one row an item in the owner's order."
        )
    return column[rows], f"{role} are features from {place}, rows {how}"


def _read_ids(place: Place, canonical_id: Callable[[str], str]) -> IdArray:
    pairs, _ = assemble({"ids": (place,)}, source=place.where)
    return np.array([canonical_id(name) for name in pairs.ids], dtype=np.str_)


def rows_of(available: IdArray, wanted: IdArray, source: str) -> IntArray:
    """The row of each wanted id, int64 (m,).

    Raises:
        DataError: an id is not there; the first ten are named.

    Example:
        >>> rows_of(np.array(["b", "a"]), np.array(["a", "a", "b"]), "features")
        array([1, 1, 0])
    """
    row = {str(name): number for number, name in enumerate(available)}
    absent = [str(name) for name in wanted if str(name) not in row]
    if absent:
        raise DataError(
            f"{source}: {len(absent):,} of {len(wanted):,} items have no row there, such as {listed(absent)}; give "
            "features of all of them."
        )
    return np.array([row[str(name)] for name in wanted], dtype=np.int64)
