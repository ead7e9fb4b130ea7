"""Codes: packing is the identity, distance is a metric, and what does not fit is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rmsh.codes import MAX_BITS, Codes, check_bits, check_unique_ids, hamming, pack, to_words, unpack
from rmsh.core.errors import CodesError

lengths = st.integers(1, MAX_BITS)


def bit_matrices(rows: st.SearchStrategy[int] | int) -> st.SearchStrategy[Any]:
    """Booleans (rows, bits) of any code length."""
    shapes = st.tuples(st.just(rows) if isinstance(rows, int) else rows, lengths)
    return shapes.flatmap(lambda shape: hnp.arrays(np.bool_, shape))


@given(bit_matrices(st.integers(0, 4)))
def test_unpacking_undoes_packing_at_every_length(values: Any) -> None:
    packed = pack(values)
    assert packed.shape == (len(values), -(-values.shape[1] // 8))
    assert np.array_equal(unpack(packed, values.shape[1]), values)


@given(lengths, st.data())
def test_bit_i_has_its_value_in_the_little_endian_number(bits: int, data: st.DataObject) -> None:
    i = data.draw(st.integers(0, bits - 1))
    values = np.arange(bits)[None, :] == i
    assert int.from_bytes(pack(values).tobytes(), "little") == 1 << i
    assert to_words(pack(values))[0, i // 64] == 1 << (i % 64)


@given(bit_matrices(3))
def test_distance_is_a_metric(values: Any) -> None:
    d = hamming(pack(values), pack(values))
    assert np.array_equal(d, d.T)
    for i in range(3):
        for j in range(3):
            assert (d[i, j] == 0) == np.array_equal(values[i], values[j])
            assert d[i, j] <= d[i, 0] + d[0, j]


@given(bit_matrices(2))
def test_distance_follows_from_the_dot_product_of_the_signs(values: Any) -> None:
    codes = Codes.from_values(np.where(values, 1.0, -1.0))
    a, b = np.where(unpack(codes.packed, codes.bits), 1, -1)
    assert hamming(codes.packed[:1], codes.packed[1:]).item() == (codes.bits - a @ b) / 2


@given(bit_matrices(2))
def test_words_have_the_same_distances_as_bytes(values: Any) -> None:
    words = Codes.from_values(np.where(values, 1.0, -1.0)).words()
    assert words.shape == (2, -(-values.shape[1] // 64))
    differing = np.bitwise_count(words[0] ^ words[1]).sum()
    assert differing == np.count_nonzero(values[0] != values[1])


def test_a_projection_of_zero_is_bit_one() -> None:
    codes = Codes.from_values([[0.0, -0.0, -1e-30, 1e-30]])
    assert unpack(codes.packed, 4).tolist() == [[True, True, False, True]]


def test_hamming_of_a_hand_worked_table() -> None:
    queries = np.array([[0b0000_0000], [0b1111_0000]], dtype=np.uint8)
    database = np.array([[0b0000_0001], [0b1111_1111], [0b1010_0000]], dtype=np.uint8)
    assert hamming(queries, database).tolist() == [[1, 8, 2], [5, 4, 2]]


def test_no_codes_have_no_distances() -> None:
    none = Codes.from_values(np.empty((0, 20)))
    assert (len(none), none.packed.shape, none.ids.shape) == (0, (0, 3), (0,))
    assert hamming(none.packed, none.packed).shape == (0, 0)


def test_take_keeps_codes_and_ids_together() -> None:
    codes = Codes.from_values(np.eye(3) - 0.5, ids=["a", "b", "c"])
    taken = codes.take(np.array([2, 0]))
    assert taken.ids.tolist() == ["c", "a"]
    assert taken.packed.tolist() == [[4], [1]]


def test_items_without_ids_are_numbered() -> None:
    assert Codes.from_values(np.ones((3, 2))).ids.tolist() == ["0", "1", "2"]


@pytest.mark.parametrize("bits", [0, -1, 513, 8.0, "8", True, None])
def test_a_length_that_is_not_a_whole_number_from_1_to_512_is_refused(bits: Any) -> None:
    with pytest.raises(CodesError, match="from 1 to 512"):
        check_bits(bits)


def test_numpy_lengths_become_plain_integers() -> None:
    assert type(check_bits(np.int64(512))) is int


@given(lengths.filter(lambda bits: bits % 8 != 0), st.data())
def test_a_bit_beyond_the_last_is_refused(bits: int, data: st.DataObject) -> None:
    packed = np.zeros((2, -(-bits // 8)), dtype=np.uint8)
    packed[1, -1] = 1 << data.draw(st.integers(bits % 8, 7))
    with pytest.raises(CodesError, match=f"{bits} bits"):
        Codes(packed, bits, np.array(["a", "b"]))


@pytest.mark.parametrize(
    "packed",
    [
        np.zeros((2, 2), dtype=np.float32),
        np.zeros((2, 2), dtype=np.int8),
        np.zeros((2, 3), dtype=np.uint8),
        np.zeros(2, dtype=np.uint8),
    ],
    ids=["float", "signed", "wide", "flat"],
)
def test_codes_of_another_type_or_shape_are_refused(packed: Any) -> None:
    with pytest.raises(CodesError, match=r"16 bits need uint8 of shape \(n, 2\)"):
        Codes(packed, 16, np.array(["a", "b"]))


def test_ids_must_be_as_many_as_codes() -> None:
    with pytest.raises(CodesError, match="1 IDs for 2 codes"):
        Codes.from_values(np.ones((2, 4)), ids=["a"])


def test_a_repeated_id_is_named() -> None:
    with pytest.raises(CodesError, match="'b' occurs 2 times"):
        check_unique_ids(np.array(["a", "b", "b"]))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused_with_their_row(value: float) -> None:
    with pytest.raises(CodesError, match="row 1"):
        Codes.from_values([[1.0, 2.0], [value, 2.0]])


def test_values_of_one_dimension_are_refused() -> None:
    with pytest.raises(CodesError, match=r"shape \(3,\)"):
        Codes.from_values([1.0, 2.0, 3.0])


def test_a_prefix_has_the_first_bits() -> None:
    values = np.random.default_rng(0).standard_normal((5, 20))
    codes = Codes.from_values(values)
    for bits in (1, 8, 13, 20):
        assert codes.prefix(bits).packed.tolist() == Codes.from_values(values[:, :bits]).packed.tolist()
    with pytest.raises(CodesError, match=r"20 bits.*21"):
        codes.prefix(21)
