"""Checks of columns: what is refused, by row, and what is kept as it is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from rmsh.core.errors import DataError
from rmsh.data import pairs as columns
from rmsh.data.pairs import checked_column, checked_ids, checked_labels, checked_mask, checked_names, is_raw, listed


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
def test_values_that_are_not_finite_are_named_once_a_row(form):
    features = np.ones((20, 3))
    features[4:18, 1] = np.nan
    features[4, 2] = np.inf
    with pytest.raises(DataError, match=r"row 4, column 1, row 5, column 1, .*row 13, column 1 and 4 more; mend"):
        checked_column(form(features), 20, "file")


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_values_that_are_not_finite_are_found_in_every_block(form, monkeypatch):
    monkeypatch.setattr(columns, "BLOCK", 4)
    features = np.ones((5, 3), dtype=np.float32)
    features[[1, 3, 4], [0, 2, 1]] = np.nan
    with pytest.raises(DataError, match="numbers: row 1, column 0, row 3, column 2, row 4, column 1; mend"):
        checked_column(form(features), 5, "file")


def test_a_number_too_large_for_32_bits_is_refused_by_its_row():
    with pytest.raises(DataError, match="row 1, column 0"):
        checked_column(np.array([[1.0], [1e300]]), 2, "file")


def test_complex_features_are_refused():
    with pytest.raises(DataError, match="dtype complex128 were given; give numbers, or strings"):
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
    with pytest.raises(
        DataError, match=r"row 2, column 3 \(5.0\), .*row 11, column 3 \(5.0\) and 2 more; class numbers"
    ):
        checked_labels(labels, 30, "file")


def test_labels_that_are_words_are_refused():
    with pytest.raises(DataError, match="labels of dtype <U3 were given; give 0 and 1, one column a class"):
        checked_labels(np.array([["dog"]]), 1, "file")


def test_a_list_of_class_numbers_is_refused():
    with pytest.raises(DataError, match=r"labels of shape \(3,\) were given for 3 items"):
        checked_labels(np.array([0, 1, 1]), 3, "file")


def test_labels_that_are_not_numbers_at_all_are_refused_as_nan():
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
    with pytest.raises(DataError, match="one True or False an item"):
        checked_mask(np.array([0, 1]), True, 2, "file")


def test_a_mask_without_its_column_is_refused():
    with pytest.raises(DataError, match="1 items are said to have this modality, but its column is missing"):
        checked_mask(np.array([True, False]), False, 2, "file")


def test_class_names_must_be_as_many_as_label_columns():
    with pytest.raises(DataError, match="1 class names were given for 2 label columns"):
        checked_names(["dog"], np.zeros((1, 2), dtype=np.uint8), "file")
    assert checked_names((), np.zeros((1, 2), dtype=np.uint8), "file") == ("class 0", "class 1")
