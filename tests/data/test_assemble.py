"""Pairs from matrices: the rows of all are the same items, and each matrix holds what its role allows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import sparse

from rmsh.core.errors import DataError
from rmsh.data.readers.feature_files import assemble_files

if TYPE_CHECKING:
    from rmsh.data.pairs import Pairs
    from rmsh.data.splits import Split


def assembled(folder: Path, **matrices: object) -> tuple[Pairs, Split | None, tuple[str, ...]]:
    np.savez(folder / "data.npz", **matrices)
    return assemble_files([folder / "data.npz"], {}, source="data.npz")


def bag(rows: int = 20, words: int = 30) -> np.ndarray:
    return (np.arange(rows)[:, None] == np.arange(words)).astype(np.uint8)


def test_every_role_becomes_its_column(tmp_path: Path):
    pairs, split, _ = assembled(
        tmp_path, images=np.ones((3, 2)), texts=["a", "b", "c"], labels=np.eye(3), ids=[7, 8, 9], names=["x", "y", "z"]
    )
    assert pairs.ids.tolist() == ["7", "8", "9"]
    assert pairs.texts.tolist() == ["a", "b", "c"]
    assert pairs.class_names == ("x", "y", "z")
    assert split is None


def test_items_without_ids_are_numbered(tmp_path: Path):
    assert assembled(tmp_path, labels=np.eye(2))[0].ids.tolist() == ["0", "1"]


@pytest.mark.parametrize("ids", [np.array([[5.0], [6.0]]), np.array([[5, 6]]), np.array([b"5", b"6"])])
def test_ids_may_be_a_row_or_a_column_of_whole_numbers_or_bytes(tmp_path: Path, ids):
    assert assembled(tmp_path, labels=np.eye(2), ids=ids)[0].ids.tolist() == ["5", "6"]


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [
        ([0.5, 1.5], "values of dtype float64 were found; strings or whole numbers are expected"),
        ([1.0, np.inf], "strings or whole numbers are expected"),
        ([b"a", b"\xff"], "the strings are not in UTF-8"),
        ([[1, 2], [3, 4]], "4 of ids"),
        (["a", "a"], r"key 'ids': the ids of these rows occur more than once: row 0 \('a'\), row 1 \('a'\)"),
    ],
)
def test_ids_that_are_no_list_of_different_names_are_refused(tmp_path: Path, ids, sentence):
    with pytest.raises(DataError, match=sentence):
        assembled(tmp_path, labels=np.eye(2), ids=ids)


def test_class_names_in_a_matrix_are_refused(tmp_path: Path):
    with pytest.raises(DataError, match=r"key 'names': the shape is \(2, 2\); a list of strings"):
        assembled(tmp_path, labels=np.eye(2), names=np.eye(2))


def test_a_thin_binary_text_matrix_becomes_sparse(tmp_path: Path):
    texts = assembled(tmp_path, tags=bag())[0].texts
    assert isinstance(texts, sparse.csr_array)
    np.testing.assert_array_equal(texts.toarray(), bag())


@pytest.mark.parametrize(
    ("role", "matrix"),
    [("images", bag()), ("tags", bag() * 0.5), ("tags", np.ones((20, 30))), ("tags", bag(9, 10))],
    ids=["images", "not binary", "full", "one in ten"],
)
def test_other_matrices_stay_dense(tmp_path: Path, role, matrix):
    pairs = assembled(tmp_path, **{role: matrix})[0]
    assert isinstance(pairs.images if role == "images" else pairs.texts, np.ndarray)


def test_texts_without_words_are_counted(tmp_path: Path):
    words = bag()
    words[[3, 5]] = 0
    assert assembled(tmp_path, tags=words)[2][-1] == "2 of 20 texts have no words"


def test_matrices_of_different_lengths_are_refused_with_all_shapes(tmp_path: Path):
    with pytest.raises(
        DataError, match=r"100 of images \(key 'images' \(100 x 8\) of data.npz\), 99 of labels .*in each.$"
    ):
        assembled(tmp_path, images=np.ones((100, 8)), labels=np.ones((99, 3)))


def test_a_transposed_matrix_is_recognised(tmp_path: Path):
    with pytest.raises(
        DataError, match=r"Perhaps transposed \(features x items\): .*data.npz, key 'images'; transpose it"
    ):
        assembled(tmp_path, images=np.ones((8, 100)), labels=np.ones((100, 3)))


def test_matrices_that_are_all_transposed_are_recognised(tmp_path: Path):
    with pytest.raises(DataError, match=r"Perhaps transposed .*'images' and .*'labels'; transpose it"):
        assembled(tmp_path, images=np.ones((8, 100)), labels=np.ones((3, 100)))


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        ({"images": np.full((2, 2), np.nan)}, r"data.npz, key 'images': .* row 0, column 0, row 1, column 0"),
        ({"labels": np.full((2, 2), 3)}, r"data.npz, key 'labels': labels are 0 or 1, .* row 0, column 0 \(3\)"),
        ({"images": np.ones(2)}, r"key 'images': the shape is \(2,\)"),
        ({"images": np.ones((2, 2), dtype=complex)}, r"key 'images': values of dtype complex128"),
        ({"tags": np.ones((2, 2), dtype=complex)}, r"key 'tags': values of dtype complex128"),
        ({"labels": np.float64(1)}, r"key 'labels' is a single value; a matrix"),
        ({"labels": np.ones((0, 2))}, r"the matrices have no rows"),
    ],
)
def test_a_wrong_matrix_is_named_by_its_file_and_key(tmp_path: Path, matrix, sentence):
    with pytest.raises(DataError, match=sentence):
        assembled(tmp_path, **matrix)


def test_parts_follow_each_other_and_make_a_split(tmp_path: Path):
    pairs, split, _ = assembled(
        tmp_path,
        I_te=np.zeros((1, 2)),
        I_tr=np.ones((3, 2)),
        T_te=bag(1),
        T_tr=bag(3),
        L_te=[[1]],
        L_tr=np.ones((3, 1)),
    )
    assert pairs.images[:, 0].tolist() == [1, 1, 1, 0]
    assert pairs.texts.shape == (4, 30)
    assert split.database.tolist() == split.train.tolist() == [0, 1, 2]
    assert split.query.tolist() == [3]


def test_parts_must_agree_each_and_not_only_in_sum(tmp_path: Path):
    with pytest.raises(DataError, match=r"3 of images \(key 'I_tr' .*2 of labels \(key 'L_tr'"):
        assembled(tmp_path, I_tr=np.ones((3, 2)), I_te=np.ones((1, 2)), L_tr=np.ones((2, 1)), L_te=np.ones((2, 1)))


def test_a_part_alone_is_no_split(tmp_path: Path):
    pairs, split, _ = assembled(tmp_path, I_tr=np.ones((3, 2)), L_tr=np.ones((3, 1)))
    assert len(pairs) == 3
    assert split is None


def test_parts_of_different_width_are_refused(tmp_path: Path):
    with pytest.raises(
        DataError, match=r"The parts of images have different widths: .*'I_tr' \(3 x 2\).*'I_te' \(1 x 5\)"
    ):
        assembled(tmp_path, I_tr=np.ones((3, 2)), I_te=np.ones((1, 5)))
