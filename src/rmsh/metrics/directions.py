"""Directions: pictures find texts, texts find pictures, and each finds its own kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.core.errors import CodesError, ConfigError
from rmsh.core.progress import OnProgress, ignore
from rmsh.core.types import DIRECTIONS
from rmsh.metrics.evaluate import evaluate

if TYPE_CHECKING:
    from rmsh.core.types import Direction, Modality
    from rmsh.metrics.evaluate import Scores
    from rmsh.metrics.relevance import LabelledCodes

    Side = Mapping[Modality, LabelledCodes]

__all__ = ["evaluate_directions", "modalities", "pick", "usual_directions"]


def modalities(direction: Direction) -> tuple[Modality, Modality]:
    """The modality of the queries and that of the database.

    Example:
        >>> modalities("i2t")
        ('image', 'text')
    """
    if direction not in DIRECTIONS:
        raise ConfigError(f"There is no direction {direction!r}; give one of {', '.join(DIRECTIONS)}.")
    names: dict[str, Modality] = {"i": "image", "t": "text"}
    return names[direction[0]], names[direction[2]]


def usual_directions(query: Side, database: Side) -> list[Direction]:
    """What is evaluated unless asked otherwise: across the modalities, or within the only one there is.

    Example:
        >>> usual_directions({"text": ...}, {"image": ..., "text": ...}), usual_directions({"text": ...}, {"text": ...})
        (['t2i'], ['t2t'])
    """
    possible = [d for d in DIRECTIONS if modalities(d)[0] in query and modalities(d)[1] in database]
    across = [d for d in possible if modalities(d)[0] != modalities(d)[1]]
    return across or possible


def evaluate_directions(
    query: Side,
    database: Side,
    *,
    directions: Sequence[Direction] | None = None,
    on_progress: OnProgress = ignore,
    **options: Any,
) -> dict[Direction, Scores]:
    """Score several directions.

    Args:
        query: labelled codes of the queries, by modality.
        database: labelled codes of the database, by modality.
        directions: which ones; where not given, across the modalities.
        on_progress: called after each block of queries.
        options: as for :func:`rmsh.metrics.evaluate.evaluate`.

    Raises:
        CodesError: codes of a modality are missing, or an item is asked to find itself.

    Example:
        >>> from rmsh.codes import Codes
        >>> from rmsh.metrics.relevance import LabelledCodes
        >>> one = {"image": LabelledCodes(Codes.from_values([[1, 1]], ids=["q"]), [[1]])}
        >>> two = {"text": LabelledCodes(Codes.from_values([[1, 1], [1, -1]]), [[0], [1]])}
        >>> evaluate_directions(one, two, k=1)["i2t"].ndcg.value
        0.0
    """
    scores: dict[Direction, Scores] = {}
    for direction in usual_directions(query, database) if directions is None else directions:
        asking, asked = pick(query, database, direction)
        scores[direction] = evaluate(
            asking.codes,
            asked.codes,
            asking.labels,
            asked.labels,
            on_progress=lambda progress, name=direction: on_progress(replace(progress, stage=f"evaluate {name}")),  # type: ignore[misc]
            **options,
        )
    return scores


def pick(query: Side, database: Side, direction: Direction) -> tuple[LabelledCodes, LabelledCodes]:
    """The queries and the database of a direction.

    Raises:
        CodesError: codes of a modality are missing, or an item is asked to find itself.
    """
    of_query, of_database = modalities(direction)
    for side, modality, name in ((query, of_query, "queries"), (database, of_database, "database")):
        if modality not in side:
            raise CodesError(
                f"The direction {direction} needs {modality} codes of the {name}, and there are none; code the "
                f"{modality}s as well, or choose another direction."
            )
    asking, asked = query[of_query], database[of_database]
    if of_query == of_database:
        _refuse_itself(asking, asked, direction)
    return asking, asked


def _refuse_itself(asking: LabelledCodes, asked: LabelledCodes, direction: Direction) -> None:
    both = np.intersect1d(asking.codes.ids, asked.codes.ids)
    if both.size:
        raise CodesError(
            f"{both.size} ids are among the queries and in the database, such as {str(both[0])!r}; in the direction "
            f"{direction} they would find themselves. Take the queries out of the database."
        )
