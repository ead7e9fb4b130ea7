"""Labels in their packed form, and class frequencies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import array_shapes, arrays

from rmsh.core.errors import DataError
from rmsh.data.labels import class_frequency, pack_labels, unpack_labels


@given(arrays(np.uint8, array_shapes(min_dims=2, max_dims=2, max_side=20), elements={"max_value": 1}))
def test_unpacking_undoes_packing(labels):
    np.testing.assert_array_equal(unpack_labels(pack_labels(labels), labels.shape[1]), labels)


def test_the_first_class_is_the_most_significant_bit():
    labels = np.zeros((1, 9), dtype=np.uint8)
    labels[0, [0, 8]] = 1
    assert pack_labels(labels).tolist() == [[128, 128]]


@pytest.mark.parametrize("packed", [np.zeros((2, 2), dtype=np.uint8), np.zeros((2, 1), dtype=np.int64)])
def test_bytes_of_another_width_or_type_are_refused(packed):
    with pytest.raises(DataError, match=r"3 classes need uint8 of shape \(n, 1\)"):
        unpack_labels(packed, 3)


def test_the_frequency_of_a_class_is_its_part_of_all_items():
    assert class_frequency(np.array([[1, 0], [1, 0], [0, 0], [1, 0]], dtype=np.uint8)).tolist() == [0.75, 0]
    assert class_frequency(np.zeros((0, 2), dtype=np.uint8)).tolist() == [0, 0]
