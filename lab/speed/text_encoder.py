"""What the 8-bit copy of MiniLM, which encodes queries, saves and costs beside the network itself.

Times are of one text after another in one thread, both networks in turn. Recall is that of the held-out captions of
coco66k, searched with among the codes of their images, by a twin of the bundled model that has seen neither.
"""

from __future__ import annotations

import time
from itertools import islice
from typing import Annotated, Any

import numpy as np
import typer

from lab.data import coco66k, coco66k_place, write_measurement
from lab.speed.latency import queries
from lab.wheel_model import TWIN
from rmsh.core.errors import DataError
from rmsh.data.open import open_pairs
from rmsh.features.minilm import MiniLM
from rmsh.metrics.counterparts import rank_codes, recall_score
from rmsh.model import load

NAME = "speed/text_encoder"
_WARM_UP = 20  # texts


def main(
    *,
    texts: Annotated[int, typer.Option(min=100, help="Number of texts to time.")] = 2000,
    captions: Annotated[int, typer.Option(min=100, help="Number of captions to search with.")] = 4956,
) -> None:
    """Measure, write the result and print it."""
    if not (TWIN / "config.json").exists():
        raise DataError('There is no twin of the bundled model; run make lab ARGS="wheel-model" first.')
    encoder = MiniLM()
    result = {**compare_times(encoder, list(islice(queries(), texts))), "recall@10": recall(encoder, captions)}
    write_measurement(NAME, result)
    print(result)


def compare_times(encoder: MiniLM, texts: list[str]) -> dict[str, Any]:
    """Median milliseconds per text of both networks, their ratio, and the cosines between their vectors."""
    ways = {"float": encoder.encode, "8 bit": encoder.encode_queries}
    spent, vectors = {name: list[float]() for name in ways}, {name: list[Any]() for name in ways}
    for number, text in enumerate([*texts[:_WARM_UP], *texts]):
        for name, encode in ways.items():
            start = time.perf_counter()
            vector = encode([text])[0]
            if number >= _WARM_UP:
                spent[name].append(time.perf_counter() - start)
                vectors[name].append(vector)
    cosines = (np.array(vectors["float"]) * np.array(vectors["8 bit"])).sum(axis=1)
    median = {name: float(np.median(times)) * 1e3 for name, times in spent.items()}
    return {
        "texts": len(texts),
        "ms": {name: round(value, 3) for name, value in median.items()},
        "times as fast": round(median["float"] / median["8 bit"], 2),
        "cosine": {"mean": round(float(cosines.mean()), 4), "least": round(float(cosines.min()), 4)},
    }


def recall(encoder: MiniLM, count: int) -> dict[str, float]:
    """Share of held-out captions whose image is among the ten nearest codes, with either network."""
    opened, raw = coco66k("minilm"), np.asarray(open_pairs(coco66k_place()).pairs.texts)
    if opened.split is None:
        raise DataError("coco66k has no split.")
    rows, model = opened.split.query[:count], load(TWIN)
    held_out = opened.pairs.take(rows)
    fast = encoder.encode_queries(raw[rows].tolist())
    images, ways = model.encode(held_out.images, "image"), {"float": np.asarray(held_out.texts), "8 bit": fast}
    return {
        name: round(recall_score(rank_codes(model.encode(features, "text"), images), 10).value, 4)
        for name, features in ways.items()
    }
