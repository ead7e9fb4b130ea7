"""Codes and labels of other programs: parts and kinds by key, values by their form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import savemat

from rmsh.codes import unpack
from rmsh.core.errors import CodesError, DataError
from rmsh.data.readers.code_files import decode_codes, decode_labels, find_codes, find_labels
from rmsh.data.readers.matrix_files import MatrixKey

BITS = np.random.default_rng(0).random((6, 10)) < 0.5


SIGNS = np.where(BITS, 1, -1)


LABELS = np.eye(3, dtype=np.uint8)[[0, 1, 2, 0, 1, 2]]


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("codes", ("all", "codes")),
        ("B", ("all", "codes")),
        ("image", ("all", "images")),
        ("text_codes", ("all", "text codes")),
        ("qB", ("query", "codes")),
        ("rB", ("database", "codes")),
        ("query", ("query", "codes")),
        ("database", ("database", "codes")),
        ("retrieval_codes", ("database", "codes")),
        ("B_te", ("query", "codes")),
        ("qBX", ("query", "image codes")),
        ("rBY", ("database", "text codes")),
        ("query_img", ("query", "images")),
        ("retrieval_txt", ("database", "texts")),
        ("q_i", ("query", "images")),
        ("r_t", ("database", "texts")),
        ("qL", ("query", "labels")),
        ("database_labels", ("database", "labels")),
        ("targets", ("all", "labels")),
        ("loss", None),
    ],
)
def test_a_key_names_a_part_and_a_kind(key: str, meant: tuple[str, str] | None) -> None:
    assert MatrixKey(Path("a.npz"), key, (1, 1)).meaning == meant


@pytest.mark.parametrize("keys", [("image", "text"), ("image_codes", "text_codes"), ("I", "T"), ("BX", "BY")])
def test_codes_of_both_modalities_are_found(tmp_path: Path, keys: tuple[str, str]) -> None:
    np.savez(tmp_path / "a.npz", **dict.fromkeys(keys, SIGNS), B_tr=SIGNS)
    assert [*find_codes(tmp_path / "a.npz")[0]] == [("all", "image"), ("all", "text")]


def test_codes_are_found_by_key_and_noted(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", qB=SIGNS[:2], rB=SIGNS[2:], epoch=np.array([3]))
    codes, notes = find_codes(tmp_path / "a.npz")
    assert (unpack(codes["query", "codes"].packed, 10) == BITS[:2]).all()
    assert len(codes["database", "codes"]) == 4
    assert notes[0] == "query codes were taken from key 'qB' (2 x 10) of a.npz: -1 and +1"


@pytest.mark.parametrize("name", ["mine.npy", "mine.npz", "mine.mat"])
def test_the_only_matrix_of_a_file_is_used_whatever_its_name(tmp_path: Path, name: str) -> None:
    writers = {".npy": np.save, ".npz": lambda p, v: np.savez(p, mine=v), ".mat": lambda p, v: savemat(p, {"mine": v})}
    writers[name[-4:]](tmp_path / name, SIGNS)
    assert list(find_codes(tmp_path / name)[0]) == [("all", "codes")]


def test_packed_codes_that_do_not_fill_a_byte_need_the_number_of_bits(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", codes=np.packbits(BITS, axis=1))
    assert find_codes(tmp_path / "a.npz", bits=10)[0]["all", "codes"].bits == 10


def test_an_error_about_codes_names_file_and_key(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", codes=np.full((2, 3), 7))
    with pytest.raises(CodesError, match=r"a\.npz, key 'codes': .* from 7 to 7"):
        find_codes(tmp_path / "a.npz")


def test_meaningless_keys_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", first=SIGNS, second=SIGNS)
    with pytest.raises(DataError, match=r"no key for codes.* key 'first' \(6 x 10\)"):
        find_codes(tmp_path / "a.npz")


def test_two_keys_of_one_meaning_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", qB=SIGNS, query=SIGNS)
    with pytest.raises(DataError, match=r"query codes: .*remove one"):
        find_codes(tmp_path / "a.npz")


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", SIGNS)
    with pytest.raises(DataError, match="is a folder"):
        find_codes(tmp_path)
    with pytest.raises(DataError, match="does not exist"):
        find_codes(tmp_path / "none.npz")


def test_labels_come_packed_with_ids_and_class_names(tmp_path: Path) -> None:
    ids = np.array(list("abcdef"))
    np.savez(tmp_path / "l.npz", labels=np.packbits(LABELS, axis=1), names=["x", "y", "z"], ids=ids)
    found = find_labels(tmp_path / "l.npz")
    assert (found.of("all") == LABELS).all()
    assert found.ids is not None
    assert found.ids.tolist() == ids.tolist()
    assert found.notes == ("labels were taken from key 'labels' (6 x 1) of l.npz: 3 classes packed into bytes",)


@pytest.mark.parametrize("keys", [("qL", "rL"), ("query", "database"), ("query_labels", "database_labels")])
def test_labels_come_in_parts(tmp_path: Path, keys: tuple[str, str]) -> None:
    np.savez(tmp_path / "l.npz", **{keys[0]: LABELS[:2], keys[1]: LABELS[2:]})
    found = find_labels(tmp_path / "l.npz")
    assert (len(found.of("query")), len(found.of("database", "all"))) == (2, 4)
    with pytest.raises(DataError, match=r"database and query.* none for all"):
        found.of("all")


def test_class_numbers_have_the_same_columns_in_all_parts(tmp_path: Path) -> None:
    np.savez(tmp_path / "l.npz", query_labels=np.array([0, 1]), database_labels=np.array([4, 0, 2]))
    found = find_labels(tmp_path / "l.npz")
    assert (found.of("query").shape, found.of("database").shape) == ((2, 5), (3, 5))


def test_a_column_of_bytes_without_class_names_contains_class_numbers(tmp_path: Path) -> None:
    np.savez(tmp_path / "l.npz", labels=np.array([[0], [4], [2]], dtype=np.uint8))
    assert find_labels(tmp_path / "l.npz").of("all").argmax(axis=1).tolist() == [0, 4, 2]


def test_the_only_list_of_a_file_is_its_labels(tmp_path: Path) -> None:
    np.save(tmp_path / "mine.npy", np.array([0, 2, 1]))
    assert find_labels(tmp_path / "mine.npy").of("all").argmax(axis=1).tolist() == [0, 2, 1]


def test_no_key_of_labels_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "l.npz", first=LABELS, second=LABELS)
    with pytest.raises(DataError, match="no key for labels"):
        find_labels(tmp_path / "l.npz")


TWELVE_BITS = np.random.default_rng(0).random((20, 12)) < 0.5


@pytest.mark.parametrize(
    ("values", "reading"),
    [
        (TWELVE_BITS, "0 and 1"),
        (TWELVE_BITS.astype(np.int8), "0 and 1"),
        (TWELVE_BITS.astype(np.float64), "0 and 1"),
        (TWELVE_BITS * 2 - 1, "-1 and +1"),
        (TWELVE_BITS * 2.0 - 1, "-1 and +1"),
        (sparse.csr_array(TWELVE_BITS * 2.0 - 1), "-1 and +1"),
        ((TWELVE_BITS * 2 - 1) * 0.7, "signs of real numbers"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.dtype),
)
def test_every_form_of_a_bit_is_read(values: np.ndarray, reading: str) -> None:
    found, told = decode_codes(values)
    assert (found == TWELVE_BITS).all()
    assert told == reading


def test_zero_among_signs_counts_as_one_and_is_noted() -> None:
    found, told = decode_codes(np.array([[-1, 0, 1]]))
    assert (found.tolist(), told) == ([[False, True, True]], "-1 and +1; 0 counts as +1")


@given(bits=st.integers(1, 64), order=st.sampled_from(["little", "big"]))
def test_packed_codes_of_either_bit_order_keep_their_distances(bits: int, order: str) -> None:
    codes = np.random.default_rng(bits).random((9, bits)) < 0.5
    codes[0] = True  # so that no padding looks like a bit
    found, _ = decode_codes(np.packbits(codes, axis=1, bitorder=order), bits)  # type: ignore[call-overload]
    distances = [(some[:, None] != some[None]).sum(axis=2) for some in (codes, found)]
    assert (distances[0] == distances[1]).all()
    assert found.shape == codes.shape


def test_packed_codes_fill_their_bytes_unless_bits_are_given() -> None:
    found, told = decode_codes(np.array([[255, 3]], dtype=np.uint8))
    assert (found.shape, told) == ((1, 16), "16 bits packed into bytes")


def test_bytes_of_zero_and_one_are_decided_by_the_number_of_bits() -> None:
    values = np.array([[1, 0], [0, 1]], dtype=np.uint8)
    assert decode_codes(values, 2)[0].tolist() == [[True, False], [False, True]]
    assert decode_codes(values, 16)[0].shape == (2, 16)
    with pytest.raises(CodesError, match=r"2 bits or 16 packed bits.*--bits"):
        decode_codes(values)


def test_bytes_of_zero_and_one_too_wide_to_be_packed_are_bits() -> None:
    assert decode_codes(np.ones((2, 65), dtype=np.uint8))[0].shape == (2, 65)


@pytest.mark.parametrize(
    ("values", "bits", "sentence"),
    [
        (np.zeros(3), None, r"float64 of shape \(3,\)"),
        (np.zeros((0, 3)), None, r"shape \(0, 3\)"),
        (np.array([["a"]]), None, "codes are numbers"),
        (np.ones((2, 513)), None, "513 columns.* at most 512"),
        (np.ones((2, 12)), 16, "12 columns.* 16"),
        (np.array([[0, 7]]), None, "from 0 to 7"),
        (np.array([[0.5, -np.inf]]), None, "row 0 are not finite"),
        (np.array([[0.2, 0.9]]), None, "none of them negative"),
        (np.array([[9, 9]], dtype=np.uint8), 5, "16 packed bits.* 5 were"),
        (np.array([[9, 255]], dtype=np.uint8), 12, "after bit 12 is not zero"),
    ],
)
def test_invalid_codes_are_refused(values: np.ndarray, bits: int | None, sentence: str) -> None:
    with pytest.raises(CodesError, match=f"mine: .*{sentence}"):
        decode_codes(values, bits, source="mine")


def test_labels_are_read_from_every_form() -> None:
    labels = (np.random.default_rng(1).random((8, 11)) < 0.4).astype(np.uint8)
    for values, classes in ((labels, None), (labels, 11), (sparse.csr_array(labels), None), (labels == 1, None)):
        assert (decode_labels(values, classes)[0] == labels).all()
    found, told = decode_labels(np.packbits(labels, axis=1), 11)
    assert (found == labels).all()
    assert told == "11 classes packed into bytes"


@pytest.mark.parametrize("values", [np.array([2, 0]), np.array([[2], [0]]), np.array([2.0, 0.0])])
def test_class_numbers_become_one_column_per_class(values: np.ndarray) -> None:
    assert decode_labels(values)[0].tolist() == [[0, 0, 1], [1, 0, 0]]
    found, told = decode_labels(values, 4)
    assert (found.tolist(), told) == ([[0, 0, 1, 0], [1, 0, 0, 0]], "class numbers")


def test_a_single_column_of_zero_and_one_is_one_class() -> None:
    assert decode_labels(np.array([[1], [0]]))[0].tolist() == [[1], [0]]


@pytest.mark.parametrize("values", [np.array([0.5, 1]), np.array([-1, 1]), np.array([0, 1 << 16])])
def test_invalid_class_numbers_are_refused(values: np.ndarray) -> None:
    with pytest.raises(DataError, match=r"class numbers .* 0 to 65535"):
        decode_labels(values)


@pytest.mark.parametrize("values", [np.array([[0, 2]]), np.array([["a"]]), np.zeros((1, 1, 1)), np.array(3)])
def test_invalid_labels_are_refused(values: np.ndarray) -> None:
    with pytest.raises(DataError, match="labels"):
        decode_labels(values)


def test_packed_labels_of_another_width_are_refused() -> None:
    with pytest.raises(DataError, match="17 classes need uint8"):
        decode_labels(np.array([[255, 1]], dtype=np.uint8), 17)
