"""Precision@10, NDCG@10 and first hit right of a ranking, and paired bootstrap intervals of differences.

An item is right if its grade is 2. Precision divides by ten, however many items a ranking returns; "of possible"
divides by the right items that are known, if these are fewer than ten. NDCG has gain 2^grade - 1 and discount
1 / log2(position + 1), and divides by the best order of all judged items. A query without a right item has no score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.first_page.judged import DEPTH, Grades, Query, Ranking, check_ranking, unjudged
from rmsh.core.errors import DataError

if TYPE_CHECKING:
    from rmsh.core.types import ScoreArray

METRICS = ("precision@10", "of possible", "ndcg@10", "first right")
RIGHT = 2
SAMPLES = 10_000


def query_scores(items: Sequence[str], grades: Mapping[str, int]) -> ScoreArray:
    """The scores of one query that has a right item; an item without a grade counts as wrong.

    Example:
        >>> query_scores(["b", "a"], {"a": 2, "b": 0, "c": 1}).round(3).tolist()
        [0.1, 1.0, 0.521, 0.0]
    """
    found = np.array([grades.get(item, 0) for item in items[:DEPTH]])
    ideal = np.array(sorted(grades.values(), reverse=True)[:DEPTH])
    right = found == RIGHT
    possible = (ideal == RIGHT).sum()
    return np.array([right.sum() / DEPTH, right.sum() / possible, _dcg(found) / _dcg(ideal), float(right[:1].any())])


def _dcg(grades: np.ndarray) -> float:
    return float(((2.0**grades - 1) / np.log2(np.arange(len(grades)) + 2)).sum())


def score_table(ranking: Ranking, queries: Sequence[Query], judgements: Grades) -> ScoreArray:
    """Scores (queries, metrics), NaN for queries without a right item."""
    rows = []
    for query in queries:
        grades = judgements.get(query.query, {})
        answered = RIGHT in grades.values()
        rows.append(query_scores(ranking[query.query], grades) if answered else np.full(len(METRICS), np.nan))
    return np.array(rows)


def bootstrap_interval(differences: ScoreArray, *, seed: int = 0) -> tuple[float, float]:
    """95 % interval of the mean of paired differences (queries,), by resampling queries."""
    draws = np.random.default_rng(seed).integers(len(differences), size=(SAMPLES, len(differences)))
    low, high = np.percentile(differences[draws].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def score_rankings(
    rankings: Mapping[str, Ranking],
    queries: Sequence[Query],
    judgements: Grades,
    *,
    references: Sequence[str],
    unjudged_wrong: bool = False,
) -> list[dict[str, Any]]:
    """One row per ranking and kind of query: means, and differences of the other rankings to the references.

    Raises:
        DataError: a reference is unknown, a ranking lacks a query, or has unjudged items among its first ten.
    """
    if unknown := [name for name in references if name not in rankings]:
        raise DataError(f"There is no ranking {unknown[0]!r} to compare with; choose one of {', '.join(rankings)}.")
    asked = {query.query for query in queries}
    for name, ranking in rankings.items():
        check_ranking(ranking, queries)
        missing = unjudged({query: items for query, items in ranking.items() if query in asked}, judgements)
        if missing and not unjudged_wrong:
            raise DataError(
                f"Ranking {name!r} has {sum(map(len, missing.values()))} unjudged items among its first ten, for "
                f"{len(missing)} queries; judge them (--sheets), or count them as wrong (--unjudged-wrong)."
            )
    tables = {name: score_table(ranking, queries, judgements) for name, ranking in rankings.items()}
    kinds = np.array([query.kind for query in queries])
    groups = {kind: kinds == kind for kind in dict.fromkeys(kinds.tolist())} | {"all": np.ones(len(kinds), dtype=bool)}
    return [
        {
            "kind": kind,
            "ranking": name,
            **_summary(table[rows], {} if name in references else {other: tables[other][rows] for other in references}),
        }
        for kind, rows in groups.items()
        for name, table in tables.items()
    ]


def _summary(scores: ScoreArray, references: Mapping[str, ScoreArray]) -> dict[str, Any]:
    answered = ~np.isnan(scores[:, 0])
    summary: dict[str, Any] = {"queries": int(answered.sum()), "without right item": int((~answered).sum())}
    if not answered.any():
        return summary
    for column, metric in enumerate(METRICS):
        values = scores[answered, column]
        summary[metric] = {"value": round(float(values.mean()), 4), "over": {}}
        for name, reference in references.items():
            differences = values - reference[answered, column]
            ends = [round(end, 4) for end in bootstrap_interval(differences)]
            summary[metric]["over"][name] = {"difference": round(float(differences.mean()), 4), "interval": ends}
    return summary
