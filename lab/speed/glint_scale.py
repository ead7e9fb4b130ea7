"""Training time and memory of GLINT for 10,000 to 1,000,000 generated pairs and 80 to 1,000 classes.

Items have a few frequent or rare labels; the features of each modality are a noisy linear mixture of the labels. One
epoch per stage is measured: sixteen epochs take sixteen times as long and need no more memory.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lab.console import Seed  # noqa: TC001  # typer reads them
from lab.data import write_measurement
from rmsh.compare.provenance import forget_peak_memory, machine, peak_memory_mb
from rmsh.data.pairs import Pairs
from rmsh.methods import create
from rmsh.metrics.evaluate import evaluate

if TYPE_CHECKING:
    from rmsh.core.types import FloatArray, LabelArray

SIZES = ((10_000, 80), (100_000, 80), (100_000, 1000), (1_000_000, 80))  # pairs and classes
WIDTHS = {"image": 256, "text": 128}
QUERIES = 1000


def main(*, seed: Seed = 0) -> None:
    """Measure every size, write the result and print the table."""
    measured = [measure(items, classes, seed=seed) for items, classes in SIZES]
    write_measurement("speed/glint_scale", {"machine": machine(), "measured": measured})
    print(pd.json_normalize(measured).to_string(index=False))


def measure(items: int, classes: int, *, seed: int) -> dict[str, Any]:
    """Train on so many pairs; other items are the queries, the first 100,000 training pairs the database."""
    pairs = generate(items + QUERIES, classes, seed=seed)
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


def generate(items: int, classes: int, *, seed: int) -> Pairs:
    """Pairs whose features are a noisy function of their labels."""
    rng = np.random.default_rng(seed)
    labels = _labels(items, classes, rng)
    images, texts = (_mixture(labels, width, rng) for width in WIDTHS.values())
    return Pairs(np.arange(items).astype(str), images, texts, labels)


def _labels(items: int, classes: int, rng: np.random.Generator) -> LabelArray:
    """One to four labels per item; the first class is a hundred times as frequent as the hundredth."""
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
