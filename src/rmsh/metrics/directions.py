"""Directions of retrieval: images find texts, texts find images, or each finds its own modality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.core.errors import CodesError, ConfigError
from rmsh.core.progress import OnProgress, Progress, ignore
from rmsh.core.types import DIRECTIONS, Direction, Modality
from rmsh.metrics.counterparts import rank_codes, recall_score
from rmsh.metrics.evaluate import Score, Scores, evaluate

if TYPE_CHECKING:
    from rmsh.metrics.histogram import LabelledCodes

    Side = Mapping[Modality, LabelledCodes]


def modalities(direction: Direction) -> tuple[Modality, Modality]:
    """The modality of the queries and that of the database: ("image", "text") for "i2t"."""
    if direction not in DIRECTIONS:
        raise ConfigError(f"There is no direction {direction!r}; give one of {', '.join(DIRECTIONS)}.")
    names: dict[str, Modality] = {"i": "image", "t": "text"}
    return names[direction[0]], names[direction[2]]


def default_directions(query: Side, database: Side) -> list[Direction]:
    """The directions across modalities, or within the only modality that both sides have."""
    possible = [d for d in DIRECTIONS if modalities(d)[0] in query and modalities(d)[1] in database]
    return [d for d in possible if modalities(d)[0] != modalities(d)[1]] or possible


def evaluate_directions(
    query: Side,
    database: Side,
    *,
    directions: Sequence[Direction] | None = None,
    recall: Sequence[int] = (),
    on_progress: OnProgress = ignore,
    **options: Any,
) -> dict[Direction, Scores]:
    """Score several directions.

    ``query`` and ``database`` map modalities to labelled codes. By default the directions across modalities are scored.
    ``recall`` adds recall@k in the directions across modalities: the queries that have an image and a text are ranked
    among themselves.
    ``options`` are those of :func:`rmsh.metrics.evaluate.evaluate`; errors are those of :func:`select_direction`.
    """
    scores: dict[Direction, Scores] = {}
    for direction in default_directions(query, database) if directions is None else directions:

        def report(progress: Progress, stage: str = f"evaluate {direction}") -> None:
            on_progress(replace(progress, stage=stage))

        queries, items = select_direction(query, database, direction)
        found = evaluate(queries.codes, items.codes, queries.labels, items.labels, on_progress=report, **options)
        scores[direction] = replace(found, further={**found.further, **_recall(query, direction, recall)})
    return scores


def _recall(query: Side, direction: Direction, ranks: Sequence[int]) -> dict[str, Score]:
    one, other = modalities(direction)
    if not ranks or one == other or other not in query:
        return {}
    codes, counterparts = query[one].codes, query[other].codes
    _, rows, own = np.intersect1d(codes.ids, counterparts.ids, return_indices=True)
    places = rank_codes(codes.take(rows), counterparts.take(own))
    return {f"recall@{k}": recall_score(places, k) for k in ranks}


def select_direction(query: Side, database: Side, direction: Direction) -> tuple[LabelledCodes, LabelledCodes]:
    """The queries and the database of a direction; CodesError if a modality is missing or they share items."""
    of_query, of_database = modalities(direction)
    for side, modality, name in ((query, of_query, "queries"), (database, of_database, "database")):
        if modality not in side:
            missing = f"{modality} codes of the {name}"
            raise CodesError(f"The direction {direction} needs {missing}; encode them, or choose another direction.")
    queries, items = query[of_query], database[of_database]
    both = np.intersect1d(queries.codes.ids, items.codes.ids) if of_query == of_database else np.empty(0)
    if both.size:
        found = f"{both.size} ids are among the queries and in the database, such as {str(both[0])!r}"
        raise CodesError(f"{found}; in the direction {direction}, remove the queries from the database.")
    return queries, items
