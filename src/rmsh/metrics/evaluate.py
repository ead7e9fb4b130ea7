"""Evaluation in one pass: codes and labels in, all scores with their bounds, chance levels and curves out.

Which measures an evaluation computes, and their definitions in words, stored in every result.

The values an evaluation returns: scores with bounds and chance levels, and curves.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import Field

from rmsh.core.config import Config
from rmsh.core.errors import DataError
from rmsh.core.files import atomic
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.metrics.average_precision import (
    Normaliser,  # pydantic reads it when the class is made
    average_precision,
    average_precision_bounds,
)
from rmsh.metrics.histogram import histograms
from rmsh.metrics.ranking import (
    Curve,
    by_radius,
    by_rank,
    found_within,
    ndcg,
    ndcg_bounds,
    precision_at,
    precision_at_bounds,
    precision_within,
    rank_grid,
)
from rmsh.metrics.relevance import random_ranking

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike

    from rmsh.codes import Codes
    from rmsh.core.types import Direction, IdArray, IntArray, ScoreArray
    from rmsh.metrics.average_precision import Normaliser
    from rmsh.metrics.histogram import HistogramArray


class Definitions(Config):
    """What is measured.

    Example:
        >>> Definitions(map_k=50).names()["map"]
        'mAP@50'
    """

    k: int = Field(default=500, ge=1)  # where NDCG and precision cut the ranking
    map_k: int | None = Field(default=None, ge=1)  # where mAP cuts it; None ranks the whole database
    map_normaliser: Normaliser = "relevant"  # what divides the sum of precisions, see average_precision.py
    radius: int = Field(default=2, ge=0)  # of "precision within"

    def names(self) -> dict[str, str]:
        """A short name for each score, as a table shows it."""
        return {
            "ndcg": f"NDCG@{self.k}",
            "map": f"mAP@{self.map_k or 'all'}",
            "precision": f"P@{self.k}",
            "within": f"P(d<={self.radius})",
        }

    def describe(self) -> dict[str, str]:
        """Each definition as a sentence."""
        cut = "the whole ranking" if self.map_k is None else f"the first {self.map_k} items"
        return {
            "relevance": "two items are relevant to each other where they share at least one label",
            "ndcg": f"NDCG@{self.k}: gain 2^r - 1 for r shared labels, discount 1 / log2(1 + rank), ideal ranking of "
            "the whole database, mean over queries of the ratio",
            "map": f"mean over queries of the sum of precisions at relevant items in {cut}, divided by "
            f"{self.map_normaliser}",
            "precision": f"share of relevant items among the first {self.k}",
            "within": f"share of relevant items within Hamming distance {self.radius}; a query that finds nothing "
            "there counts 0",
            "ties": "expected value over all orders of items at equal distance; bounds are the worst and best order",
            "chance": "expected value for a random ranking; for precision within a radius, the share of relevant items "
            "in the database",
            "dropped": "queries without a relevant item in the database are left out of every mean",
            "curves": "macro: precision and recall of each query, then the mean over queries; by radius, and expected "
            "by rank",
        }


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


def evaluate(
    query_codes: Codes,
    database_codes: Codes,
    query_labels: ArrayLike,
    database_labels: ArrayLike,
    *,
    k: int = 500,
    map_k: int | None = None,
    map_normaliser: Normaliser = "relevant",
    radius: int = 2,
    per_query: bool = False,
    on_progress: OnProgress = ignore,
) -> Scores:
    """Score how well queries find database items that share their labels.

    Args:
        query_codes: codes of Q queries.
        database_codes: codes of n items, of the same length.
        query_labels: 0/1 (Q, classes).
        database_labels: 0/1 (n, classes).
        k: where NDCG and precision cut the ranking.
        map_k: where mAP cuts it; None ranks the whole database.
        map_normaliser: what divides a sum of precisions: "relevant", "min(relevant,k)" or "hits".
        radius: of precision within a Hamming radius.
        per_query: keep the values of each query as well.
        on_progress: called after each block of queries.

    Raises:
        CodesError: the codes differ in length, or one side is empty.
        DataError: labels do not fit, or no query has a relevant item.
        ConfigError: an option is out of range.

    Example:
        >>> from rmsh.codes import Codes
        >>> query, database = Codes.from_values([[1, 1]]), Codes.from_values([[1, 1], [-1, -1]])
        >>> evaluate(query, database, [[1, 0]], [[1, 0], [0, 1]], k=1).ndcg
        Score(value=1.0, pessimistic=1.0, optimistic=1.0, chance=0.5)
    """
    chosen = Definitions.parse({"k": k, "map_k": map_k, "map_normaliser": map_normaliser, "radius": radius})
    blocks = histograms(query_codes, database_codes, query_labels=query_labels, database_labels=database_labels)
    ranks, measured, started, done = rank_grid(len(database_codes)), [], time.monotonic(), 0
    for block in blocks:
        measured.append(_measure(block, chosen, ranks))
        done += len(block)
        on_progress(Progress("evaluate", done, len(query_codes), "query", time.monotonic() - started))
    return _summarise(measured, chosen, ranks, query=query_codes, database=len(database_codes), per_query=per_query)


class _Measured(NamedTuple):
    """What one block of queries adds."""

    scores: dict[str, ScoreArray]  # (4, Q): the fields of Score
    empty: int  # queries with relevant items that find nothing within the radius
    radius_sums: ScoreArray  # (2, bits + 1): precision and recall, summed over queries
    rank_sums: ScoreArray  # (2, ranks)


def _measure(block: HistogramArray, chosen: Definitions, ranks: IntArray) -> _Measured:
    k, cut, divided, random = chosen.k, chosen.map_k, chosen.map_normaliser, random_ranking(block)
    within = precision_within(block, chosen.radius)
    scores = {
        "ndcg": [ndcg(block, k), *ndcg_bounds(block, k), ndcg(random, k)],
        "map": [
            average_precision(block, cut, normaliser=divided),
            *average_precision_bounds(block, cut, normaliser=divided),
            average_precision(random, cut, normaliser=divided),
        ],
        "precision": [precision_at(block, k), *precision_at_bounds(block, k), precision_at(random, k)],
        "within": [within, within, within, precision_within(random, chosen.radius)],
    }
    return _Measured(
        {name: np.stack(values) for name, values in scores.items()},
        int(np.count_nonzero(~np.isnan(within) & (found_within(block, chosen.radius) == 0))),
        np.nansum(by_radius(block), axis=1),
        np.nansum(by_rank(block, ranks), axis=1),
    )


def _summarise(
    measured: Sequence[_Measured],
    chosen: Definitions,
    ranks: IntArray,
    *,
    query: Codes,
    database: int,
    per_query: bool,
) -> Scores:
    scores = {name: np.concatenate([part.scores[name] for part in measured], axis=1) for name in chosen.names()}
    dropped = int(np.isnan(scores["ndcg"][0]).sum())
    kept = len(query) - dropped
    if not kept:
        raise DataError(
            f"None of the {len(query)} queries shares a label with any of the {database} database items; check that "
            "the label columns are the same classes on both sides, and the rows those of the codes."
        )
    return Scores(
        definitions=chosen,
        bits=query.bits,
        database=database,
        queries=len(query),
        dropped=dropped,
        **{name: Score(*np.nanmean(values, axis=1).tolist()) for name, values in scores.items()},
        empty_within=sum(part.empty for part in measured) / kept,
        radius_curve=Curve(
            np.arange(query.bits + 1), *(np.sum([part.radius_sums for part in measured], axis=0) / kept)
        ),
        rank_curve=Curve(ranks, *(np.sum([part.rank_sums for part in measured], axis=0) / kept)),
        per_query=PerQuery(query.ids, _named_columns(scores)) if per_query else None,
    )


def _named_columns(scores: Mapping[str, ScoreArray]) -> dict[str, ScoreArray]:
    fields = ("", "_pessimistic", "_optimistic", "_chance")
    return {name + end: row for name, rows in scores.items() for end, row in zip(fields, rows, strict=True)}
