"""Evaluation in one pass: codes and labels in, all scores with their bounds, chance levels and curves out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rmsh.errors import DataError
from rmsh.metrics.average_precision import average_precision, average_precision_bounds
from rmsh.metrics.curves import Curve, by_radius, by_rank, rank_grid
from rmsh.metrics.definitions import Definitions
from rmsh.metrics.histogram import histograms
from rmsh.metrics.ranking import (
    found_within,
    ndcg,
    ndcg_bounds,
    precision_at,
    precision_at_bounds,
    precision_within,
)
from rmsh.metrics.relevance import random_ranking
from rmsh.metrics.scores import PerQuery, Score, Scores
from rmsh.progress import OnProgress, Progress, ignore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from rmsh.codes import Codes
    from rmsh.metrics.average_precision import Normaliser
    from rmsh.metrics.histogram import HistogramArray
    from rmsh.types import IntArray, ScoreArray

__all__ = ["evaluate"]


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
