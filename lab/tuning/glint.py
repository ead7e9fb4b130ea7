"""GLINT beside RMSH on coco66k: the loss to the sign, noisy labels, unseen items, time to RMSH's quality.

Scores over seeds and beside all other methods are in the grid, lab/grids/coco66k.yaml. A run's file name follows
from its parameters; a run whose file exists is not made again. The tables are made from the files alone. Nothing here
chooses an option: all are defaults, but for those of one that hurries and of one that does not check its labels.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.speed.data import RESULTS, coco66k_root
from lab.tuning import glint_tables
from rmsh.codes import Codes
from rmsh.compare.grid import Run
from rmsh.compare.measure import Parts, parts_of
from rmsh.compare.references import method_of
from rmsh.compare.result import compact
from rmsh.core.cache import cache_folder
from rmsh.core.files import write_json
from rmsh.core.types import DIRECTIONS, MODALITIES, Direction, FloatArray, Modality
from rmsh.data.open import Opened, open_pairs
from rmsh.metrics.directions import modalities
from rmsh.metrics.evaluate import evaluate
from rmsh.metrics.vectors import score_vectors

if TYPE_CHECKING:
    from rmsh.metrics.evaluate import Scores

FOLDER = RESULTS / "glint"
# RMSH's quality in little time: chosen on validation (lab/results/glint_trials.json).
HASTY = {"epochs": 4, "hidden": 256, "dropout": 0.0, "learning_rate": 0.03}
_RELAXED = 1000  # queries whose relaxed values are ranked as well, which costs a sort each


def runs() -> Iterator[Run]:
    """All runs, seed by seed, the most important first."""
    for seed in range(3):
        for options in ({}, HASTY):
            yield Run("coco66k", "glint", seed=seed, options=options)
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


def main(arguments: argparse.Namespace) -> None:
    """Make the missing runs whose file name is asked for, then the tables."""
    opened: Opened | None = None
    for run in [] if arguments.tables else runs():
        path = FOLDER / run.path.name
        if not path.exists() and re.search(arguments.only, path.name):
            print(f"{path.name} ...", flush=True)
            opened = opened or open_pairs(f"coco66k:{coco66k_root()}")
            write_json(path, measure(run, opened))
    glint_tables.write(FOLDER)


def measure(run: Run, opened: Opened) -> dict[str, Any]:
    """Learn, code, score by codes and by the relaxed values."""
    parts, method = parts_of(run, opened, cache=cache_folder()), method_of(run)
    start = time.process_time()  # of the processor: other work on the machine does not count
    method.fit(parts.train)
    seconds = time.process_time() - start
    values = {
        m: (method.project(parts.query.features(m), m), method.project(parts.database.features(m), m))
        for m in MODALITIES
    }
    return {
        "run": run.to_json(),
        "config": method.config.model_dump(),
        "training_pairs": len(parts.train),
        "split": {"name": parts.split.name, "sha256": parts.split.sha256},
        "scores": {direction: _scores(values, parts, direction) for direction in DIRECTIONS},
        "unseen": {direction: _unseen(values, parts, direction) for direction in ("i2t", "t2i")},
        "facts": compact(dict(method.model.facts)),
        "cpu_seconds": round(seconds, 1),
    }


def _scores(
    values: dict[Modality, tuple[FloatArray, FloatArray]], parts: Parts, direction: Direction
) -> dict[str, Any]:
    """NDCG@500 and mAP@all of all queries; across modalities also of the first ones, by codes and by relaxed values."""
    asking, asked = modalities(direction)
    query, database = values[asking][0], values[asked][1]
    labels, database_labels = np.asarray(parts.query.labels), np.asarray(parts.database.labels)
    searched, few = Codes.from_values(database), slice(_RELAXED)
    scores: dict[str, Any] = ndcg_and_map(evaluate(Codes.from_values(query), searched, labels, database_labels))
    if asking == asked:
        return scores
    relaxed = score_vectors(query[few], database, labels[few], database_labels)
    return scores | {
        "some": ndcg_and_map(evaluate(Codes.from_values(query[few]), searched, labels[few], database_labels)),
        "relaxed": {
            "ndcg@500": round(float(np.nanmean(relaxed["ndcg"])), 5),
            "map@all": round(float(np.nanmean(relaxed["map"])), 5),
        },
    }


def _unseen(
    values: dict[Modality, tuple[FloatArray, FloatArray]], parts: Parts, direction: Direction
) -> dict[str, float]:
    """Scores where nothing that is searched was learned from: every other query is the database of the rest."""
    asking, asked = modalities(direction)
    query, database = Codes.from_values(values[asking][0][::2]), Codes.from_values(values[asked][0][1::2])
    labels = np.asarray(parts.query.labels)
    return ndcg_and_map(evaluate(query, database, labels[::2], labels[1::2]))


def ndcg_and_map(scores: Scores) -> dict[str, float]:
    """What the tables show, rounded as the files have it."""
    return {"ndcg@500": round(scores.ndcg.value, 5), "map@all": round(scores.map.value, 5)}
