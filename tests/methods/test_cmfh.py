"""CMFH: each update against brute force, an objective that never rises, above chance, unified codes."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest

from rmsh.core.errors import DataError
from rmsh.core.types import ScoreArray
from rmsh.data.pairs import Pairs
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods.cmfh import CMFH, Factorisation, Factors
from rmsh.metrics.evaluate import evaluate

RNG = np.random.default_rng(0)
N, K, MU, GAMMA, WEIGHTS = 30, 3, 2.0, 0.5, [0.3, 0.7]
X = RNG.normal(size=(N, 9))
VIEWS = [slice(0, 5), slice(5, 9)]
FACTORISATION = Factorisation(X.T @ X, VIEWS, WEIGHTS, mu=MU, gamma=GAMMA)
P, W = RNG.normal(size=(9, K)), RNG.normal(size=(9, K))
U = RNG.normal(size=(K, 9))


def _loss(u: ScoreArray, v: ScoreArray, w: ScoreArray) -> float:
    """The objective as it is printed, with V itself."""
    total = 0.0
    for view, weight in zip(VIEWS, WEIGHTS, strict=True):
        x = X[:, view]
        fit = np.square(x - v @ u[:, view]).sum() + MU * np.square(v - x @ w[view]).sum()
        total += weight * (fit + GAMMA * (np.square(u[:, view]).sum() + np.square(w[view]).sum() + np.square(v).sum()))
    return float(total)


def _is_least(loss: object, at: ScoreArray) -> bool:
    """No small step in any of many directions leads lower."""
    here = loss(at)
    return all(loss(at + 1e-3 * RNG.normal(size=at.shape)) >= here for _ in range(50))


def test_the_loss_from_products_is_the_printed_one() -> None:
    assert FACTORISATION.loss(Factors(U, P, W)) == pytest.approx(_loss(U, X @ P, W))


def test_each_update_is_the_minimum_over_its_unknown() -> None:
    v = X @ P
    assert _is_least(lambda u: _loss(u, v, W), FACTORISATION.update_u(v.T @ v, v.T @ X))
    assert _is_least(lambda v: _loss(U, v, W), X @ FACTORISATION.update_p(U, W))
    assert _is_least(lambda w: _loss(U, v, w), FACTORISATION.update_w(P))


def test_the_objective_never_rises() -> None:
    v = RNG.random((N, K))
    rounds = islice(FACTORISATION.rounds(v.T @ v, v.T @ X, RNG.random((9, K))), 40)
    losses = [FACTORISATION.loss(factors) for factors in rounds]
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(losses))
    assert losses[-1] < 0.9 * losses[0]


def test_codes_are_above_chance_and_their_bits_differ() -> None:
    pairs = generate_pairs(600)
    method = CMFH(bits=16).fit(pairs)
    first, last = method.model.facts["loss"]
    assert last < first
    codes = [method.encode(pairs.features(m), m) for m in ("image", "text")]
    scores = evaluate(codes[0], codes[1], pairs.labels, pairs.labels, k=50)
    assert scores.ndcg.value > 1.2 * scores.ndcg.chance


def test_a_large_offset_of_the_features_changes_nothing() -> None:
    pairs = generate_pairs(100)
    shifted = replace(pairs, images=np.asarray(pairs.images) + 20)
    one, two = (CMFH(bits=8).fit(p).encode(p.features("image"), "image").packed for p in (pairs, shifted))
    assert (one == two).mean() > 0.95


def test_unified_database_codes_take_both_modalities() -> None:
    pairs = generate_pairs(100)
    view, unified = (CMFH(bits=16, database_codes=kind).fit(pairs) for kind in ("view", "unified"))
    codes = unified.encode_database(pairs, "text")
    np.testing.assert_array_equal(codes.packed, unified.encode_database(pairs, "image").packed)
    np.testing.assert_array_equal(
        view.encode_database(pairs, "text").packed, unified.encode(pairs.features("text"), "text").packed
    )
    assert (codes.packed != view.encode_database(pairs, "text").packed).any()


def test_unified_codes_of_an_item_without_a_text_are_refused() -> None:
    pairs = generate_pairs(100)
    method = CMFH(bits=16, database_codes="unified").fit(pairs)
    with pytest.raises(DataError, match=r"1 database items have no text.*unified"):
        method.encode_database(replace(pairs, has_text=np.arange(100) > 0), "text")


def test_the_original_makes_25_rounds() -> None:
    assert CMFH(preset="original").config.iterations == 25


def _articles(n: int = 1000) -> Pairs:
    """Ten classes like the articles of Wikipedia: topics of ten dimensions, images that vary mostly in other ways."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 10, n)
    other = rng.normal(size=(n, 20)) @ rng.normal(size=(20, 128))
    images = 0.35 * rng.normal(size=(10, 128))[classes] + 0.5 * other + rng.normal(size=(n, 128))
    topics = np.exp(2.5 * np.eye(10)[classes] + rng.normal(size=(n, 10)))
    texts = topics / topics.sum(axis=1, keepdims=True)
    return Pairs(ids=np.arange(n).astype(str), images=images, texts=texts, labels=np.eye(10, dtype=np.uint8)[classes])


def test_images_that_say_little_about_the_texts_keep_searches_by_image_low_unless_they_weigh_less() -> None:
    pairs = _articles()
    train, query = pairs.take(np.arange(800)), pairs.take(np.arange(800, 1000))

    def i2t(**options: Any) -> float:
        method = CMFH(bits=32, **options).fit(train)
        codes = method.encode(query.features("image"), "image"), method.encode_database(train, "text")
        return evaluate(*codes, query.labels, train.labels).map.value

    equal, both, light = i2t(), i2t(database_codes="unified"), i2t(database_codes="unified", weight=0.1)
    assert both < 0.9 * equal
    assert light > 1.3 * both
