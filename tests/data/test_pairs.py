"""Pairs: one value for all data, whose parts stay together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rmsh.core.errors import DataError
from rmsh.data.pairs import Pairs
from rmsh.data.splits import random_split


def make(n: int = 4) -> Pairs:
    return Pairs(
        ids=np.arange(n).astype(str),
        images=np.arange(2.0 * n).reshape(n, 2),
        texts=sparse.csr_array(np.eye(n)),
        labels=np.arange(n)[:, None] % 2,
        has_text=np.arange(n) != 1,
    )


def test_every_column_follows_the_rows_taken():
    some = make().take(np.array([3, 1]))
    assert some.ids.tolist() == ["3", "1"]
    assert some.images.tolist() == [[6, 7], [2, 3]]
    assert some.texts.toarray().tolist() == [[0, 0, 0, 1], [0, 1, 0, 0]]
    assert some.labels.tolist() == [[1], [1]]
    assert some.has_text.tolist() == [True, False]


def test_a_row_taken_twice_is_refused_because_ids_must_differ():
    with pytest.raises(DataError, match="occur more than once"):
        make().take(np.array([0, 0]))


@given(n=st.integers(2, 30), seed=st.integers(0, 99))
def test_the_parts_of_a_split_put_together_are_the_pairs_again(n, seed):
    pairs, split = make(n), random_split(n, n // 2, seed=seed)
    parts = [pairs.take(split.database), pairs.take(split.query)]
    rows = np.argsort(np.concatenate([split.database, split.query]))
    for field in ("ids", "images", "labels", "has_text"):
        together = np.concatenate([getattr(part, field) for part in parts])[rows]
        np.testing.assert_array_equal(together, getattr(pairs, field))
    assert (sparse.vstack([part.texts for part in parts]).tocsr()[rows] != pairs.texts).nnz == 0


def test_an_item_without_labels_is_unlabelled():
    assert make().labelled.tolist() == [False, True, False, True]
    assert not Pairs(ids=["a"]).labelled.any()


def test_the_columns_are_reached_by_modality():
    pairs = make()
    assert pairs.column("image") is pairs.images
    assert pairs.features("text") is pairs.texts
    assert pairs.has("image").all()
    assert not pairs.has("text").all()


def test_raw_texts_are_replaced_by_their_features():
    pairs = Pairs(ids=["a", "b"], texts=["one", "two"])
    assert pairs.with_column("text", np.ones((2, 3))).features("text").shape == (2, 3)
    assert pairs.with_column("image", ["a.jpg", "b.jpg"]).has_image.all()


def test_features_of_raw_texts_are_refused():
    with pytest.raises(DataError, match="the texts are raw, features are needed here; run them through an encoder"):
        Pairs(ids=["a"], texts=["one"]).features("text")


def test_features_of_an_absent_modality_are_refused():
    with pytest.raises(DataError, match="no item has an image"):
        Pairs(ids=["a"]).features("image")


def test_an_error_names_the_source_and_the_column():
    with pytest.raises(DataError, match="my file: images: the shape is"):
        Pairs(ids=["a"], images=np.ones((2, 2)), source="my file")
