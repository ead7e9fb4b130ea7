"""GLINT on coco66k when most labelled training items have only an image or only a text; 64 bits, query set.

Of the items that are not pairs, half keep their image and half their text. The database is complete, as always.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lab.console import Seed  # noqa: TC001  # typer reads them
from lab.data import coco66k_place, write_measurement
from lab.tuning.glint import ndcg_and_map
from rmsh.compare.measure import Parts, parts_of
from rmsh.compare.run import Run, method_of
from rmsh.core.files import cache_folder
from rmsh.data.open import open_pairs
from rmsh.metrics.directions import modalities
from rmsh.metrics.evaluate import evaluate

if TYPE_CHECKING:
    from rmsh.core.types import Direction
    from rmsh.data.pairs import Pairs
    from rmsh.methods.base import Method

PAIRED = (10_000, 0)  # items with both modalities
DIRECTIONS: tuple[Direction, ...] = ("i2t", "t2i")


def main(*, seed: Seed = 0) -> None:
    """Measure, write the results and print the table."""
    run = Run("coco66k", "glint", seed=seed)
    parts = parts_of(run, open_pairs(coco66k_place()), cache=cache_folder())
    measured = [measure(run, parts, paired) for paired in PAIRED]
    write_measurement("tuning/glint_alone", {"run": run.to_json(), "measured": measured})
    print(pd.json_normalize(measured).to_string(index=False))


def measure(run: Run, parts: Parts, paired: int) -> dict[str, Any]:
    """Train on so many pairs, and on one modality of all other items."""
    method = method_of(run)
    method.fit(with_some_alone(parts.train, paired, seed=run.seed))
    return {
        "paired": paired,
        "alone": len(parts.train) - paired,
        "trusted": method.model.facts["trusted"],
        **{direction: _scores(method, parts, direction) for direction in DIRECTIONS},
    }


def with_some_alone(pairs: Pairs, paired: int, *, seed: int) -> Pairs:
    """The same items, of which all but ``paired`` random ones have lost one modality.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> left = with_some_alone(generate_pairs(10), 4, seed=0)
        >>> int(left.has_image.sum()), int(left.has_text.sum())
        (7, 7)
    """
    rank = np.random.default_rng(seed).permutation(len(pairs))
    middle = (len(pairs) + paired) // 2
    return replace(
        pairs,
        has_image=pairs.has_image & (rank < middle),
        has_text=pairs.has_text & ((rank < paired) | (rank >= middle)),
    )


def _scores(method: Method, parts: Parts, direction: Direction) -> dict[str, float]:
    query, database = modalities(direction)
    codes = (
        method.encode(parts.query.features(query), query),
        method.encode(parts.database.features(database), database),
    )
    return ndcg_and_map(evaluate(*codes, np.asarray(parts.query.labels), np.asarray(parts.database.labels)))
