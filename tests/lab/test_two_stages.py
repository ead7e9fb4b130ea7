"""Two stages beside exhaustive search: rankings, scores and bytes of a hand-worked case and of a small model."""

from __future__ import annotations

import numpy as np

from lab.speed.two_stages import COUNTS, best, best_gains, measure, score, table_text
from rmsh.data.pairs import Pairs
from rmsh.hash_function import HashFunction, JointLayer, Layer
from rmsh.model import Model


def test_the_own_counterpart_counts_for_recall_alone() -> None:
    shared = np.zeros((1, 20), np.int64)
    shared[0, [3, 7]] = 2, 1  # row 3 is the counterpart; only row 7 is relevant besides
    places = np.array([[3, 0, 7, *range(10, 18)]])
    own, ideal = np.array([3]), best_gains(np.array([3]), shared)
    assert ideal.tolist() == [1.0]
    assert score(places, own, shared, ideal).T.tolist() == [[1 / np.log2(3), 1.0]]
    assert score(places[:, ::-1], own, shared, ideal)[1, 0] == 0  # in place 11
    alone = shared * (np.arange(20) == 7)
    assert np.isnan(score(places, np.array([7]), alone, best_gains(np.array([7]), alone))[0, 0])


def test_the_most_similar_rows_come_first() -> None:
    similarities = np.random.default_rng(0).standard_normal((3, 40)).astype(np.float32)
    rows = np.tile(np.arange(40) + 100, (3, 1))
    assert np.array_equal(best(similarities, rows), np.argsort(-similarities, axis=1)[:, :11] + 100)


def test_as_many_candidates_as_items_find_what_exhaustive_search_finds() -> None:
    rng = np.random.default_rng(0)
    joint = JointLayer(np.eye(16, dtype=np.float32), np.zeros(16, np.float32), np.zeros(1, np.float32))
    bits = Layer(rng.standard_normal((16, 64)).astype(np.float32), np.zeros(64, np.float32), "none")
    function = HashFunction((joint, bits))
    images = rng.standard_normal((max(COUNTS), 16)).astype(np.float32)
    texts = images + 0.4 * rng.standard_normal(images.shape).astype(np.float32)
    labels = np.eye(5, dtype=np.uint8)[rng.integers(0, 5, len(images))]
    pairs = Pairs(np.arange(len(images)).astype(str), images, texts, labels, tuple("abcde"))
    model = Model({"image": function, "text": function}, "nest", {})
    found = measure(model, pairs, np.arange(0, 1000, 40), source="text", target="image")
    rows = {(row["bits"], row["candidates"]): row for row in found["two stages"]}
    assert found["dimensions"] == 16
    assert abs(rows[64, 1000]["recall@10"] - found["exhaustive"]["recall@10"]) < 0.05  # one byte per dimension
    assert rows[32, 50]["recall@10"] <= rows[32, 1000]["recall@10"]
    assert rows[64, 500]["bytes"] == round((8 + 500 * 16 / 1000) / 64, 5)
    assert table_text({"t2i": found, "i2t": found}).count("\n") == 2 * (1 + 2 * len(COUNTS))
