"""Retrieval sets from codes files and from files of other programs: queries and database in every arrangement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from rmsh.codes import Codes, hamming, unpack
from rmsh.codes_file import CodesFile
from rmsh.core.errors import CodesError, ConfigError, DataError
from rmsh.retrieval_set import decode_codes, read_retrieval_set

SIGNS = np.where(np.random.default_rng(0).random((40, 8)) < 0.5, 1, -1)
TEXTS = -SIGNS
LABELS = np.eye(4, dtype=np.uint8)[np.arange(40) % 4]


def saved(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def as_signs(side: Any) -> np.ndarray:
    return unpack(side.codes.packed, side.codes.bits) * 2 - 1


def test_a_tenth_of_one_set_is_drawn_and_removed_from_the_database(tmp_path: Path) -> None:
    codes, labels = saved(tmp_path / "c.npz", codes=SIGNS), saved(tmp_path / "l.npz", labels=LABELS)
    found = read_retrieval_set(codes, labels)
    assert (len(found.query), len(found.database)) == (4, 36)
    assert not set(found.query.codes.ids) & set(found.database.codes.ids)
    assert "4 of 40 items were drawn as queries (seed 0) and removed from the database" in found.notes[-1]
    assert "not trained on them" in found.notes[-1]
    rows = found.query.codes.ids.astype(int)
    assert (as_signs(found.query) == SIGNS[rows]).all()
    assert (found.query.labels == LABELS[rows]).all()


def test_the_same_rows_are_drawn_again(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", codes=SIGNS, labels=LABELS)
    first, second = (read_retrieval_set(codes, queries=5).query.codes.ids.tolist() for _ in range(2))
    assert first == second
    assert len(first) == 5


def test_queries_and_database_of_one_file(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", qB=SIGNS[:3], rB=SIGNS[3:], qL=LABELS[:3], rL=LABELS[3:])
    found = read_retrieval_set(codes)
    assert (as_signs(found.query) == SIGNS[:3]).all()
    assert (found.database.labels == LABELS[3:]).all()


@pytest.mark.parametrize("name", ["mine.npy", "mine.npz", "mine.mat"])
def test_the_only_matrix_of_a_file_is_used_whatever_its_name(tmp_path: Path, name: str) -> None:
    writers = {".npy": np.save, ".npz": lambda p, v: np.savez(p, mine=v), ".mat": lambda p, v: savemat(p, {"mine": v})}
    writers[name[-4:]](tmp_path / name, SIGNS)
    found = read_retrieval_set(tmp_path / name, saved(tmp_path / "l.npz", some=LABELS))
    assert found.notes[0] == f"codes were taken from key 'mine' (40 x 8) of {name}: -1 and +1"
    assert found.notes[1] == "labels were taken from key 'some' (40 x 4) of l.npz"


def test_codes_of_training_items_and_other_matrices_are_ignored(tmp_path: Path) -> None:
    found = read_retrieval_set(
        saved(tmp_path / "c.npz", B=SIGNS, B_tr=TEXTS, epoch=np.array([3])), saved(tmp_path / "l.npz", L=LABELS)
    )
    assert (as_signs(found.database) == SIGNS[found.database.codes.ids.astype(int)]).all()


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"first": SIGNS, "second": SIGNS}, r"key 'first' \(40 x 8\).*name the codes 'codes'"),
        ({"qB": SIGNS, "query": SIGNS, "rB": SIGNS}, r"match the codes: .*'qB'.*'query'.*remove one"),
        ({"qB": SIGNS, "labels": LABELS}, "'query_codes' and 'database_codes'"),
        ({"codes": SIGNS, "other": LABELS}, "name the labels 'labels'"),
    ],
)
def test_keys_that_do_not_say_what_is_meant_are_refused(tmp_path: Path, arrays: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        read_retrieval_set(saved(tmp_path / "c.npz", **arrays))


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder"):
        read_retrieval_set(tmp_path)
    with pytest.raises(DataError, match="does not exist"):
        read_retrieval_set(tmp_path / "none.npz")


def test_labels_in_other_parts_than_the_codes_are_refused(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", qB=SIGNS[:3], rB=SIGNS[3:])
    with pytest.raises(DataError, match="query"):
        read_retrieval_set(codes, saved(tmp_path / "l.npz", labels=LABELS))


def test_drawing_queries_where_they_are_given_is_refused(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", qB=SIGNS[:3], rB=SIGNS[3:], qL=LABELS[:3], rL=LABELS[3:])
    with pytest.raises(ConfigError, match="--queries is 5"):
        read_retrieval_set(codes, queries=5)


def test_labels_of_another_number_of_items_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"\(39, 4\) for 40 items"):
        read_retrieval_set(saved(tmp_path / "c.npz", codes=SIGNS, labels=LABELS[:39]))


@pytest.mark.parametrize("queries", [0, 40])
def test_an_impossible_number_of_queries_is_refused(tmp_path: Path, queries: int) -> None:
    codes = saved(tmp_path / "c.npz", codes=SIGNS, labels=LABELS)
    with pytest.raises(DataError, match=f"{queries} .*40"):
        read_retrieval_set(codes, queries=queries)


def test_a_direction_needs_a_codes_file(tmp_path: Path) -> None:
    codes = saved(tmp_path / "c.npz", codes=SIGNS, labels=LABELS)
    with pytest.raises(ConfigError, match="--direction is 'i2t'"):
        read_retrieval_set(codes, direction="i2t")


TWELVE_BITS = np.random.default_rng(0).random((20, 12)) < 0.5


@pytest.mark.parametrize(
    ("values", "reading"),
    [
        (TWELVE_BITS, "0 and 1"),
        (TWELVE_BITS.astype(np.uint8), "0 and 1"),
        (TWELVE_BITS.astype(np.float64), "0 and 1"),
        (TWELVE_BITS * 2 - 1, "-1 and +1"),
        (sparse.csr_array(TWELVE_BITS * 2.0 - 1), "-1 and +1"),
        ((TWELVE_BITS * 2 - 1) * 0.7, "signs of numbers; 0 counts as +1"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.dtype),
)
def test_every_form_of_a_bit_is_read(values: Any, reading: str) -> None:
    found, told = decode_codes(values)
    assert (unpack(found.packed, 12) == TWELVE_BITS).all()
    assert told == reading


@pytest.mark.parametrize("order", ["little", "big"])
def test_packed_codes_of_either_bit_order_keep_their_distances(order: Any) -> None:
    codes = np.random.default_rng(0).random((9, 16)) < 0.5
    found, told = decode_codes(np.packbits(codes, axis=1, bitorder=order))
    assert (hamming(found.packed, found.packed) == (codes[:, None] != codes[None]).sum(axis=2)).all()
    assert told == "16 bits packed into bytes"


def test_zero_among_signs_counts_as_one() -> None:
    assert unpack(decode_codes(np.array([[-1, 0, 1]]))[0].packed, 3).tolist() == [[False, True, True]]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (np.zeros(3), r"float64 of shape \(3,\)"),
        (np.zeros((0, 3)), r"shape \(0, 3\)"),
        (np.array([["a"]]), "codes are numbers"),
        (np.ones((2, 513)), r"\(2, 513\).* at most 512"),
        (np.array([[0.5, -np.inf]]), "row 0 are not finite"),
        (np.array([[0.2, 0.9]]), "0.2 to 0.9, none of them negative"),
        (np.array([[9, 255]]), "9 to 255, none of them negative"),
        (np.full((1, 65), 9, dtype=np.uint8), "9 to 9, none of them negative"),
    ],
)
def test_invalid_codes_are_refused(values: Any, sentence: str) -> None:
    with pytest.raises(CodesError, match=f"mine: .*{sentence}"):
        decode_codes(values, source="mine")


CODED: dict[str, Any] = {
    "ids": [f"é{row}" for row in range(12)],
    "bits": 10,
    "image": Codes.from_values(np.random.default_rng(0).standard_normal((12, 10))).packed,
    "text": Codes.from_values(np.random.default_rng(1).standard_normal((12, 10))).packed,
    "labels": np.eye(3, dtype=np.uint8)[np.arange(12) % 3],
    "split": ["query"] * 3 + ["database"] * 8 + [""],
}


def test_a_codes_file_with_a_split(tmp_path: Path) -> None:
    CodesFile(**CODED).save(tmp_path / "codes.npz")
    found = read_retrieval_set(tmp_path / "codes.npz", direction="t2i")
    assert found.query.codes.ids.tolist() == CODED["ids"][:3]
    assert (found.query.codes.packed == CODED["text"][:3]).all()
    assert (found.database.codes.packed == CODED["image"][3:11]).all()
    assert found.notes[-1] == "the direction is t2i"


def test_a_codes_file_without_a_split_has_queries_drawn(tmp_path: Path) -> None:
    CodesFile(**{**CODED, "split": None}).save(tmp_path / "codes.npz")
    found = read_retrieval_set(tmp_path / "codes.npz", queries=2)
    assert (len(found.query), len(found.database)) == (2, 10)
    assert "2 of 12 items were drawn" in found.notes[1]


def test_a_codes_file_has_its_labels(tmp_path: Path) -> None:
    CodesFile(**CODED).save(tmp_path / "codes.npz")
    with pytest.raises(ConfigError, match=r"codes\.npz .*omit .*labels\.npz"):
        read_retrieval_set(tmp_path / "codes.npz", tmp_path / "labels.npz")


def test_drawing_queries_of_a_codes_file_with_a_split_is_refused(tmp_path: Path) -> None:
    CodesFile(**CODED).save(tmp_path / "codes.npz")
    with pytest.raises(ConfigError, match="--queries is 2"):
        read_retrieval_set(tmp_path / "codes.npz", queries=2)


def test_an_unknown_direction_of_a_codes_file_is_refused(tmp_path: Path) -> None:
    CodesFile(**CODED).save(tmp_path / "codes.npz")
    with pytest.raises(ConfigError, match="'sideways'"):
        read_retrieval_set(tmp_path / "codes.npz", direction="sideways")


def test_codes_come_from_a_binary_index_of_faiss(tmp_path: Path) -> None:
    faiss = pytest.importorskip("faiss", reason="faiss is not installed")
    packed = np.random.default_rng(0).integers(0, 256, (40, 4), dtype=np.uint8)
    plain, mapped = faiss.IndexBinaryFlat(32), faiss.IndexBinaryIDMap(faiss.IndexBinaryFlat(32))
    plain.add(packed)
    mapped.add_with_ids(packed, np.arange(100, 140))
    labels = saved(tmp_path / "l.npz", labels=LABELS)
    for index in (plain, mapped):
        faiss.write_index_binary(index, str(tmp_path / "codes.faiss"))
        found = read_retrieval_set(tmp_path / "codes.faiss", labels)
        assert (found.query.codes.packed == packed[found.query.codes.ids.astype(int)]).all()
        assert "32 bits packed into bytes" in found.notes[0]


def test_other_indexes_of_faiss_and_damaged_files_are_refused(tmp_path: Path) -> None:
    faiss = pytest.importorskip("faiss", reason="faiss is not installed")
    labels = saved(tmp_path / "l.npz", labels=LABELS)
    faiss.write_index_binary(faiss.IndexBinaryHNSW(32, 4), str(tmp_path / "codes.faiss"))
    with pytest.raises(DataError, match="is an IndexBinaryHNSW; only flat binary indexes are read"):
        read_retrieval_set(tmp_path / "codes.faiss", labels)
    (tmp_path / "codes.faiss").write_bytes(b"IBxF")
    with pytest.raises(DataError, match=r"codes\.faiss cannot be read as \.faiss"):
        read_retrieval_set(tmp_path / "codes.faiss", labels)
