"""Ways to describe items in a few bytes: estimates worked out by hand, faiss's RaBitQ, and a small run of all."""

from __future__ import annotations

import numpy as np
import pytest

from lab import equal_bytes
from lab.equal_bytes import (
    Int8,
    cosine_estimate,
    four_bits,
    measure,
    rabitq,
    rabitq_bound,
    random_rotation,
    ranked_scores,
    table_text,
    unit,
)
from rmsh.codes import Codes
from rmsh.data.synthetic.generated import generate_pairs

ITEM, QUERY = np.array([[0.5, -0.1, 0.3, 0.8]], np.float32), np.array([[0.6, 0.2, -0.1, 0.7]], np.float32)


def test_sign_bits_estimate_the_angle() -> None:
    one, two = (np.unpackbits(Codes.from_values(values).packed) for values in (ITEM, QUERY))
    distance = int((one != two).sum())
    assert distance == 2
    assert cosine_estimate(distance, 4) == pytest.approx(0)
    x, y = np.random.default_rng(1).standard_normal((2, 1, 256))
    bits = (np.concatenate([x, y]) @ random_rotation(256)) >= 0
    cosine = (x @ y.T).item() / np.linalg.norm(x) / np.linalg.norm(y)
    assert cosine_estimate(int((bits[0] != bits[1]).sum()), 256) == pytest.approx(cosine, abs=0.15)


def test_rabitq_estimates_the_inner_product_within_its_bound() -> None:
    estimate, exact = (rabitq(ITEM) @ QUERY.T).item(), (ITEM @ QUERY.T).item()
    assert estimate == pytest.approx(0.582353, abs=2e-4)  # the factor has 16 bits
    assert exact == pytest.approx(0.81)
    assert rabitq_bound(ITEM[0], QUERY[0]) == pytest.approx(0.630050, abs=1e-6)
    assert abs(estimate - exact) < rabitq_bound(ITEM[0], QUERY[0])


def test_a_query_of_four_bits_has_sixteen_levels() -> None:
    levels = (four_bits(QUERY) + 0.1) / (0.8 / 15)
    np.testing.assert_allclose(levels, [[13, 6, 0, 15]], atol=1e-4)
    assert (rabitq(ITEM) @ four_bits(QUERY).T).item() == pytest.approx(0.566824, abs=2e-4)


def test_rabitq_agrees_with_faiss() -> None:
    faiss = pytest.importorskip("faiss")
    rng = np.random.default_rng(0)
    x, q = rng.standard_normal((200, 64), np.float32), rng.standard_normal((5, 64), np.float32)
    index = faiss.IndexRaBitQ(64, faiss.METRIC_L2)
    index.qb = 0
    index.train(x)
    index.add(x)
    distances, rows = index.search(q, 200)
    o, p = x - x.mean(axis=0), q - x.mean(axis=0)
    ours = np.square(o).sum(axis=1) + np.square(p).sum(axis=1)[:, None] - 2 * p @ rabitq(o).T
    np.testing.assert_allclose(np.take_along_axis(ours, rows, axis=1), distances, rtol=2e-3)


def test_levels_of_one_byte_are_rounded_and_scored_by_their_values() -> None:
    vectors, query = np.array([[0, -1], [1, 0.5], [0.25, 0]]), np.array([0.9, 0.3])
    levels = Int8.fit(vectors)
    codes = levels.codes(vectors)
    assert codes.tolist() == [[-128, -128], [127, 127], [-64, 42]]
    assert (codes @ query).tolist() == pytest.approx([-153.6, 152.4, -45.0])
    assert (levels.round_trip(vectors) @ query).tolist() == pytest.approx([-0.3, 1.05, 0.225882], abs=1e-6)


def test_levels_beyond_the_sample_are_clipped_and_a_constant_dimension_is_kept() -> None:
    levels = Int8.fit(np.array([[0.0, 2.0], [1.0, 2.0]]))
    assert levels.codes(np.array([[9.0, 2.0], [-9.0, 2.0]]))[:, 0].tolist() == [127, -128]
    assert levels.round_trip(np.array([[0.5, 2.0]]))[0, 1] == pytest.approx(2.0)


def test_candidates_are_ranked_again() -> None:
    rng = np.random.default_rng(0)
    vectors, labels = unit(rng.standard_normal((300, 8))), np.eye(3, dtype=np.uint8)[rng.integers(0, 3, 300)]
    noise = 0.3 * rng.standard_normal(vectors.shape, np.float32)
    poor = ranked_scores(vectors, vectors + noise, labels)
    again = ranked_scores(vectors, vectors + noise, labels, again=(vectors, vectors))
    assert again["recall@10"] > poor["recall@10"]
    assert ranked_scores(vectors, vectors, labels)["recall@10"] == 1


def test_items_with_equal_scores_are_in_random_order() -> None:
    labels = np.ones((400, 1), np.uint8)
    equal = ranked_scores(np.ones((400, 2), np.float32), np.ones((400, 2), np.float32), labels)
    assert equal["recall@10"] == pytest.approx(10 / 400, abs=0.03)


@pytest.mark.slow
def test_all_ways_are_measured_at_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("faiss")
    monkeypatch.setattr(equal_bytes, "BYTES", (2, 4))
    pairs = generate_pairs(900, image_dim=300, text_dim=280)
    result = measure(pairs.take(np.arange(600)), pairs.take(np.arange(600, 900)))
    names = [(row["name"], row["plain"]["bytes"]) for row in result["rows"]]
    assert ("RaBitQ 1 bit, 4-bit query", 2) not in names  # the factor alone has two bytes
    assert len(names) == 1 + 6 + 7
    assert {row["rescored"]["bytes"] - row["plain"]["bytes"] for row in result["rows"]} == {256}
    assert table_text(result).count("\n") == len(names)
