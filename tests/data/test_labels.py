"""Labels: packing, class frequencies, and classes mined from texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import array_shapes, arrays

from rmsh.core.errors import DataError
from rmsh.data.labels import (
    class_frequency,
    label_texts,
    mine_classes,
    pack_labels,
    unpack_labels,
)


@given(arrays(np.uint8, array_shapes(min_dims=2, max_dims=2, max_side=20), elements={"max_value": 1}))
def test_unpacking_undoes_packing(labels: Any) -> None:
    np.testing.assert_array_equal(unpack_labels(pack_labels(labels), labels.shape[1]), labels)


def test_the_first_class_is_the_most_significant_bit() -> None:
    labels = np.zeros((1, 9), dtype=np.uint8)
    labels[0, [0, 8]] = 1
    assert pack_labels(labels).tolist() == [[128, 128]]


@pytest.mark.parametrize("packed", [np.zeros((2, 2), dtype=np.uint8), np.zeros((2, 1), dtype=np.int64)])
def test_bytes_of_another_width_or_type_are_refused(packed: Any) -> None:
    with pytest.raises(DataError, match=r"3 classes need uint8 of shape \(n, 1\)"):
        unpack_labels(packed, 3)


def test_the_frequency_of_a_class_is_its_share_of_all_items() -> None:
    assert class_frequency(np.array([[1, 0], [1, 0], [0, 0], [1, 0]], dtype=np.uint8)).tolist() == [0.75, 0]
    assert class_frequency(np.zeros((0, 2), dtype=np.uint8)).tolist() == [0, 0]


CAPTIONS = ["A dog runs on the grass.", "Two dogs and a Frisbee", "a cat on a bed", "the cats sleep", "green grass"]


def test_frequent_content_words_become_classes_with_their_plurals() -> None:
    assert mine_classes(CAPTIONS) == {"cat": ["cat", "cats"], "dog": ["dog", "dogs"], "grass": ["grass"]}


def test_tags_stay_whole() -> None:
    classes = mine_classes(["#hot dog, street", "hot dog; new york", "street, new york", "sea"])
    assert classes == {"hot dog": ["hot dog"], "new york": ["new york"], "street": ["street"]}


def test_sentences_with_commas_are_not_lists_of_tags() -> None:
    assert [*mine_classes(["a red picture, number 1", "a red one, or two", "a sea, blue", "so blue", "x"])] == [
        "blue",
        "red",
    ]


def test_a_word_in_more_than_half_of_the_texts_is_not_a_class() -> None:
    assert "photo" not in mine_classes([f"photo of {name}" for name in ("dog", "dog", "cat", "cat", "sea")])


def test_the_number_of_classes_is_limited() -> None:
    assert [*mine_classes(CAPTIONS, most=1)] == ["cat"]


def test_texts_without_a_recurring_word_are_refused() -> None:
    with pytest.raises(DataError, match="No word or tag recurs in the 2 texts"):
        mine_classes(["a dog", "the sea"])


def test_words_count_whole_and_in_any_case() -> None:
    labels = label_texts(["HOT  dog", "hotdog", "dog-sled"], {"food": ["hot dog"], "dog": ["dog"]})
    assert labels.tolist() == [[1, 1], [0, 0], [0, 1]]
