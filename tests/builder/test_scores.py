"""Scores of held-out items: which there are, and when there are none."""

from __future__ import annotations

import numpy as np
import pytest

from rmsh.builder.report import score, split_by
from rmsh.data.pairs import Pairs
from rmsh.hash_function import HashFunction, Layer
from rmsh.model import Model

DIRECTIONS = ["i2t", "t2i", "i2i", "t2t"]


@pytest.fixture
def model() -> Model:
    """A bit a class, for pictures and texts whose features are their labels."""
    function = HashFunction((Layer(np.eye(4, dtype=np.float32), np.full(4, -0.5, np.float32), "none"),))
    return Model({"image": function, "text": function}, "test", {})


def _pairs(labels: np.ndarray) -> Pairs:
    features = labels.astype(np.float32)
    names = tuple("abcd")
    return Pairs(ids=np.arange(len(labels)), images=features, texts=features, labels=labels, class_names=names)


def test_held_out_items_find_those_that_share_their_labels(model: Model) -> None:
    pairs = _pairs(np.tile(np.eye(4, dtype=np.uint8), (3, 1)))
    found = score(model, pairs, split_by(pairs, np.array(["0", "1"])))
    assert list(found) == DIRECTIONS
    assert [found[direction]["ndcg"]["value"] for direction in DIRECTIONS] == [1.0] * 4
    assert found["i2t"]["queries"] == 2
    assert found["i2t"]["ndcg"]["chance"] < 1


def test_there_are_none_where_nothing_is_held_out_or_no_label_is_shared(model: Model) -> None:
    pairs = _pairs(np.eye(4, dtype=np.uint8))
    assert score(model, pairs, split_by(pairs, np.array([], dtype=np.str_))) == {}
    assert score(model, pairs, split_by(pairs, np.array(["2"]))) == {}
