"""The parts of a score, by hand-worked cases; and that candidates are all that a search gives up."""

from __future__ import annotations

import numpy as np
import pytest

from rmsh.codes import Codes
from rmsh.library import Item
from rmsh.search.scoring import agreement, combine, cosines, keywords, label_names, words_of_item


def test_keywords_are_distinct_stems_without_stop_words() -> None:
    assert keywords("The dogs and a dog with two buses") == ["dog", "two", "bus"]


def test_a_label_of_two_words_is_among_the_names_of_a_query() -> None:
    assert "traffic light" in label_names("dogs at traffic lights")


def test_words_are_found_in_text_labels_and_file_name_but_not_in_folders() -> None:
    item = Item("1", text="Two dogs.", picture="beach/sunset 7.jpg", labels=("red bus",))
    assert words_of_item(item) == {"two", "dogs", "sunset", "7", "red", "bus"}


def test_cosines_ignore_length_and_mark_missing_vectors() -> None:
    found = cosines(np.array([0, 2], np.float32), np.array([[0, 5], [3, 4], [0, 0]], np.int8))
    np.testing.assert_allclose(found, [1.0, 0.8, np.nan], rtol=1e-6)
    assert np.isnan(cosines(np.ones(3, np.float32), np.zeros((2, 0), np.int8))).all()


def test_agreement_with_signs_is_the_hamming_distance() -> None:
    values = np.random.default_rng(0).standard_normal((9, 21))
    codes = Codes.from_values(values)
    signs = np.where(values[0] >= 0, 1, -1).astype(np.float32)
    distances = (np.signbit(values) != np.signbit(values[0])).sum(axis=1)
    np.testing.assert_allclose(agreement(signs, codes.packed), 1 - 2 * distances / 21)


def test_a_certain_bit_weighs_more_than_a_doubtful_one() -> None:
    codes = Codes.from_values(np.array([[1, -1], [-1, 1]]))
    first, second = agreement(np.array([0.9, 0.1], np.float32), codes.packed)
    assert (first, second) == (pytest.approx(0.8), pytest.approx(-0.8))


def test_an_item_without_a_caption_is_judged_by_its_image() -> None:
    both, image_only, nothing = combine(np.array([1.0, np.nan, np.nan]), np.array([1.0, 1.0, np.nan]))
    assert both == image_only > nothing == 0
