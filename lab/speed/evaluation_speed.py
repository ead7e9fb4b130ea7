"""Evaluation speed: the whole coco66k protocol against a plain numpy version, and the memory it needs.

Codes are random: the work is the same, and no model is needed. Numpy scores a sample of the queries and is scaled up.
"""

from __future__ import annotations

import argparse
import resource
import time
from statistics import median
from typing import Any

import numpy as np

from lab.speed.data import RESULTS, coco66k_labels
from rmsh.codes import Codes, hamming
from rmsh.core.files import write_json
from rmsh.metrics.evaluate import evaluate

BITS = 64
DIRECTIONS = 2
ROUNDS = 3
SAMPLE = 50  # queries that numpy scores in a round


def main(arguments: argparse.Namespace) -> None:  # noqa: ARG001
    """Measure both in turns, compare their scores, write the JSON and print a line."""
    opened = coco66k_labels()
    split, labels = opened.split, np.asarray(opened.pairs.labels)
    assert split is not None  # noqa: S101  # coco66k has one
    rng = np.random.default_rng(0)
    query, database = (Codes.from_values(rng.normal(size=(len(rows), BITS))) for rows in (split.query, split.database))
    asked, found = labels[split.query], labels[split.database]
    few = query.take(np.arange(SAMPLE))
    sample = evaluate(few, database, asked[:SAMPLE], found)  # compiles
    ours, theirs, plain = [], [], np.empty(0)
    for _ in range(ROUNDS):
        start = time.perf_counter()
        evaluate(query, database, asked, found)
        ours.append((time.perf_counter() - start) * DIRECTIONS)
        start = time.perf_counter()
        scores = [plain_scores(few.packed[i], database.packed, asked[i], found) for i in range(SAMPLE)]
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
    write_json(RESULTS / "evaluation_speed.json", result)
    print(
        f"both directions of coco66k: {result['seconds']:.2f} s, numpy {result['numpy_seconds']:.1f} s, "
        f"{result['times_faster']:.0f} times; peak memory {result['peak_memory_mb']} MB; NDCG@500 and mAP of {SAMPLE} "
        f"queries {result['sample']['ours']}, numpy {result['sample']['numpy']}"
    )


def plain_scores(query: Any, database: Any, wanted: Any, labels: Any, k: int = 500) -> tuple[float, float, Any]:
    """NDCG@k, AP and the precision-recall curve of one query as most evaluation code does it: sort, then sum."""
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
