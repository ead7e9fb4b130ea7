"""The bundled model: scores of pairs ranked among themselves, and the card that shows them."""

from __future__ import annotations

import numpy as np

from lab.wheel_model import _card, lengths, score
from rmsh.data.pairs import Pairs
from rmsh.hash_function import HashFunction, Layer
from rmsh.model import Model


def _model() -> Model:
    """One bit per feature."""
    function = HashFunction((Layer(np.eye(64, dtype=np.float32), np.full(64, -0.5, np.float32), "none"),))
    return Model({"image": function, "text": function}, "nest", {})


def _pairs() -> Pairs:
    features = np.eye(64, dtype=np.float32)[:8]
    labels = np.tile(np.eye(2, dtype=np.uint8), (4, 1))
    return Pairs(ids=np.arange(8), images=features, texts=features, labels=labels, class_names=("person", "dog"))


def test_pairs_are_ranked_among_themselves() -> None:
    found = score(_model(), _pairs(), 64)
    assert found["t2i"]["recall@1"] == 1.0
    assert 0 < found["t2i"]["ndcg@10"] < 1  # its own counterpart does not count
    assert lengths(_model()) == [64, 32]


def test_the_card_shows_scores_and_shares() -> None:
    captions = ["a man", "two women", "a dog", "a boy and a girl"] * 2
    card = _card(_model(), _pairs(), captions, {"queries": {"64": score(_model(), _pairs(), 64)}}, {"queries": 8})
    assert "| 8 queries | 64 | 1.000 / 1.000 |" in card
    assert "A person is on 50% of the photographs.\n50% of the captions name men or boys, 50% women" in card
