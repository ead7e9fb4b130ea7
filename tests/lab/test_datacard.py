"""The figures of a data card: hand-worked, by brute force, and those of the real labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lab.__main__ import main
from lab.datacard import dissimilar_share, make_card
from rmsh.codes import Codes
from rmsh.core.errors import DataError
from rmsh.data.open import Opened, open_pairs
from rmsh.data.pairs import Pairs
from rmsh.data.splits import Split
from rmsh.metrics import evaluate

LABELS = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]], dtype=np.uint8)


def opened(split: Split | None = None, labels: Any = LABELS) -> Opened:
    pairs = Pairs(ids=["a", "b", "c", "d"], texts=np.ones((4, 2)), labels=labels, class_names=("x", "y", "z"))
    return Opened(pairs, split, (), "tiny")


def test_counts_labels_and_frequencies_are_worked_out() -> None:
    card = make_card(opened(Split("s", [0, 2, 3], [1], [0])))
    assert [*card.counts] == ["items", "with image", "with text", "labelled", "database", "query", "train"]
    assert [*card.counts.values()] == [4, 0, 4, 3, 3, 1, 1]
    assert (card.classes, card.labels_per_item, card.labels_histogram) == (3, 4 / 3, [1, 2, 1])
    assert card.frequencies == {"x": 0.5, "y": 0.25, "z": 0.25}


def test_without_a_split_there_is_no_chance_level() -> None:
    assert make_card(opened()).chance == {}


@given(arrays.arrays(np.uint8, st.tuples(st.integers(2, 12), st.integers(1, 3)), elements=st.integers(0, 1)))
def test_the_share_of_dissimilar_pairs_is_that_of_all_pairs(labels: Any) -> None:
    n = len(labels)
    apart = sum(not (labels[i] & labels[j]).any() for i in range(n) for j in range(n) if i != j)
    assert dissimilar_share(labels) == pytest.approx(apart / (n * (n - 1)))


def test_the_share_does_not_depend_on_the_size_of_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = np.random.default_rng(0).integers(0, 2, (50, 5)).astype(np.uint8)
    whole = dissimilar_share(labels)
    monkeypatch.setattr("lab.datacard.BLOCK", 3)
    assert dissimilar_share(labels) == whole


def test_one_item_has_no_pairs() -> None:
    assert dissimilar_share(LABELS[:1]) == 0.0


def test_chance_is_what_an_evaluation_of_any_codes_states() -> None:
    made = open_pairs("generated:300")
    labels, split, rng = made.pairs.labels, made.split, np.random.default_rng(0)
    codes = Codes.from_values(rng.normal(size=(300, 16)))
    scores = evaluate(codes.take(split.query), codes.take(split.database), labels[split.query], labels[split.database])
    chance = make_card(made).chance
    assert chance["NDCG@500"] == pytest.approx(scores.ndcg.chance)
    assert chance["mAP@all"] == pytest.approx(scores.map.chance)


def test_data_without_labels_has_no_card() -> None:
    with pytest.raises(DataError, match="tiny has no labels"):
        make_card(Opened(Pairs(ids=["a"], texts=np.ones((1, 2))), None, (), "tiny"))


def test_the_card_of_the_real_labels_has_the_published_figures(mirflickr_root: Path) -> None:
    card = make_card(open_pairs(mirflickr_root))
    assert (card.classes, round(card.labels_per_item, 2)) == (24, 3.78)
    assert round(card.entropy["independent"], 2) == 13.04
    assert round(card.dissimilar, 3) == 0.445


@pytest.mark.slow
def test_the_card_of_coco66k_has_the_published_figures(coco66k_root: Path) -> None:
    card = make_card(open_pairs(f"coco66k:{coco66k_root}"))
    counts = {"items": 61_903, "labelled": 61_903, "database": 56_947, "query": 4_956, "train": 56_947}
    assert card.counts.items() >= counts.items()
    assert (card.classes, round(card.labels_per_item, 2)) == (80, 2.95)
    assert round(card.frequencies["person"], 2) == 0.66
    assert card.chance["NDCG@500"] == pytest.approx(0.129, abs=0.0005)
    assert card.chance["mAP@all"] == pytest.approx(0.473, abs=0.0005)


def test_the_card_of_prepared_pairs_has_the_numbers_of_its_split(capsys: pytest.CaptureFixture[str]) -> None:
    sample = Path(__file__).resolve().parent.parent / "samples" / "pairs_v1"
    assert main(["card", str(sample)]) == 0
    out = capsys.readouterr().out
    assert "mirflickr25k: 4 items, 3 with image, 4 with text, 3 labelled, 3 database, 1 query, 2 train" in out
    assert "2 classes" in out
    assert "split 'tiny', seed 3" in out
