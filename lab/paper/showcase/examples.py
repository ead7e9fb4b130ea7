"""Retrieval examples: what a query finds with each method, as a small file that a figure is drawn from.

The same queries ask all methods; they are drawn before any method is looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.codes import hamming
from rmsh.core.errors import DataError
from rmsh.data.pairs import is_raw
from rmsh.metrics.directions import modalities
from rmsh.metrics.relevance import shared_labels

if TYPE_CHECKING:
    from lab.paper.showcase.gallery import Gallery
    from rmsh.compare.measure import Parts
    from rmsh.core.types import Direction, IntArray
    from rmsh.data.open import Opened
    from rmsh.data.pairs import Pairs
    from rmsh.methods.base import Method

__all__ = ["SHOWN", "captions_of", "choose_queries", "find_examples"]

SHOWN = 5  # hits of a query
_DIRECTIONS: tuple[Direction, ...] = ("t2i", "i2t")
_LABELS = (3, 4)  # a query has so many: fewer are easy, more are hard to take in


def choose_queries(parts: Parts, gallery: Gallery, *, seed: int = 0) -> dict[Direction, int]:
    """A query for each direction: with a picture, three or four labels, and enough pictures that share two of them.

    Raises:
        DataError: no query is such.
    """
    candidates = _with_picture(parts.query, gallery)
    searched = _with_picture(parts.database, gallery)
    labels, others = np.asarray(parts.query.labels)[candidates], np.asarray(parts.database.labels)[searched]
    counts = labels.sum(axis=1)
    enough = (shared_labels(labels, others) >= 2).sum(axis=1) >= SHOWN
    good = candidates[(counts >= _LABELS[0]) & (counts <= _LABELS[1]) & enough]
    if len(good) < len(_DIRECTIONS):
        raise DataError(
            f"{parts.query.source}: {len(good)} queries have a picture at hand and {SHOWN} pictures that share two "
            f"labels with them; {len(_DIRECTIONS)} are needed. Leave the examples out, or give more pictures."
        )
    drawn = np.random.default_rng(seed).permutation(good)[: len(_DIRECTIONS)]
    return dict(zip(_DIRECTIONS, drawn.tolist(), strict=True))


def _with_picture(pairs: Pairs, gallery: Gallery) -> IntArray:
    return np.flatnonzero([name in gallery for name in pairs.ids.tolist()])


def find_examples(
    method: Method, parts: Parts, *, queries: dict[Direction, int], gallery: Gallery, captions: dict[str, str]
) -> list[dict[str, Any]]:
    """What each query finds among the database items whose pictures are at hand, as plain values.

    Args:
        method: that has learned.
        parts: of the data.
        queries: for each direction the row of its query.
        gallery: the pictures.
        captions: the text of each item, by id.
    """
    rows = _with_picture(parts.database, gallery)
    database = parts.database.take(rows)
    found = []
    for direction, row in queries.items():
        asking, asked = modalities(direction)
        query = parts.query.take(np.array([row]))
        code = method.encode(query.features(asking), asking, ids=query.ids)
        distances = hamming(code.packed, method.encode_database(database, asked).packed).ravel()
        nearest = np.argsort(distances, kind="stable")[:SHOWN]
        shared = shared_labels(np.asarray(query.labels), np.asarray(database.labels)[nearest]).ravel()
        hits = [
            {**_item(database, int(i), gallery, captions), "distance": int(distances[i]), "shared": int(s)}
            for i, s in zip(nearest, shared, strict=True)
        ]
        found.append({"direction": direction, "query": _item(query, 0, gallery, captions), "hits": hits})
    return found


def _item(pairs: Pairs, row: int, gallery: Gallery, captions: dict[str, str]) -> dict[str, Any]:
    name = str(pairs.ids[row])
    labels = [pairs.class_names[c] for c in np.flatnonzero(np.asarray(pairs.labels)[row])]
    return {"id": name, "text": captions.get(name, name), "labels": labels, "picture": gallery.thumbnail(name)}


def captions_of(opened: Opened) -> dict[str, str]:
    """The texts of all items by id; none where the data has features only."""
    texts = opened.pairs.texts
    if texts is None or not is_raw(texts):
        return {}
    return dict(zip(opened.pairs.ids.tolist(), texts.tolist(), strict=True))
