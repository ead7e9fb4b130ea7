"""Files of other programs: keys are guessed from their names, guesses are told, doubt is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from rmsh.codes import unpack
from rmsh.core.errors import CodesError, DataError
from rmsh.data.readers.foreign_codes import find_codes, find_labels, key_meaning

BITS = np.random.default_rng(0).random((6, 10)) < 0.5
SIGNS = np.where(BITS, 1, -1)
LABELS = np.eye(3, dtype=np.uint8)[[0, 1, 2, 0, 1, 2]]


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("codes", ("all", "codes")),
        ("B", ("all", "codes")),
        ("image", ("all", "image")),
        ("text_codes", ("all", "text")),
        ("qB", ("query", "codes")),
        ("rB", ("database", "codes")),
        ("query", ("query", "codes")),
        ("database", ("database", "codes")),
        ("retrieval_codes", ("database", "codes")),
        ("B_te", ("query", "codes")),
        ("qBX", ("query", "image")),
        ("rBY", ("database", "text")),
        ("query_img", ("query", "image")),
        ("retrieval_txt", ("database", "text")),
        ("q_i", ("query", "image")),
        ("r_t", ("database", "text")),
        ("qL", ("query", "labels")),
        ("database_labels", ("database", "labels")),
        ("targets", ("all", "labels")),
        ("loss", None),
    ],
)
def test_a_key_stands_for_a_part_and_a_kind(key: str, meant: tuple[str, str] | None) -> None:
    assert key_meaning(key) == meant


def test_codes_are_found_by_key_and_told(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", qB=SIGNS[:2], rB=SIGNS[2:], epoch=np.array([3]))
    found = find_codes(tmp_path / "a.npz")
    assert (unpack(found.codes["query", "codes"].packed, 10) == BITS[:2]).all()
    assert len(found.codes["database", "codes"]) == 4
    assert found.notes[0] == "query codes were taken from key 'qB' (2 x 10) of a.npz: -1 and +1"


@pytest.mark.parametrize("name", ["mine.npy", "mine.npz", "mine.mat"])
def test_the_only_matrix_of_a_file_is_taken_whatever_its_name(tmp_path: Path, name: str) -> None:
    writers = {".npy": np.save, ".npz": lambda p, v: np.savez(p, mine=v), ".mat": lambda p, v: savemat(p, {"mine": v})}
    writers[name[-4:]](tmp_path / name, SIGNS)
    assert list(find_codes(tmp_path / name).codes) == [("all", "codes")]


def test_packed_codes_need_their_bits_where_they_do_not_fill_a_byte(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", codes=np.packbits(BITS, axis=1))
    assert find_codes(tmp_path / "a.npz", bits=10).codes["all", "codes"].bits == 10


def test_values_that_are_no_codes_are_refused_by_file_and_key(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", codes=np.full((2, 3), 7))
    with pytest.raises(CodesError, match=r"a\.npz, key 'codes': whole numbers from 7 to 7"):
        find_codes(tmp_path / "a.npz")


def test_keys_that_say_nothing_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", first=SIGNS, second=SIGNS)
    with pytest.raises(DataError, match=r"no key that stands for codes; it holds key 'first' \(6 x 10\)"):
        find_codes(tmp_path / "a.npz")


def test_two_keys_of_one_meaning_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", qB=SIGNS, query=SIGNS)
    with pytest.raises(DataError, match="Two keys stand for query codes"):
        find_codes(tmp_path / "a.npz")


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", SIGNS)
    with pytest.raises(DataError, match="is a folder; give one file"):
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
    with pytest.raises(DataError, match="labels for database and query, and none for all"):
        found.of("all")


def test_class_numbers_have_the_same_columns_in_all_parts(tmp_path: Path) -> None:
    np.savez(tmp_path / "l.npz", query_labels=np.array([0, 1]), database_labels=np.array([4, 0, 2]))
    found = find_labels(tmp_path / "l.npz")
    assert (found.of("query").shape, found.of("database").shape) == ((2, 5), (3, 5))


def test_a_column_of_bytes_without_class_names_holds_class_numbers(tmp_path: Path) -> None:
    np.savez(tmp_path / "l.npz", labels=np.array([[0], [4], [2]], dtype=np.uint8))
    assert find_labels(tmp_path / "l.npz").of("all").argmax(axis=1).tolist() == [0, 4, 2]


def test_the_only_list_of_a_file_is_its_labels(tmp_path: Path) -> None:
    np.save(tmp_path / "mine.npy", np.array([0, 2, 1]))
    assert find_labels(tmp_path / "mine.npy").of("all").argmax(axis=1).tolist() == [0, 2, 1]


def test_no_key_of_labels_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "l.npz", first=LABELS, second=LABELS)
    with pytest.raises(DataError, match="no key that stands for labels"):
        find_labels(tmp_path / "l.npz")
