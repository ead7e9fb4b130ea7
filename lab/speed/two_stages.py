"""Two stages beside exhaustive search: how many candidates by code are enough, and how many bits find them.

Queries are the held-out pairs of coco66k, in both directions, against all of its pairs. Exhaustive search compares a
query with the float vectors of all items. Two stages compare it with the codes, or with their first bits, and then with
the vectors of the nearest candidates in one byte per dimension, as a library stores them. The model is the twin of the
wheel's model, which was trained without the queries.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from lab.console import Tables  # noqa: TC001  # typer reads it
from lab.data import RESULTS, coco66k, write_measurement
from lab.wheel_model import TWIN, lengths
from rmsh.codes import from_int8
from rmsh.core.files import read_json
from rmsh.index.scan import Scan
from rmsh.metrics.histogram import gains, shared_labels
from rmsh.model import load
from rmsh.pipeline import DEFAULT_ENCODERS, codes_of

if TYPE_CHECKING:
    from rmsh.core.types import FloatArray, IntArray, Modality, ScoreArray
    from rmsh.data.pairs import Pairs
    from rmsh.model import Model

COUNTS = (50, 100, 200, 300, 500, 1000)
RANK = 10
NAME = "speed/two_stages"
_BLOCK = 64  # queries at a time
_DISCOUNT = 1 / np.log2(2 + np.arange(RANK))


def main(
    *,
    model: Annotated[Path, typer.Option(help="Model folder.")] = TWIN,
    queries: Annotated[int | None, typer.Option(min=1, help="Number of queries, drawn at random; all if none.")] = None,
    tables: Tables = False,
) -> None:
    """Measure both directions, write the result and print a table."""
    if not tables:
        opened, loaded = coco66k(DEFAULT_ENCODERS["text"]), load(model)
        assert opened.split is not None  # noqa: S101  # coco66k has one
        query = np.sort(np.random.default_rng(0).permutation(opened.split.query)[:queries])
        result: dict[str, Any] = {"model": loaded.fingerprint, "items": len(opened.pairs), "queries": len(query)}
        result["t2i"] = measure(loaded, opened.pairs, query, source="text", target="image")
        result["i2t"] = measure(loaded, opened.pairs, query, source="image", target="text")
        write_measurement(NAME, result)
    print(table_text(read_json(RESULTS / f"{NAME}.json")))


def table_text(result: dict[str, Any]) -> str:
    """One line per direction, number of bits and number of candidates."""
    lines = [f"{'':4} {'bits':>4} {'candidates':>10} {'NDCG@10':>8} {'of all':>7} {'recall@10':>9} {'bytes':>7}"]
    for direction in ("t2i", "i2t"):
        exact = result[direction]["exhaustive"]
        lines.append(f"{direction:4} {'':4} {'all':>10} {exact['ndcg@10']:8.4f} {'':7} {exact['recall@10']:9.4f}")
        lines += [
            f"{direction:4} {row['bits']:4} {row['candidates']:10,} {row['ndcg@10']:8.4f} "
            f"{row['ndcg@10'] / exact['ndcg@10']:7.1%} {row['recall@10']:9.4f} {row['bytes']:7.2%}"
            for row in result[direction]["two stages"]
        ]
    return "\n".join(lines)


def measure(model: Model, pairs: Pairs, query: IntArray, *, source: Modality, target: Modality) -> dict[str, Any]:
    """Scores of exhaustive search and of two stages, and the share of its bytes that two stages read."""
    codes, labels = codes_of(model, pairs, vectors=True), np.asarray(pairs.labels)
    stored = codes[target].vectors
    assert stored is not None  # noqa: S101  # the model has a joint space
    exact = _unit(model.embed(pairs.features(target), target))
    coarse = _unit(model.joint(from_int8(stored), target))
    vectors = _unit(model.embed(pairs.features(source)[query], source))
    indexes = {bits: Scan.over(codes[target].prefix(bits).words(), bits) for bits in lengths(model)}
    asked = {bits: codes[source].take(query).prefix(bits) for bits in indexes}
    scores: dict[tuple[int, int], list[ScoreArray]] = {}
    for rows in np.array_split(np.arange(len(query)), -(-len(query) // _BLOCK)):
        everything = np.tile(np.arange(len(pairs)), (len(rows), 1))
        ranked = {(0, 0): best(vectors[rows] @ exact.T, everything)}
        for bits, index in indexes.items():
            near = index.search(asked[bits].take(rows), max(COUNTS)).rows
            similarities = np.matmul(coarse[near], vectors[rows][:, :, None])[:, :, 0]
            ranked |= {(bits, count): best(similarities[:, :count], near[:, :count]) for count in COUNTS}
        shared = shared_labels(labels[query[rows]], labels)
        ideal = best_gains(query[rows], shared)
        for way, places in ranked.items():
            scores.setdefault(way, []).append(score(places, query[rows], shared, ideal))
    means = {way: np.nanmean(np.concatenate(found, axis=1), axis=1).round(4) for way, found in scores.items()}
    named = {way: {"ndcg@10": float(mean[0]), "recall@10": float(mean[1])} for way, mean in means.items()}
    stored_bytes, exact_bytes = stored.shape[1], 4 * exact.shape[1]  # per vector
    shares = {way: (way[0] / 8 + way[1] * stored_bytes / len(pairs)) / exact_bytes for way in means}
    return {
        "dimensions": exact.shape[1],
        "exhaustive": named.pop((0, 0)),
        "two stages": [
            {"bits": bits, "candidates": count, **values, "bytes": round(shares[bits, count], 5)}
            for (bits, count), values in named.items()
        ],
    }


def _unit(vectors: FloatArray) -> FloatArray:
    unit: FloatArray = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
    return unit


def best(similarities: FloatArray, rows: IntArray) -> IntArray:
    """The most similar of some rows (Q, n): one more than RANK, because one may be the query's own counterpart."""
    found = np.argpartition(-similarities, RANK, axis=1)[:, : RANK + 1]
    order = np.argsort(-np.take_along_axis(similarities, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(rows, np.take_along_axis(found, order, axis=1), axis=1)


def best_gains(own: IntArray, shared: IntArray) -> ScoreArray:
    """The DCG@10 of the best ranking of all rows but the own counterparts; the arguments are those of ``score``."""
    others = shared.copy()
    others[np.arange(len(own)), own] = 0
    gain = gains(int(shared.max()))[-np.partition(-others, RANK, axis=1)[:, : RANK + 1]]
    best_first: ScoreArray = -np.sort(-gain)[:, :RANK] @ _DISCOUNT
    return best_first


def score(places: IntArray, own: IntArray, shared: IntArray, ideal: ScoreArray) -> ScoreArray:
    """NDCG@10 without the own counterparts (NaN if nothing is relevant), and whether these are among the first 10.

    Args:
        places: the first rows of each ranking, (Q, RANK + 1).
        own: row of each query's counterpart, (Q,).
        shared: number of labels that each query shares with each row, (Q, n).
        ideal: from ``best_gains``, (Q,).
    """
    is_own, gain = places == own[:, None], gains(int(shared.max()))
    others = np.take_along_axis(places, np.argsort(is_own, axis=1, kind="stable"), axis=1)[:, :RANK]
    with np.errstate(invalid="ignore"):
        ndcg = gain[np.take_along_axis(shared, others, axis=1)] @ _DISCOUNT / ideal
    return np.stack([ndcg, is_own[:, :RANK].any(axis=1)])
