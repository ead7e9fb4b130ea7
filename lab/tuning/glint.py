"""GLINT and RMSH on coco66k: relaxed values, search within a modality, noisy and few labels, training time.

Scores over seeds and of all other methods are in the grid lab/grids/coco66k.yaml. All options are defaults, except
those of a fast variant, chosen on validation (lab/results/tuning/glint_trials.json), and of one without
the check of labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.console import Only, Tables  # noqa: TC001  # typer reads them
from lab.data import RUNS, coco66k_place
from lab.tuning.quality import score_table
from rmsh.compare.measure import measure, parts_of
from rmsh.compare.result import write_result
from rmsh.compare.run import Run, method_of
from rmsh.core.files import cache_folder
from rmsh.data.open import Opened, open_pairs
from rmsh.metrics.directions import modalities
from rmsh.metrics.evaluate import evaluate

if TYPE_CHECKING:
    from rmsh.core.types import Direction
    from rmsh.metrics.evaluate import Scores

FAST = {"epochs": 4, "hidden": 256, "dropout": 0.0, "learning_rate": 0.03}
_WITHIN: tuple[Direction, ...] = ("i2i", "t2t")


def runs() -> Iterator[Run]:
    """All runs, seed by seed, the most important first."""
    for seed in range(3):
        yield Run("coco66k", "glint", seed=seed)
        yield Run("coco66k", "glint", seed=seed, options=FAST)
        yield Run("coco66k", "rmsh", seed=seed)
        for noise in (0.4, 0.2):
            for method in ("glint", "rmsh"):
                yield Run("coco66k", method, seed=seed, label_noise=noise)
        for train in (2000, 10000):
            for method in ("glint", "rmsh"):
                yield Run("coco66k", method, seed=seed, train=train)
        for bits, method in ((256, "glint"), (16, "glint"), (16, "rmsh")):
            yield Run("coco66k", method, seed=seed, bits=bits)
    yield Run("coco66k", "glint", label_noise=0.4, options={"check_labels": False})


def main(*, only: Only = "", tables: Tables = False) -> None:
    """Run what is missing of the runs whose file name matches, then print the scores."""
    opened: Opened | None = None
    for run in [] if tables else runs():
        if not (RUNS / run.path).exists() and re.search(only, run.path.name):
            print(f"{run.path.name} ...", flush=True)
            opened = opened or open_pairs(coco66k_place())
            write_result(RUNS / run.path, measure_more(run, opened))
    print(score_table(runs()))


def measure_more(run: Run, opened: Opened) -> dict[str, Any]:
    """A result with scores within each modality.

    A result does not carry its model, so the method is trained once more, which gives the same model.
    """
    result = dict(measure(run, opened, cache=cache_folder()))
    parts = parts_of(run, opened, cache=cache_folder())
    method = method_of(run).fit(parts.train)
    within = {}
    for direction in _WITHIN:
        modality, _ = modalities(direction)
        query, database = (method.encode(part.features(modality), modality) for part in (parts.query, parts.database))
        scores = evaluate(query, database, np.asarray(parts.query.labels), np.asarray(parts.database.labels))
        within[direction] = {name: {"value": value} for name, value in ndcg_and_map(scores).items()}
    return result | {"scores": {**result["scores"], **within}}


def ndcg_and_map(scores: Scores) -> dict[str, float]:
    """The two scores of a result file, rounded."""
    return {"ndcg@500": round(scores.ndcg.value, 5), "map@all": round(scores.map.value, 5)}
