"""The bag of words: which words, in which columns, sparse."""

from __future__ import annotations

import pytest
from scipy import sparse

from rmsh.core.errors import DataError
from rmsh.features.bag_of_words import BagOfWords, words_of

TEXTS = ["A dog and a ball", "a DOG runs", "the ball", "dog", "one cat", "A bus!"]


def test_the_vocabulary_is_the_recurring_words_the_most_frequent_first() -> None:
    assert BagOfWords.prepare(TEXTS).vocabulary[:3] == ["a", "dog", "ball"]


def test_a_repeated_word_counts_once() -> None:
    assert BagOfWords(["dog"]).encode(["dog dog DOG", "cat"]).toarray().tolist() == [[1.0], [0.0]]


def test_features_are_sparse_and_no_texts_give_no_rows() -> None:
    bag = BagOfWords(["dog", "cat"])
    assert sparse.issparse(bag.encode(["dog"]))
    assert bag.encode([]).shape == (0, 2)


def test_a_restored_bag_is_the_same() -> None:
    bag = BagOfWords.prepare(TEXTS)
    again = BagOfWords.restore(bag.describe())
    assert again.fingerprint == bag.fingerprint
    assert (again.encode(TEXTS) != bag.encode(TEXTS)).nnz == 0


def test_texts_without_a_recurring_word_are_refused() -> None:
    with pytest.raises(DataError, match=r"1 .*of the 2 texts"):
        BagOfWords.prepare(["", "!?"])


def test_words_of_other_alphabets_are_words() -> None:
    assert words_of("Ein Hündchen, 犬") == ["ein", "hündchen", "犬"]
