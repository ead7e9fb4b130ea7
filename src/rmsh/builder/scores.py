"""Which items a build keeps aside, and how well the model that never saw them lets them find the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rmsh.data.splits import Split
from rmsh.errors import DataError
from rmsh.metrics import LabelledCodes, evaluate_directions
from rmsh.metrics.retrieval import usual_queries
from rmsh.progress import OnProgress, ignore
from rmsh.types import DIRECTIONS, MODALITIES

if TYPE_CHECKING:
    from rmsh.data.pairs import Pairs
    from rmsh.model import Model
    from rmsh.types import BitArray, IdArray, IntArray, Modality

__all__ = ["LEAST_ITEMS", "RANK", "complete", "hold_out", "score", "split_by"]

RANK = 50  # where NDCG and precision cut the ranking: what a person may look through
LEAST_ITEMS = 30  # with fewer complete items, every one is needed to learn from


def hold_out(pairs: Pairs, *, seed: int) -> IdArray:
    """The ids of the items to keep aside: a tenth of the complete ones, at most 1,000; none of fewer than thirty.

    Example:
        >>> from rmsh.data.generated import generate_pairs
        >>> len(hold_out(generate_pairs(200), seed=0)), len(hold_out(generate_pairs(20), seed=0))
        (20, 0)
    """
    rows = np.flatnonzero(complete(pairs))
    count = usual_queries(len(rows)) if len(rows) >= LEAST_ITEMS else 0
    drawn = np.random.default_rng(seed).choice(rows, count, replace=False)
    held: IdArray = pairs.ids[np.sort(drawn)]
    return held


def complete(pairs: Pairs) -> BitArray:
    """(n,) which items have all that is learned from: a picture, a text and a label."""
    return pairs.has_image & pairs.has_text & pairs.labelled


def split_by(pairs: Pairs, held_out: IdArray) -> Split:
    """The held-out items that are still complete ask; the items that were not held out are searched and learned from.

    Example:
        >>> from rmsh.data.generated import generate_pairs
        >>> split_by(generate_pairs(4), np.array(["item-2"])).train
        array([0, 1, 3])
    """
    held = np.isin(pairs.ids, held_out)
    rest = np.flatnonzero(~held)
    return Split("held-out", rest, np.flatnonzero(held & complete(pairs)), rest)


def score(model: Model, pairs: Pairs, split: Split, *, on_progress: OnProgress = ignore) -> dict[str, Any]:
    """Scores of the held-out items in all directions as plain values; empty where none are held out.

    The database is the other items that have labels; an item without labels is relevant to nothing and is left out.
    """
    if not split.query.size:
        return {}
    labelled = np.flatnonzero(pairs.labelled)
    sides = [_side(model, pairs, np.intersect1d(rows, labelled)) for rows in (split.query, split.database)]
    try:
        found = evaluate_directions(*sides, directions=DIRECTIONS, k=RANK, on_progress=on_progress)
    except DataError:  # no held-out item shares a label with any other item
        return {}
    return {direction: scores.to_json() for direction, scores in found.items()}


def _side(model: Model, pairs: Pairs, rows: IntArray) -> dict[Modality, LabelledCodes]:
    side: dict[Modality, LabelledCodes] = {}
    for modality in MODALITIES:
        present = rows[pairs.has(modality)[rows]]
        codes = model.encode(pairs.features(modality)[present], modality, ids=pairs.ids[present])
        side[modality] = LabelledCodes(codes, np.asarray(pairs.labels)[present])
    return side
