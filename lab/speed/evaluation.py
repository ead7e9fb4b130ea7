"""Evaluation speed and memory: the whole coco66k protocol, compared with a plain numpy implementation.

The codes are random, which takes the same time and needs no model. Numpy scores a sample of the queries; its time is
scaled up.
"""

from __future__ import annotations

import resource
import time
from statistics import median
from typing import Any

import numpy as np

from lab.data import coco66k_place, write_measurement
from rmsh.codes import Codes, hamming
from rmsh.data.open import open_pairs
from rmsh.metrics.evaluate import evaluate

BITS = 64
DIRECTIONS = 2
ROUNDS = 3
SAMPLE = 50  # queries that numpy scores per round


def main() -> None:
    """Measure both in turns, write the result and print a line."""
    opened = open_pairs(coco66k_place(), skip=("images", "texts"))
    split, labels = opened.split, np.asarray(opened.pairs.labels)
    assert split is not None  # noqa: S101  # coco66k has one
    rng = np.random.default_rng(0)
    query, database = (Codes.from_values(rng.normal(size=(len(rows), BITS))) for rows in (split.query, split.database))
    query_labels, database_labels = labels[split.query], labels[split.database]
    few = query.take(np.arange(SAMPLE))
    sample = evaluate(few, database, query_labels[:SAMPLE], database_labels)  # compiles
    ours, theirs, plain = [], [], np.empty(0)
    for _ in range(ROUNDS):
        start = time.perf_counter()
        evaluate(query, database, query_labels, database_labels)
        ours.append((time.perf_counter() - start) * DIRECTIONS)
        start = time.perf_counter()
        scores = [plain_scores(few.packed[i], database.packed, query_labels[i], database_labels) for i in range(SAMPLE)]
        theirs.append((time.perf_counter() - start) / SAMPLE * len(query) * DIRECTIONS)
        plain = np.mean([values for *values, _ in scores], axis=0)
    result: dict[str, Any] = {
        "queries": len(query),
        "database": len(database),
        "bits": BITS,
        "directions": DIRECTIONS,
        "seconds": median(ours),
        "numpy_seconds": median(theirs),
        "times_faster": median(theirs) / median(ours),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "sample": {"ours": [sample.ndcg.value, sample.map.value], "numpy": plain.tolist()},
    }
    write_measurement("speed/evaluation", result)
    print(
        f"both directions of coco66k: {result['seconds']:.2f} s, numpy {result['numpy_seconds']:.1f} s, "
        f"{result['times_faster']:.0f} times; peak memory {result['peak_memory_mb']} MB; NDCG@500 and mAP of {SAMPLE} "
        f"queries {result['sample']['ours']}, numpy {result['sample']['numpy']}"
    )


def plain_scores(query: Any, database: Any, wanted: Any, labels: Any, k: int = 500) -> tuple[float, float, Any]:
    """NDCG@k, AP and the precision-recall curve of one query by sorting the database."""
    distance = hamming(query[None], database)[0]
    order = np.argsort(distance, kind="stable")
    gains = 2.0 ** (labels @ wanted)[order] - 1
    discount = 1 / np.log2(2 + np.arange(k))
    ndcg = (gains[:k] * discount).sum() / (np.sort(gains)[::-1][:k] * discount).sum()
    relevant = gains > 0
    hits = np.cumsum(relevant)
    precision, recall = hits / np.arange(1, len(hits) + 1), hits / hits[-1]
    curve = np.interp(np.linspace(0, 1, BITS + 1), recall, precision)
    return float(ndcg), float(precision[relevant].mean()), curve
