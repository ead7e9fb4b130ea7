"""The values an evaluation returns: scores with bounds and chance levels, and curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.files import atomic

if TYPE_CHECKING:
    from pathlib import Path

    from rmsh.metrics.curves import Curve
    from rmsh.metrics.definitions import Definitions
    from rmsh.types import Direction, IdArray, ScoreArray

__all__ = ["PerQuery", "Score", "Scores", "save_per_query"]


@dataclass(frozen=True)
class Score:
    """A mean over queries: expected over ties, in the worst and the best order of ties, and for a random ranking."""

    value: float
    pessimistic: float
    optimistic: float
    chance: float


@dataclass(frozen=True, eq=False)
class PerQuery:
    """Every score of every query, NaN for a dropped one.

    Args:
        ids: (Q,) of the queries.
        values: (Q,) by name: ``ndcg``, ``ndcg_pessimistic``, ``ndcg_optimistic``, ``ndcg_chance``; so too ``map``,
            ``precision`` and ``within``.
    """

    ids: IdArray
    values: Mapping[str, ScoreArray]


@dataclass(frozen=True, eq=False)
class Scores:
    """The outcome of an evaluation, with everything needed to explain it."""

    definitions: Definitions
    bits: int
    database: int  # items
    queries: int  # all that were asked, with the dropped ones
    dropped: int  # queries without a relevant item
    ndcg: Score
    map: Score
    precision: Score
    within: Score
    empty_within: float  # share of the queries that find nothing within the radius
    radius_curve: Curve
    rank_curve: Curve
    per_query: PerQuery | None = None

    def named(self) -> dict[str, Score]:
        """The scores under the names a table shows."""
        return {shown: getattr(self, name) for name, shown in self.definitions.names().items()}

    def to_json(self) -> dict[str, Any]:
        """Plain values for a JSON file, without the values of single queries."""
        plain = {name: getattr(self, name) for name in ("bits", "database", "queries", "dropped", "empty_within")}
        scores = {name: asdict(getattr(self, name)) for name in self.definitions.names()}
        curves = {name: getattr(self, name).to_json() for name in ("radius_curve", "rank_curve")}
        settings = {"settings": self.definitions.model_dump(), "definitions": self.definitions.describe()}
        return plain | scores | curves | settings


def save_per_query(path: Path, scores: Mapping[Direction, Scores]) -> None:
    """Write the values of each query as one npz: ``i2t_ids``, ``i2t_ndcg`` and so on, by the keys of ``scores``."""
    arrays: dict[str, Any] = {}
    for direction, found in scores.items():
        if found.per_query is not None:
            arrays[f"{direction}_ids"] = found.per_query.ids
            arrays |= {f"{direction}_{name}": values for name, values in found.per_query.values.items()}
    with atomic(path) as file:
        np.savez(file, **arrays)
