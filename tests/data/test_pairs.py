"""Pairs: valid columns, and messages that name the row of an invalid one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rmsh.core.errors import DataError
from rmsh.data import pairs as columns
from rmsh.data.pairs import (
    Pairs,
    checked_column,
    checked_ids,
    checked_labels,
    checked_mask,
    checked_names,
    is_raw,
    listed,
)
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
    with pytest.raises(DataError, match=r"the texts are raw.*--text-encoder"):
        Pairs(ids=["a"], texts=["one"]).features("text")


def test_features_of_an_absent_modality_are_refused():
    with pytest.raises(DataError, match="no item has an image"):
        Pairs(ids=["a"]).features("image")


def test_an_error_names_the_source_and_the_column():
    with pytest.raises(DataError, match="my file: images: the shape is"):
        Pairs(ids=["a"], images=np.ones((2, 2)), source="my file")


def test_problems_beyond_the_tenth_are_counted():
    assert listed("abc") == "a, b, c"
    assert listed(range(10)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
    assert listed(range(15)).endswith("9 and 5 more")


def test_repeated_ids_are_refused_with_their_rows():
    with pytest.raises(
        DataError, match=r"file: .* row 0 \('a'\), row 2 \('a'\), row 3 \('b'\), row 4 \('b'\); ids must"
    ):
        checked_ids(["a", "c", "a", "b", "b"], "file")


def test_ids_in_a_matrix_are_refused():
    with pytest.raises(DataError, match=r"ids of shape \(1, 2\)"):
        checked_ids([["a", "b"]], "file")


def test_no_ids_are_an_empty_list_of_strings():
    assert checked_ids([], "file").dtype.kind == "U"


def test_dense_features_become_float32_row_by_row():
    column = checked_column(np.asfortranarray(np.arange(6.0).reshape(3, 2)), 3, "file")
    assert column.dtype == np.float32
    assert column.flags["C_CONTIGUOUS"]
    assert column.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_float32_features_are_not_copied():
    features = np.ones((3, 2), dtype=np.float32)
    assert np.shares_memory(checked_column(features, 3, "file"), features)


def test_sparse_features_stay_sparse():
    column = checked_column(sparse.coo_array(np.eye(3)), 3, "file")
    assert isinstance(column, sparse.csr_array)
    assert column.dtype == np.float32


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_values_that_are_not_finite_are_named_once_per_row(form):
    features = np.ones((20, 3))
    features[4:18, 1] = np.nan
    features[4, 2] = np.inf
    with pytest.raises(DataError, match=r"row 4, column 1, row 5, column 1, .*row 13, column 1 and 4 more"):
        checked_column(form(features), 20, "file")


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_values_that_are_not_finite_are_found_in_every_block(form, monkeypatch):
    monkeypatch.setattr(columns, "CHECKED_TOGETHER", 4)
    features = np.ones((5, 3), dtype=np.float32)
    features[[1, 3, 4], [0, 2, 1]] = np.nan
    with pytest.raises(DataError, match="numbers: row 1, column 0, row 3, column 2, row 4, column 1;"):
        checked_column(form(features), 5, "file")


def test_a_number_too_large_for_32_bits_is_refused_by_its_row():
    with pytest.raises(DataError, match="row 1, column 0"):
        checked_column(np.array([[1.0], [1e300]]), 2, "file")


def test_complex_features_are_refused():
    with pytest.raises(DataError, match="dtype complex128"):
        checked_column(np.ones((2, 2), dtype=complex), 2, "file")


def test_features_without_columns_are_refused():
    with pytest.raises(DataError, match="no columns"):
        checked_column(np.ones((2, 0)), 2, "file")


@pytest.mark.parametrize(("column", "expected"), [(np.ones((2, 3)), r"\(3, features\)"), (np.array(["a"]), r"\(3,\)")])
def test_a_column_of_another_length_is_refused(column, expected):
    with pytest.raises(DataError, match=f"there are 3 items; {expected} is expected"):
        checked_column(column, 3, "file")


def test_strings_are_raw_and_numbers_are_not():
    assert is_raw(checked_column(np.array(["a", "b"], dtype=object), 2, "file"))
    assert not is_raw(np.ones((2, 2), dtype=np.float32))


def test_wrong_labels_are_named_by_row_up_to_the_tenth():
    labels = np.zeros((30, 4))
    labels[2:14, 3] = 5
    with pytest.raises(DataError, match=r"row 2, column 3 \(5.0\), .*row 11, column 3 \(5.0\) and 2 more"):
        checked_labels(labels, 30, "file")


def test_labels_that_are_words_are_refused():
    with pytest.raises(DataError, match="labels of dtype <U3"):
        checked_labels(np.array([["dog"]]), 1, "file")


def test_a_list_of_class_numbers_is_refused():
    with pytest.raises(DataError, match=r"labels of shape \(3,\) for 3 items"):
        checked_labels(np.array([0, 1, 1]), 3, "file")


def test_labels_of_nan_are_refused():
    with pytest.raises(DataError, match=r"row 0, column 1 \(nan\)"):
        checked_labels(np.array([[1.0, np.nan]]), 1, "file")


def test_sparse_labels_become_a_matrix_of_bytes():
    labels = checked_labels(sparse.csr_array(np.eye(2, dtype=bool)), 2, "file")
    assert labels.dtype == np.uint8
    assert labels.tolist() == [[1, 0], [0, 1]]


def test_without_a_mask_all_items_have_a_present_modality():
    assert checked_mask(None, True, 2, "file").all()
    assert not checked_mask(None, False, 2, "file").any()


def test_a_mask_of_numbers_is_refused():
    with pytest.raises(DataError, match="one True or False per item"):
        checked_mask(np.array([0, 1]), True, 2, "file")


def test_a_mask_without_its_column_is_refused():
    with pytest.raises(DataError, match=r"1 items .*column is missing"):
        checked_mask(np.array([True, False]), False, 2, "file")


def test_class_names_must_be_as_many_as_label_columns():
    with pytest.raises(DataError, match="1 class names for 2 label columns"):
        checked_names(["dog"], np.zeros((1, 2), dtype=np.uint8), "file")
    assert checked_names((), np.zeros((1, 2), dtype=np.uint8), "file") == ("class 0", "class 1")
