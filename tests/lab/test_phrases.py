"""Phrases of captions: which there are, what counts as right for them, and that words then find images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lab import phrases
from lab.phrases import PhraseNEST, PhraseObjective, _contrast, names_of, phrases_of, read_names, read_phrases
from rmsh.data.pairs import Pairs
from rmsh.methods.nest import NEST
from rmsh.training.loop import TrainingSet

WORDS = ("dog", "cat", "bus", "kite")


class Letters:
    """Counts of letters, as features of texts."""

    def encode(self, items: Sequence[str]) -> Any:
        return np.array([[item.count(chr(97 + i)) for i in range(26)] for item in items], np.float32)


@pytest.fixture
def captions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(phrases, "cache_folder", lambda: tmp_path)
    return [f"A {word} near the {place}" for word in WORDS for place in ("house", "sea") for _ in range(25)]


def test_phrases_neither_begin_nor_end_with_a_stop_word() -> None:
    assert phrases_of("Two men ride a wave in it") == {
        *("two", "men", "ride", "wave"),
        *("two men", "men ride", "two men ride", "ride a wave", "men ride a wave"),
    }


def test_a_phrase_of_one_caption_is_left_out(captions: list[str]) -> None:
    found = read_phrases([*captions[:2], "a lone zebra"], Letters())
    assert found.items.toarray().tolist() == [[1, 1, 1], [1, 1, 1], [0, 0, 0]]  # dog, dog near the house, house
    assert found.features[0].tolist() == Letters().encode(["dog"])[0].tolist()
    assert found.take(np.array([2])).items.sum() == 0


def test_names_are_those_of_one_label_or_two_that_two_items_have(captions: list[str]) -> None:
    assert names_of(["cat", "couch", "dog"]) == {
        *("cat", "couch", "dog"),
        *("cat and couch", "cat and dog", "couch and dog"),
    }
    found = read_names(np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1]], np.uint8), ["cat", "couch", "dog"], Letters())
    assert found.items.toarray().tolist() == [[1, 1, 1], [1, 1, 1], [0, 0, 1]]  # cat, cat and couch, couch
    assert found.features[1].tolist() == Letters().encode(["cat and couch"])[0].tolist()


def test_a_batch_draws_phrases_and_fewer_names(captions: list[str]) -> None:
    labels = np.repeat(np.eye(4, dtype=np.uint8), 50, axis=0)
    data = TrainingSet(np.ones((200, 3), np.float32), Letters().encode(captions), labels)
    found, names = read_phrases(captions, Letters()), read_names(labels, WORDS, Letters())
    config = PhraseNEST.Config(bits=32, hidden=4)
    objective = PhraseObjective(data, config, epochs=[1, 1], phrases=found, names=names)
    of_captions = found.items.shape[1]
    drawn = [objective._draw(torch.arange(50, 51)) for _ in range(300)]  # the first cat
    own = {*found.items[50].indices.tolist(), of_captions + sorted(WORDS).index("cat")}
    assert {int(column) for each in drawn for column in each} == own
    assert 15 <= sum(int(each[0]) >= of_captions for each in drawn) <= 85  # 45 are expected


def test_contrast_has_equal_shares_of_what_is_right() -> None:
    images, texts = torch.eye(2), torch.tensor([[1.0, 0.0]])
    found = _contrast(torch.tensor(math.log(2.0)), images, texts, torch.tensor([[1.0], [1.0]]))
    to_images = (
        math.log(math.exp(2) + 1) - 1
    )  # both right: the mean of their log-probabilities, log(e^2 + 1) - (2 + 0) / 2
    assert found.item() == pytest.approx(to_images / 2, abs=1e-6)  # one text alone costs an image nothing


def test_labels_of_a_phrase_are_shares_of_its_items(captions: list[str]) -> None:
    found, labels = read_phrases(captions, Letters()), np.repeat(np.eye(4, dtype=np.uint8), 50, axis=0)
    data = TrainingSet(np.ones((200, 3), np.float32), Letters().encode(captions), labels)
    names, config = read_names(labels, WORDS, Letters()), PhraseNEST.Config(bits=32, hidden=4)
    objective = PhraseObjective(data, config, epochs=[1, 1], phrases=found, names=names)
    assert objective.phrase_labels.shape == (found.items.shape[1] + 4, 4)
    of_house = sorted({phrase for c in captions for phrase in phrases_of(c)}).index("house")
    assert objective.phrase_labels[of_house].tolist() == [0.25] * 4


def test_words_find_images_better_than_without_phrases(captions: list[str]) -> None:
    kinds = np.repeat(np.arange(4), 50)
    images = np.abs(np.random.default_rng(0).normal(size=(200, 12)) + 3 * np.eye(4, 12)[kinds]).astype(np.float32)
    labels = np.ones((200, 1), np.uint8)  # which say nothing
    pairs = Pairs(
        ids=np.arange(200), images=images, texts=Letters().encode(captions), labels=labels, class_names=("thing",)
    )
    options = {"bits": 32, "epochs": 30, "hidden": 32, "batch": 10}  # 40 in the first stage of phrases
    found, names = read_phrases(captions, Letters()), read_names(labels, pairs.class_names, Letters())
    shares = []
    for method in (NEST(**options), PhraseNEST(found, names, **options)):
        model = method.fit(pairs).model
        similar = model.embed(Letters().encode(WORDS), "text") @ model.embed(images, "image").T
        best = np.argsort(-similar, axis=1)[:, :20]
        shares.append((kinds[best] == np.arange(4)[:, None]).mean())
        assert model.method == "nest"
    assert shares[0] < 0.85 < 0.9 < shares[1]
