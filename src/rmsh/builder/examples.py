"""A few searches in a new library, to be looked at: held-out items ask, and what they find is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.metrics.directions import modalities

if TYPE_CHECKING:
    from rmsh.library import Item, Library
    from rmsh.types import Direction, IdArray

__all__ = ["example_searches"]

# How many queries of each direction, and how many hits of each query.
_SHOWN: dict[Direction, tuple[int, int]] = {"t2i": (4, 5), "i2t": (3, 5), "i2i": (2, 5), "t2t": (2, 5)}


def example_searches(library: Library, ids: IdArray, *, seed: int) -> list[dict[str, Any]]:
    """Searches as plain values: direction, the item that asks, and its hits without itself.

    Args:
        library: to search.
        ids: items that may ask, which have a picture and a text.
        seed: which of them do follows from it.
    """
    drawn = np.random.default_rng(seed).permutation(ids).tolist()
    searches: list[dict[str, Any]] = []
    for direction, (count, hits) in _SHOWN.items():
        asking, drawn = drawn[:count], drawn[count:] + drawn[:count]
        searches += [_search(library, name, direction, hits) for name in asking]
    return searches


def _search(library: Library, name: str, direction: Direction, count: int) -> dict[str, Any]:
    by, to = modalities(direction)
    item, codes = library.get(name), library.codes([name], by)
    found = library.search(codes, count + 1, to=to, model=library.generation().fingerprint)[0] if len(codes) else []
    hits = [hit for hit in found if hit.item.id != name][:count]
    labels = set(item.labels) if item else set()
    return {
        "direction": direction,
        "query": _plain(item),
        "hits": [
            {**_plain(hit.item), "distance": hit.distance, "shared": sorted(labels & {*hit.item.labels})}
            for hit in hits
        ],
    }


def _plain(item: Item | None) -> dict[str, Any]:
    if item is None:
        return {}
    return {"id": item.id, "text": item.text, "picture": item.picture, "labels": list(item.labels)}
