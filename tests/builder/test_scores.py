"""The scores of a build: held-out items by codes, label names by the ranking of a search, and what is a warning."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rmsh.builder.scores import is_near_chance, score, split_by, warn_of, word_precision
from rmsh.builder.source import Source
from rmsh.data.pairs import Pairs
from rmsh.data.records import Origin, Record
from rmsh.features.bag_of_words import BagOfWords
from rmsh.hash_function import HashFunction, Layer
from rmsh.model import Model

DIRECTIONS = ["i2t", "t2i", "i2i", "t2t"]
NAMES = ("cat", "dog", "bus", "tree")


@pytest.fixture
def model() -> Model:
    """One bit per class, for images and texts whose features are their labels."""
    function = HashFunction((Layer(np.eye(4, dtype=np.float32), np.full(4, -0.5, np.float32), "none"),))
    return Model({"image": function, "text": function}, "test", {}, encoders={"text": BagOfWords(NAMES).describe()})


def _pairs(labels: np.ndarray) -> Pairs:
    features = labels.astype(np.float32)
    return Pairs(ids=np.arange(len(labels)), images=features, texts=features, labels=labels, class_names=NAMES)


def _source(count: int = 40, *, named: bool = False) -> Source:
    """Items with one label each, in turn; their texts are the names of the labels, or say nothing."""
    pairs = _pairs(np.tile(np.eye(4, dtype=np.uint8), (count // 4, 1)))
    texts = [NAMES[row % 4] if named else "something" for row in range(count)]
    records = tuple(Record("", None, str(row), text=text) for row, text in enumerate(texts))
    return Source(pairs, Origin(Path(), records, ()), (), "test", learn_from="nothing", named=named)


def _options(work: Path) -> dict[str, Any]:
    return {"store": "codes+vectors", "seed": 0, "work": work}


def test_held_out_items_find_those_that_share_their_labels(model: Model) -> None:
    pairs = _pairs(np.tile(np.eye(4, dtype=np.uint8), (3, 1)))
    found = score(model, pairs, split_by(pairs, np.array(["0", "1"])))
    assert list(found) == DIRECTIONS
    assert [found[direction]["ndcg"]["value"] for direction in DIRECTIONS] == [1.0] * 4
    assert found["i2t"]["queries"] == 2
    assert found["i2t"]["ndcg"]["chance"] < 1


def test_there_are_no_scores_without_held_out_items_or_shared_labels(model: Model) -> None:
    pairs = _pairs(np.eye(4, dtype=np.uint8))
    assert score(model, pairs, split_by(pairs, np.array([], dtype=np.str_))) == {}
    assert score(model, pairs, split_by(pairs, np.array(["2"]))) == {}


def test_the_names_of_labels_find_images_that_have_them(model: Model, tmp_path: Path) -> None:
    source = _source()
    found = word_precision(model, source, split_by(source.pairs, source.pairs.ids), **_options(tmp_path))
    assert (found["queries"], found["images"]) == (4, 40)
    assert (found["precision@10"]["value"], found["precision@10"]["chance"]) == (1.0, 0.25)
    assert (found["precision@10"]["best"], found["precision@10"]["error"]) == (1.0, pytest.approx(0.0601, abs=1e-4))
    assert not list(tmp_path.iterdir())


def test_neither_labels_nor_texts_made_of_them_answer_for_themselves(model: Model, tmp_path: Path) -> None:
    source = _source(named=True)
    blind = replace(source.pairs, images=np.zeros((40, 4), np.float32))  # every image looks the same
    found = word_precision(model, replace(source, pairs=blind), split_by(blind, blind.ids), **_options(tmp_path))
    assert found["precision@10"]["value"] == found["precision@10"]["chance"] == 0.25


def test_only_images_that_were_not_trained_on_are_judged_and_few_are_none(model: Model, tmp_path: Path) -> None:
    source = replace(_source(), learn_from="labels")
    for held_out, images in ((24, 24), (19, None)):
        split = split_by(source.pairs, source.pairs.ids[:held_out])
        assert word_precision(model, source, split, **_options(tmp_path)).get("images") == images


@pytest.mark.parametrize(
    ("value", "chance", "error", "best", "near"),
    [
        (0.019, 0.01, 0.001, 1.0, True),  # below twice chance, although certain
        (0.021, 0.01, 0.001, 1.0, False),
        (0.035, 0.01, 0.01, 1.0, True),  # within three standard errors
        (0.62, 0.5, 0.01, 1.0, True),  # twice chance is impossible: below a quarter of the way to 1
        (0.64, 0.5, 0.01, 1.0, False),
        (0.24, 0.1, 0.01, 0.3, False),  # of the way to the best possible
        (1.0, 0.5, 0.4, 1.0, False),  # more is not possible
    ],
)
def test_near_chance_is_uncertain_or_hardly_better(
    value: float, chance: float, error: float, best: float, *, near: bool
) -> None:
    assert is_near_chance(value, chance, error=error, best=best) is near


def _recall(value: float) -> dict[str, object]:
    return {"t2i": {"queries": 500, "items": 1000, "recall@10": {"value": value, "chance": 0.01}}}


def test_each_score_near_chance_is_named_with_a_remedy() -> None:
    words = {"precision@10": {"value": 0.11, "chance": 0.1, "best": 1.0, "error": 0.01}}
    good = {"precision@10": {"value": 0.6, "chance": 0.1, "best": 1.0, "error": 0.01}}
    assert warn_of(_recall(0.5), good, learned_from=40) == warn_of({}, {}, learned_from=0) == ""
    warning = warn_of(_recall(0.012), words, learned_from=4321)
    assert all(part in warning for part in ("1.2% of 500 texts", "11.0%", "4,321", "--learn-from nothing"))
    assert "11.0%" not in warn_of(_recall(0.012), good, learned_from=0)
    assert "--learn-from" not in warn_of({}, words, learned_from=0)  # the bundled model is already in use
