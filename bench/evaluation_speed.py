"""Evaluation speed: the whole coco66k protocol against a plain numpy version, and the memory it needs.

Codes are random: the work is the same, and no model is needed. Numpy scores a sample of the queries and is scaled up.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np

from bench.data import RESULTS, coco66k
from rmsh.codes import Codes, hamming
from rmsh.files import write_json
from rmsh.metrics.report import evaluate

BITS = 64
SAMPLE = 100


def main(arguments: argparse.Namespace) -> None:  # noqa: ARG001
    """Measure both, compare their scores, write the JSON and print the table."""
    opened = coco66k("bag-of-words")
    split, labels = opened.split, np.asarray(opened.pairs.labels)
    assert split is not None  # noqa: S101  # coco66k has one
    rng = np.random.default_rng(0)
    query, database = (Codes.from_values(rng.normal(size=(len(rows), BITS))) for rows in (split.query, split.database))
    asked, found = labels[split.query], labels[split.database]
    evaluate(query.take(np.arange(8)), database, asked[:8], found)  # compiles
    before = _memory()
    start = time.perf_counter()
    scores = [evaluate(query, database, asked, found) for _ in ("i2t", "t2i")]
    ours = time.perf_counter() - start
    start = time.perf_counter()
    plain = np.mean([plain_scores(query.packed[i], database.packed, asked[i], found) for i in range(SAMPLE)], axis=0)
    theirs = (time.perf_counter() - start) / SAMPLE * len(query) * 2
    sample = evaluate(query.take(np.arange(SAMPLE)), database, asked[:SAMPLE], found)
    result: dict[str, Any] = {
        "queries": len(query),
        "database": len(database),
        "bits": BITS,
        "directions": 2,
        "seconds": ours,
        "numpy_seconds": theirs,
        "times_faster": theirs / ours,
        "peak_memory_mb": _memory(),
        "memory_before_mb": before,
        "ndcg": scores[0].ndcg.value,
        "sample": {"ours": [sample.ndcg.value, sample.map.value], "numpy": plain.tolist()},
    }
    write_json(RESULTS / "evaluation_speed.json", result)
    print(
        f"ours {ours:.2f} s, numpy {theirs:.1f} s: {theirs / ours:.0f} times; peak memory {result['peak_memory_mb']} MB"
    )
    print(
        f"first {SAMPLE} queries, NDCG@500 and mAP: ours {result['sample']['ours']}, numpy {result['sample']['numpy']}"
    )


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def plain_scores(query: Any, database: Any, wanted: Any, labels: Any, k: int = 500) -> tuple[float, float]:
    """NDCG@k, mAP and the precision-recall curve of one query as most evaluation code does it: sort, then sum."""
    distance = hamming(query[None], database)[0]
    shared = labels @ wanted
    order = np.argsort(distance, kind="stable")
    gains = 2.0 ** shared[order] - 1
    discount = 1 / np.log2(2 + np.arange(k))
    ndcg = (gains[:k] * discount).sum() / (np.sort(gains)[::-1][:k] * discount).sum()
    relevant = gains > 0
    hits = np.cumsum(relevant)
    precision, recall = hits / np.arange(1, len(hits) + 1), hits / hits[-1]
    curve = np.interp(np.linspace(0, 1, 65), recall, precision)
    return float(ndcg), float(precision[relevant].mean() + 0 * curve[0])
