"""Recall of counterparts: how often an image finds its own text among the first k texts, and a text its own image.

Row i of the queries and row i of the items belong together. With c closer items and t items at the distance of the
counterpart, itself included, the counterpart has each of the ranks c + 1 to c + t with the same probability.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rmsh.core.errors import CodesError, ConfigError
from rmsh.core.types import FloatArray, IntArray, ScoreArray
from rmsh.metrics.evaluate import Score

if TYPE_CHECKING:
    from rmsh.codes import Codes

RECALL_RANKS = (1, 5, 10)
_BLOCK = 256  # queries at a time


class Places(NamedTuple):
    """Where the counterpart of each query is ranked."""

    closer: IntArray  # (Q,) items closer to the query than its counterpart
    tied: IntArray  # (Q,) items at the distance of the counterpart, itself included


def recall_at(places: Places, k: int) -> ScoreArray:
    """The probability that the counterpart of each query is among the first k, (Q,).

    Example:
        >>> recall_at(Places(np.array([0, 0, 4]), np.array([1, 4, 2])), 1)  # first, one of four equals, fifth or sixth
        array([1.  , 0.25, 0.  ])
    """
    if k < 1:
        raise ConfigError(f"Recall is cut at k = {k}; give a whole number from 1.")
    return np.asarray(np.clip((k - places.closer) / places.tied, 0, 1))


def recall_score(places: Places, k: int) -> Score:
    """Recall@k: the mean over queries, expected over ties, with its bounds and the value k / n of a random ranking."""
    value = float(recall_at(places, k).mean())
    worst, best = (float(found.mean()) for found in (places.closer + places.tied <= k, places.closer < k))
    return Score(value, worst, best, min(k / len(places.closer), 1.0))


def rank_codes(query: Codes, items: Codes) -> Places:
    """The places of counterparts by Hamming distance."""
    if query.bits != items.bits:
        raise CodesError(f"The codes have {query.bits} and {items.bits} bits; encode both with the same model.")
    words = items.words()
    return _rank(query.words(), len(items), lambda rows: np.bitwise_count(rows[:, None] ^ words).sum(axis=2))


def rank_vectors(query: FloatArray, items: FloatArray) -> Places:
    """The places of counterparts by dot products of vectors (Q, d), largest first."""
    return _rank(query, len(items), lambda rows: -(rows @ items.T))


def _rank(query: Any, items: int, distances: Callable[[Any], Any]) -> Places:
    if len(query) != items or not items:
        raise CodesError(f"There are {len(query)} queries and {items} items; give one item per query, at least one.")
    closer, tied = np.empty(items, dtype=np.int64), np.empty(items, dtype=np.int64)
    for start in range(0, items, _BLOCK):
        rows = slice(start, start + _BLOCK)
        found = distances(query[rows])
        own = found[np.arange(len(found)), np.arange(items)[rows]][:, None]
        closer[rows], tied[rows] = (found < own).sum(axis=1), (found == own).sum(axis=1)
    return Places(closer, tied)
