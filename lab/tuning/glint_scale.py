"""GLINT from ten thousand to a million pairs and from 80 to 1,000 classes, made up: time, memory, and that it learns.

Labels are drawn, a few an item, frequent and rare ones; a modality's features are a mixture of its own of the labels,
with noise. One epoch a stage is measured: a training of sixteen takes so many times longer and needs no more memory.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.speed.data import RESULTS
from lab.speed.tables import markdown
from rmsh.compare.provenance import forget_peak_memory, machine, peak_memory_mb
from rmsh.core.files import write_json
from rmsh.data.pairs import Pairs
from rmsh.methods import create
from rmsh.metrics.evaluate import evaluate

if TYPE_CHECKING:
    from rmsh.core.types import FloatArray, LabelArray

SIZES = ((10_000, 80), (100_000, 80), (100_000, 1000), (1_000_000, 80))  # pairs and classes
WIDTHS = {"image": 256, "text": 128}
QUERIES = 1000


def main(arguments: argparse.Namespace) -> None:
    """Measure every size, write the results and print the table."""
    measured = [measure(items, classes, seed=arguments.seed) for items, classes in SIZES]
    write_json(RESULTS / "glint_scale.json", {"machine": machine(), "measured": measured})
    columns = ["pairs", "classes", "CPU seconds an epoch of both stages", "peak memory, MB", "NDCG@500", "chance"]
    print(markdown("GLINT, one epoch a stage, 64 bits, made-up pairs", columns, [_row(one) for one in measured]))


def measure(items: int, classes: int, *, seed: int) -> dict[str, Any]:
    """Learn from so many pairs; others ask among the first hundred thousand of them."""
    pairs = make_up(items + QUERIES, classes, seed=seed)
    train, query = pairs.take(np.arange(items)), pairs.take(np.arange(items, items + QUERIES))
    database = train.take(np.arange(min(items, 100_000)))
    forget_peak_memory()
    method, start = create("glint", bits=64, epochs=1), time.process_time()
    method.fit(train)
    seconds, memory = time.process_time() - start, peak_memory_mb()
    codes = method.encode(query.features("image"), "image"), method.encode(database.features("text"), "text")
    scores = evaluate(*codes, np.asarray(query.labels), np.asarray(database.labels))
    return {
        "pairs": items,
        "classes": classes,
        "cpu_seconds": round(seconds, 1),
        "peak_memory_mb": memory,
        "ndcg@500": {"value": round(scores.ndcg.value, 4), "chance": round(scores.ndcg.chance, 4)},
    }


def make_up(items: int, classes: int, *, seed: int) -> Pairs:
    """Pairs whose features tell their labels, with noise."""
    rng = np.random.default_rng(seed)
    labels = _labels(items, classes, rng)
    images, texts = (_mixture(labels, width, rng) for width in WIDTHS.values())
    return Pairs(np.arange(items).astype(str), images, texts, labels)


def _labels(items: int, classes: int, rng: np.random.Generator) -> LabelArray:
    """One to four labels an item, the first class a hundred times as frequent as the hundredth."""
    share = 1 / np.arange(1, classes + 1)
    drawn = rng.choice(classes, (items, 4), p=share / share.sum())
    drawn = np.where(np.arange(4) <= rng.integers(0, 4, (items, 1)), drawn, drawn[:, :1])
    labels = np.zeros((items, classes), np.uint8)
    labels[np.arange(items)[:, None], drawn] = 1
    return labels


def _mixture(labels: LabelArray, width: int, rng: np.random.Generator) -> FloatArray:
    directions = rng.standard_normal((labels.shape[1], width), dtype=np.float32)
    features = rng.standard_normal((len(labels), width), dtype=np.float32)
    for start in range(0, len(labels), 50_000):
        rows = slice(start, start + 50_000)
        features[rows] += labels[rows].astype(np.float32) @ directions
    return features


def _row(one: dict[str, Any]) -> list[str]:
    score = one["ndcg@500"]
    return [
        f"{one['pairs']:,}",
        f"{one['classes']:,}",
        f"{one['cpu_seconds']:g}",
        f"{one['peak_memory_mb']:,}",
        f"{score['value']:.3f}",
        f"{score['chance']:.3f}",
    ]
