"""Codes without training at equal bytes per item: sign bits, RaBitQ and product quantisation, each also rescored.

Queries are the held-out pairs of coco66k, ranked among themselves (protocol "unseen"), in both directions. All ways
share one space: canonical correlation of the training pairs, each modality centred by its own mean, dimensions weighted
by their correlations, vectors of unit length. Each way replaces an item by a vector that its bytes describe, and ranks
by the dot product with the query; items with equal scores are in random order. Factors that are stored with an item
count as its bytes; codebooks, rotations and means are shared by all items, and do not count. Rescoring compares the 100
best items again, in 256 dimensions of one byte each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lab.console import Tables  # noqa: TC001  # typer reads it
from lab.data import RESULTS, coco66k, write_measurement
from lab.speed.two_stages import best, best_gains, score
from rmsh.core.files import read_json
from rmsh.core.types import MODALITIES
from rmsh.methods.cca_itq import CCAITQ, canonical_correlation
from rmsh.metrics.histogram import shared_labels
from rmsh.pipeline import DEFAULT_ENCODERS, for_protocol
from rmsh.training.closed_form import Centred, cross_products, procrustes, ridge

if TYPE_CHECKING:
    from rmsh.core.types import FloatArray, IntArray, LabelArray, ScoreArray
    from rmsh.data.pairs import Pairs

NAME = "tuning/equal_bytes"
BYTES = (2, 4, 8, 16, 32)
DIMENSIONS = 256
CANDIDATES = 100
EPSILON = 1.9  # of the error bound of RaBitQ, as its authors choose it
_FACTOR_BYTES = 2  # a float16 per item
_RIDGE = 1e-2
_BLOCK = 64  # queries at a time
_SAMPLE = 16_384  # training vectors of a product quantiser: 64 per centroid


class Way(NamedTuple):
    """A way to describe items in a few bytes; the score of an item is the dot product of both vectors."""

    name: str
    size: int  # bytes per item
    queries: FloatArray
    items: FloatArray


def main(*, tables: Tables = False) -> None:
    """Measure all ways at all sizes, write the result and print a table."""
    if not tables:
        opened = for_protocol(coco66k(DEFAULT_ENCODERS["text"]), "unseen")
        assert opened.split is not None  # noqa: S101  # coco66k has one
        train, query = opened.pairs.take(opened.split.train), opened.pairs.take(opened.split.query)
        write_measurement(NAME, {"items": len(query), "dimensions": DIMENSIONS, **measure(train, query)})
    print(table_text(read_json(RESULTS / f"{NAME}.json")))


def table_text(result: dict[str, Any]) -> str:
    """One line per way and number of bytes."""
    lines = [f"{'':32} {'bytes':>6} {'NDCG@10':>17} {'recall@10':>17} {'bytes':>6} {'rescored: NDCG@10':>17} recall@10"]
    for row in result["rows"]:
        cells = [f"{row[way]['bytes']:6} {_both(row[way], 'ndcg@10')} {_both(row[way], 'recall@10')}" for way in _WAYS]
        lines.append(f"{row['name']:32} {' '.join(cells)}")
    return "\n".join(lines)


_WAYS = ("plain", "rescored")


def _both(scores: dict[str, Any], metric: str) -> str:
    return f"{scores['i2t'][metric]:8.3f} /{scores['t2i'][metric]:7.3f}"


def measure(train: Pairs, query: Pairs) -> dict[str, Any]:
    """The scores of all ways, plain and rescored, by direction."""
    labels, rows = np.asarray(query.labels), dict[tuple[str, int], Any]()
    trained, vectors = common_space(train, query)
    for direction, (one, other) in {"i2t": (0, 1), "t2i": (1, 0)}.items():
        exact = vectors[one]
        coarse = Int8.fit(trained[other]).round_trip(vectors[other])
        for way in ways(train, query, trained, vectors, one, other):
            plain = ranked_scores(way.queries, way.items, labels)
            rescored = ranked_scores(way.queries, way.items, labels, again=(exact, coarse))
            row = rows.setdefault((way.name, way.size), {"name": way.name})
            row.setdefault("plain", {"bytes": way.size})[direction] = plain
            row.setdefault("rescored", {"bytes": way.size + DIMENSIONS})[direction] = rescored
    return {"candidates": CANDIDATES, "rows": list(rows.values())}


def common_space(train: Pairs, query: Pairs) -> tuple[list[FloatArray], list[FloatArray]]:
    """Unit vectors of the images and the texts of both, most correlated dimensions first."""
    sides = [Centred.of(train.features(m)) for m in MODALITIES]
    xx, yy = (ridge(cross_products(side, side) / len(side), _RIDGE) for side in sides)
    found = canonical_correlation(xx, yy, cross_products(*sides) / len(train))
    maps = [(each * found.correlations)[:, :DIMENSIONS] for each in (found.x, found.y)]
    functions = {m: side.linear_hash(each) for m, side, each in zip(MODALITIES, sides, maps, strict=True)}
    trained, vectors = ([unit(functions[m](pairs.features(m))) for m in MODALITIES] for pairs in (train, query))
    return trained, vectors


def unit(vectors: FloatArray) -> FloatArray:
    """The vectors with length 1."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), np.float32)


def ways(
    train: Pairs, query: Pairs, trained: list[FloatArray], vectors: list[FloatArray], one: int, other: int
) -> Iterator[Way]:
    """All ways to search items of modality ``other`` with queries of modality ``one``."""
    yield Way("float32", 4 * DIMENSIONS, vectors[one], vectors[other])
    for size in BYTES:
        bits = 8 * size
        directions = random_rotation(bits)
        q, x = (vectors[side][:, :bits] @ directions for side in (one, other))
        yield Way("random rotation", size, signs(q), signs(x))
        yield Way("random rotation, float query", size, q, signs(x))
        itq = CCAITQ(bits=bits).fit(train)
        q, x = (itq.project(query.features(MODALITIES[side]), MODALITIES[side]) for side in (one, other))
        yield Way("CCA-ITQ", size, signs(q), signs(x))
        yield Way("CCA-ITQ, float query", size, q, signs(x))
        rest = bits - 8 * _FACTOR_BYTES
        if rest > 0:
            q, x = (vectors[side][:, :rest] @ random_rotation(rest) for side in (one, other))
            yield Way("RaBitQ 1 bit, 4-bit query", size, four_bits(q), rabitq(x))
        for kind in (f"PQ{size}", f"OPQ{size}_{max(64, 2 * size)},PQ{size}"):
            items = product_quantised(kind, trained[other], vectors[other])
            yield Way("OPQ" if "OPQ" in kind else "PQ", size, vectors[one], items)


def random_rotation(bits: int) -> FloatArray:
    """An orthogonal matrix (bits, bits)."""
    return procrustes(np.random.default_rng(0).standard_normal((bits, bits))).astype(np.float32)


def signs(values: FloatArray) -> FloatArray:
    """-1 or 1, and 1 for 0."""
    return np.where(values >= 0, np.float32(1), np.float32(-1))


def cosine_estimate(distance: int, bits: int) -> float:
    """The cosine of two vectors whose randomly rotated signs differ in ``distance`` of ``bits``."""
    return float(np.cos(np.pi * distance / bits))


def rabitq(vectors: FloatArray) -> FloatArray:
    """What RaBitQ stores of rotated and centred vectors (n, d): signs, times the factor that makes estimates unbiased.

    With o a vector and s = sgn(o) / sqrt d, it estimates <o, q> by |o| <s, q> / x0, x0 = <s, o> / |o|.
    """
    squares, sums = np.square(vectors).sum(axis=1, keepdims=True), np.abs(vectors).sum(axis=1, keepdims=True)
    factors = (squares / np.maximum(sums, 1e-12)).astype(np.float16)  # |o| / (x0 sqrt d)
    stored: FloatArray = signs(vectors) * factors.astype(np.float32)
    return stored


def rabitq_bound(vector: FloatArray, query: FloatArray) -> float:
    """The error of the estimate of RaBitQ that is exceeded with small probability."""
    x0 = np.abs(vector).sum() / (np.sqrt(len(vector)) * np.linalg.norm(vector))
    spread = np.sqrt((1 - x0**2) / x0**2) * EPSILON / np.sqrt(len(vector) - 1)
    return float(np.linalg.norm(vector) * np.linalg.norm(query) * spread)


def four_bits(queries: FloatArray) -> FloatArray:
    """Queries (n, d) with 16 levels between the smallest and the largest value of each."""
    low, high = queries.min(axis=1, keepdims=True), queries.max(axis=1, keepdims=True)
    step = np.maximum((high - low) / 15, 1e-12)
    return np.asarray(low + step * np.floor((queries - low) / step + 0.5), np.float32)


def product_quantised(kind: str, trained: FloatArray, vectors: FloatArray) -> FloatArray:
    """What a product quantiser of faiss, trained on vectors of the same modality, keeps of the vectors."""
    import faiss

    index = faiss.index_factory(vectors.shape[1], kind, faiss.METRIC_INNER_PRODUCT)
    index.train(np.random.default_rng(0).permutation(trained)[:_SAMPLE])
    return np.asarray(index.sa_decode(index.sa_encode(vectors)), np.float32)


class Int8(NamedTuple):
    """One byte per dimension: evenly spaced levels between the extremes of a sample."""

    low: FloatArray  # (d,)
    step: FloatArray  # (d,)

    @classmethod
    def fit(cls, sample: FloatArray) -> Int8:
        """The levels for vectors like those of a sample (n, d)."""
        low, high = sample.min(axis=0), sample.max(axis=0)
        return cls(low, np.maximum((high - low) / 255, 1e-12))

    def codes(self, vectors: FloatArray) -> IntArray:
        """The levels, -128 to 127, (n, d)."""
        levels: IntArray = np.clip(np.rint((vectors - self.low) / self.step) - 128, -128, 127).astype(np.int64)
        return levels

    def round_trip(self, vectors: FloatArray) -> FloatArray:
        """The values of the levels; steps differ by dimension, so scores of the levels themselves would weight them."""
        return np.asarray(self.low + (self.codes(vectors) + 128) * self.step, np.float32)


def ranked_scores(
    queries: FloatArray,
    items: FloatArray,
    labels: LabelArray,
    *,
    again: tuple[FloatArray, FloatArray] | None = None,
) -> dict[str, float]:
    """NDCG@10 and recall@10 of the ranking by dot products; row i of queries and items is the same pair.

    ``again`` has the vectors of queries and items that the best candidates are compared by once more.
    """
    rng, found = np.random.default_rng(0), []
    for rows in np.array_split(np.arange(len(queries)), -(-len(queries) // _BLOCK)):
        similarities = queries[rows] @ items.T
        similarities += rng.random(similarities.shape, np.float32) * (1e-5 * similarities.std() + 1e-12)
        near = np.tile(np.arange(len(items)), (len(rows), 1))
        if again is not None:
            near = np.argpartition(-similarities, CANDIDATES, axis=1)[:, :CANDIDATES]
            similarities = np.matmul(again[1][near], again[0][rows][:, :, None])[:, :, 0]
        shared = shared_labels(labels[rows], labels)
        found.append(score(best(similarities, near), rows, shared, best_gains(rows, shared)))
    means: ScoreArray = np.nanmean(np.concatenate(found, axis=1), axis=1)
    return {"ndcg@10": round(float(means[0]), 4), "recall@10": round(float(means[1]), 4)}
