"""Values of other programs: each form is read as what it is, and what could be two things is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rmsh.core.errors import CodesError, DataError
from rmsh.data.readers.foreign_codes import class_count, interpret_codes, interpret_labels

BITS = np.random.default_rng(0).random((20, 12)) < 0.5


@pytest.mark.parametrize(
    ("values", "reading"),
    [
        (BITS, "0 and 1"),
        (BITS.astype(np.int8), "0 and 1"),
        (BITS.astype(np.float64), "0 and 1"),
        (BITS * 2 - 1, "-1 and +1"),
        (BITS * 2.0 - 1, "-1 and +1"),
        (sparse.csr_array(BITS * 2.0 - 1), "-1 and +1"),
        ((BITS * 2 - 1) * 0.7, "real numbers, of which the sign was taken"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.dtype),
)
def test_every_form_of_a_bit_is_read(values: np.ndarray, reading: str) -> None:
    found, told = interpret_codes(values)
    assert (found == BITS).all()
    assert told == reading


def test_zero_among_signs_counts_as_one_and_is_told() -> None:
    found, told = interpret_codes(np.array([[-1, 0, 1]]))
    assert (found.tolist(), told) == ([[False, True, True]], "-1 and +1; 0 counts as +1")


@given(bits=st.integers(1, 64), order=st.sampled_from(["little", "big"]))
def test_packed_codes_of_either_bit_order_keep_their_distances(bits: int, order: str) -> None:
    codes = np.random.default_rng(bits).random((9, bits)) < 0.5
    codes[0] = True  # so that no padding looks like a bit
    found, _ = interpret_codes(np.packbits(codes, axis=1, bitorder=order), bits)  # type: ignore[call-overload]
    distances = [(some[:, None] != some[None]).sum(axis=2) for some in (codes, found)]
    assert (distances[0] == distances[1]).all()
    assert found.shape == codes.shape


def test_packed_codes_fill_their_bytes_unless_said_otherwise() -> None:
    found, told = interpret_codes(np.array([[255, 3]], dtype=np.uint8))
    assert (found.shape, told) == ((1, 16), "16 bits packed into bytes")


def test_bytes_of_zero_and_one_are_decided_by_the_number_of_bits() -> None:
    values = np.array([[1, 0], [0, 1]], dtype=np.uint8)
    assert interpret_codes(values, 2)[0].tolist() == [[True, False], [False, True]]
    assert interpret_codes(values, 16)[0].shape == (2, 16)
    with pytest.raises(CodesError, match=r"in 2 columns are 2 bits, or 16 packed bits; say which .*--bits"):
        interpret_codes(values)


def test_bytes_of_zero_and_one_too_wide_to_be_packed_are_bits() -> None:
    assert interpret_codes(np.ones((2, 65), dtype=np.uint8))[0].shape == (2, 65)


@pytest.mark.parametrize(
    ("values", "bits", "sentence"),
    [
        (np.zeros(3), None, r"float64 of shape \(3,\) was found"),
        (np.zeros((0, 3)), None, r"shape \(0, 3\)"),
        (np.array([["a"]]), None, "codes are numbers"),
        (np.ones((2, 513)), None, "513 columns, one a bit; at most 512 were expected"),
        (np.ones((2, 12)), 16, "12 columns, one a bit; 16 were expected"),
        (np.array([[0, 7]]), None, "whole numbers from 0 to 7"),
        (np.array([[0.5, -np.inf]]), None, "row 0 are not finite"),
        (np.array([[0.2, 0.9]]), None, "none of them negative"),
        (np.array([[9, 9]], dtype=np.uint8), 5, "hold up to 16 packed bits, and 5 were expected"),
        (np.array([[9, 255]], dtype=np.uint8), 12, "bits set behind the last of 12"),
    ],
)
def test_what_is_no_code_is_refused(values: np.ndarray, bits: int | None, sentence: str) -> None:
    with pytest.raises(CodesError, match=f"mine: .*{sentence}"):
        interpret_codes(values, bits, source="mine")


def test_labels_are_read_from_every_form() -> None:
    labels = (np.random.default_rng(1).random((8, 11)) < 0.4).astype(np.uint8)
    for values, classes in ((labels, None), (labels, 11), (sparse.csr_array(labels), None), (labels == 1, None)):
        assert (interpret_labels(values, classes)[0] == labels).all()
    found, told = interpret_labels(np.packbits(labels, axis=1), 11)
    assert (found == labels).all()
    assert told == "11 classes packed into bytes"


@pytest.mark.parametrize("values", [np.array([2, 0]), np.array([[2], [0]]), np.array([2.0, 0.0])])
def test_class_numbers_become_one_column_a_class(values: np.ndarray) -> None:
    assert class_count(values) == 3
    found, told = interpret_labels(values, at_least=4)
    assert (found.tolist(), told) == ([[0, 0, 1, 0], [1, 0, 0, 0]], "class numbers")


def test_a_single_column_of_zero_and_one_is_one_class() -> None:
    assert class_count(np.array([[1], [0]])) is None
    assert interpret_labels(np.array([[1], [0]]))[0].tolist() == [[1], [0]]


@pytest.mark.parametrize("values", [np.array([0.5, 1]), np.array([-1, 1]), np.array([0, 1 << 16])])
def test_numbers_that_are_no_classes_are_refused(values: np.ndarray) -> None:
    with pytest.raises(DataError, match="class numbers are whole, from 0 to 65535"):
        interpret_labels(values)


@pytest.mark.parametrize("values", [np.array([[0, 2]]), np.array([["a"]]), np.zeros((1, 1, 1)), np.array(3)])
def test_what_is_no_label_is_refused(values: np.ndarray) -> None:
    with pytest.raises(DataError, match="labels"):
        interpret_labels(values)


def test_packed_labels_of_another_width_are_refused() -> None:
    with pytest.raises(DataError, match="17 classes need uint8"):
        interpret_labels(np.array([[255, 1]], dtype=np.uint8), 17)
