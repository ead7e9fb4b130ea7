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
from rmsh.codes import Codes
from rmsh.compare.measure import Parts, measure, parts_of
from rmsh.compare.references import method_of
from rmsh.compare.result import write_result
from rmsh.compare.run import Run
from rmsh.core.cache import cache_folder
from rmsh.core.types import MODALITIES, Direction
from rmsh.data.open import Opened, open_pairs
from rmsh.metrics.directions import modalities
from rmsh.metrics.evaluate import evaluate, score_vectors

if TYPE_CHECKING:
    from rmsh.core.types import FloatArray, Modality
    from rmsh.metrics.evaluate import Scores

FAST = {"epochs": 4, "hidden": 256, "dropout": 0.0, "learning_rate": 0.03}
_QUERIES = 1000  # that are also ranked by relaxed values, which takes a sort each
_ACROSS: tuple[Direction, ...] = ("i2t", "t2i")
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
    """A result with scores within each modality and with the loss to the sign.

    A result does not carry its model, so the method is trained once more, which gives the same model.
    """
    result = dict(measure(run, opened, cache=cache_folder()))
    parts = parts_of(run, opened, cache=cache_folder())
    method = method_of(run).fit(parts.train)
    query = {m: method.project(parts.query.features(m), m) for m in MODALITIES}
    database = {m: method.project(parts.database.features(m), m) for m in MODALITIES}
    within = {direction: _within(query, database, parts, direction) for direction in _WITHIN}
    result["scores"] = {**result["scores"], **within}
    return result | {"relaxed": {direction: _relaxed(query, database, parts, direction) for direction in _ACROSS}}


def _within(
    query: dict[Modality, FloatArray], database: dict[Modality, FloatArray], parts: Parts, direction: Direction
) -> dict[str, Any]:
    modality, _ = modalities(direction)
    codes = Codes.from_values(query[modality]), Codes.from_values(database[modality])
    scores = evaluate(*codes, np.asarray(parts.query.labels), np.asarray(parts.database.labels))
    return {name: {"value": value} for name, value in ndcg_and_map(scores).items()}


def _relaxed(
    query: dict[Modality, FloatArray], database: dict[Modality, FloatArray], parts: Parts, direction: Direction
) -> dict[str, Any]:
    """NDCG@500 and mAP@all of the first queries, by codes and by relaxed values."""
    query_modality, database_modality = modalities(direction)
    queries, items = query[query_modality][:_QUERIES], database[database_modality]
    labels = np.asarray(parts.query.labels)[:_QUERIES], np.asarray(parts.database.labels)
    values = score_vectors(queries, items, *labels)
    return {
        "queries": len(queries),
        "codes": ndcg_and_map(evaluate(Codes.from_values(queries), Codes.from_values(items), *labels)),
        "values": {
            "ndcg@500": round(float(np.nanmean(values["ndcg"])), 5),
            "map@all": round(float(np.nanmean(values["map"])), 5),
        },
    }


def ndcg_and_map(scores: Scores) -> dict[str, float]:
    """The two scores of a result file, rounded."""
    return {"ndcg@500": round(scores.ndcg.value, 5), "map@all": round(scores.map.value, 5)}
