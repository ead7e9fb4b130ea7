"""GLINT on coco66k where most items have a picture or a text alone, with their labels; 64 bits, query set.

Of the items that are not pairs, half keep their picture and half their text. All of them are searched, as always: the
pictures by texts, and the texts by pictures. What the pairs alone teach is the table of few labels of `glint`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.speed.data import RESULTS, coco66k_root
from lab.speed.tables import markdown
from lab.tuning.glint import ndcg_and_map
from rmsh.compare.grid import Run
from rmsh.compare.measure import Parts, parts_of
from rmsh.compare.references import method_of
from rmsh.core.cache import cache_folder
from rmsh.core.files import write_json
from rmsh.data.open import open_pairs
from rmsh.metrics.directions import modalities
from rmsh.metrics.evaluate import evaluate

if TYPE_CHECKING:
    from rmsh.core.types import Direction
    from rmsh.data.pairs import Pairs
    from rmsh.methods.base import Method

PAIRED = (10_000, 0)  # items with both
DIRECTIONS: tuple[Direction, ...] = ("i2t", "t2i")


def main(arguments: argparse.Namespace) -> None:
    """Measure, write the results and print the table."""
    run = Run("coco66k", "glint", seed=arguments.seed)
    parts = parts_of(run, open_pairs(f"coco66k:{coco66k_root()}"), cache=cache_folder())
    measured = [measure(run, parts, paired) for paired in PAIRED]
    write_json(RESULTS / f"glint_alone-s{run.seed}.json", {"run": run.to_json(), "measured": measured})
    columns = ["pairs", "pictures alone", "texts alone", "NDCG@500", "mAP@all"]
    print(markdown("Items with one modality, 64 bits", columns, [_row(one) for one in measured]))


def measure(run: Run, parts: Parts, paired: int) -> dict[str, Any]:
    """Learn from so many pairs, and from one side of all other items."""
    method = method_of(run)
    method.fit(with_some_alone(parts.train, paired, seed=run.seed))
    return {
        "paired": paired,
        "alone": len(parts.train) - paired,
        "trusted": method.model.facts["trusted"],
        **{direction: _scores(method, parts, direction) for direction in DIRECTIONS},
    }


def with_some_alone(pairs: Pairs, paired: int, *, seed: int) -> Pairs:
    """The same items, of which all but some have lost a side, drawn by seed.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> left = with_some_alone(generate_pairs(10), 4, seed=0)
        >>> int(left.has_image.sum()), int(left.has_text.sum())
        (7, 7)
    """
    place = np.random.default_rng(seed).permutation(len(pairs))
    middle = (len(pairs) + paired) // 2
    return replace(
        pairs,
        has_image=pairs.has_image & (place < middle),
        has_text=pairs.has_text & ((place < paired) | (place >= middle)),
    )


def _scores(method: Method, parts: Parts, direction: Direction) -> dict[str, float]:
    asking, asked = modalities(direction)
    codes = method.encode(parts.query.features(asking), asking), method.encode(parts.database.features(asked), asked)
    return ndcg_and_map(evaluate(*codes, np.asarray(parts.query.labels), np.asarray(parts.database.labels)))


def _row(one: dict[str, Any]) -> list[str]:
    scores = [" / ".join(f"{one[direction][name]:.4f}" for direction in DIRECTIONS) for name in ("ndcg@500", "map@all")]
    return [f"{one['paired']:,}", f"{one['alone'] // 2:,}", f"{one['alone'] - one['alone'] // 2:,}", *scores]
