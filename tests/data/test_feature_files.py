"""Pairs from matrix files: roles by name, matching rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from rmsh.core.errors import DataError
from rmsh.data.pairs import Pairs
from rmsh.data.readers.matrix_files import (
    MatrixKey,
    Role,
    Selection,
    read_matrix_pairs,
    select_matrices,
)
from rmsh.data.splits import Split


def meaning(key: str) -> tuple[str, str] | None:
    return MatrixKey(Path("data.mat"), key, (9, 2)).meaning


@pytest.mark.parametrize(
    ("role", "names"),
    [
        ("images", "XAll IAll images Image IMG image_features image-features"),
        ("texts", "YAll TAll tags texts text txt captions text_features"),
        ("labels", "LAll labels label L LABELS"),
        ("ids", "ids id FAll"),
        ("class_names", "class_names names label_names"),
    ],
)
def test_names_of_whole_matrices_are_known_in_any_case(role: Role, names: str) -> None:
    assert {meaning(name) for name in names.split()} == {("all", role)}


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ("train", "I_tr T_tr L_tr image_train LTrain train/images"),
        ("query", "I_te T_te L_te I_test text_query query_labels"),
        ("database", "I_db T_db label_database images_retrieval"),
    ],
)
def test_names_of_parts_are_known(part: str, names: str) -> None:
    assert {(meaning(name) or "none")[0] for name in names.split()} == {part}


@pytest.mark.parametrize("name", ["param", "x", "y", "i", "t", "XTrain", "", "all", "codes", "query", "B_tr"])
def test_an_ambiguous_name_is_not_guessed(name: str) -> None:
    selected, notes = chosen(LAll=(9, 2), **{name: (9, 2)})
    assert [*selected] == ["labels"]
    assert notes[-1] == f"key {name!r} (9 x 2) of data.mat was not used"


def chosen(skip: tuple = (), **shapes: tuple[int, ...]) -> tuple[Selection, list[str]]:
    matrices = [MatrixKey(Path("data.mat"), key, shape) for key, shape in shapes.items()]
    return select_matrices(matrices, skip=skip, source="data.mat")


def keys(choice: tuple[Selection, list[str]]) -> dict[str, list[str]]:
    return {role: [matrix.key for matrix in by_part.values()] for role, by_part in choice[0].items()}


def test_guesses_and_unused_matrices_are_noted() -> None:
    choice = chosen(LAll=(20015, 24), XAll=(20015, 512), param=(1, 1))
    assert keys(choice) == {"images": ["XAll"], "labels": ["LAll"]}
    assert [*choice[0]["images"]] == ["all"]
    assert choice[1] == [
        "images were taken from key 'XAll' (20,015 x 512) of data.mat",
        "labels were taken from key 'LAll' (20,015 x 24) of data.mat",
        "key 'param' (1 x 1) of data.mat was not used",
    ]


def test_two_keys_that_fit_are_refused_by_name() -> None:
    with pytest.raises(DataError, match=r"images: key 'XAll' .* and key 'images'"):
        chosen(XAll=(9, 2), images=(9, 3))


def test_a_whole_matrix_next_to_a_part_is_refused() -> None:
    with pytest.raises(DataError, match=r"labels: key 'L_tr' .* and key 'LAll'"):
        chosen(L_tr=(9, 2), LAll=(12, 2))


def test_a_file_of_unknown_names_is_refused() -> None:
    with pytest.raises(DataError, match=r"images, texts or labels; .* key 'a' \(9 x 2\)"):
        chosen(a=(9, 2))
    with pytest.raises(DataError, match="the keys are none"):
        chosen()


def test_pixels_are_skipped_and_noted() -> None:
    choice = chosen(IAll=(224, 224, 3, 9), XAll=(9, 2))
    assert keys(choice) == {"images": ["XAll"]}
    assert "key 'IAll' (224 x 224 x 3 x 9) of data.mat was skipped: it has 4 dimensions" in choice[1][0]


def test_a_skipped_role_is_not_chosen_nor_noted() -> None:
    choice = chosen(skip=("images",), XAll=(9, 2), LAll=(9, 3))
    assert keys(choice) == {"labels": ["LAll"]}
    assert len(choice[1]) == 1


def test_class_names_without_labels_are_left_out() -> None:
    assert keys(chosen(skip=("labels",), XAll=(9, 2), LAll=(9, 3), names=(3,))) == {"images": ["XAll"]}


def test_parts_are_put_in_the_order_database_query() -> None:
    choice = chosen(I_te=(3, 2), I_tr=(9, 2), L_te=(3, 4), L_tr=(9, 4))
    assert keys(choice) == {"images": ["I_tr", "I_te"], "labels": ["L_tr", "L_te"]}
    assert [*choice[0]["images"]] == ["train", "query"]


def test_training_rows_next_to_a_database_are_skipped_and_noted() -> None:
    choice = chosen(I_tr=(5, 2), I_db=(9, 2), I_te=(3, 2))
    assert keys(choice) == {"images": ["I_db", "I_te"]}
    assert "key 'I_tr' (5 x 2) of data.mat was skipped" in choice[1][0]


def test_roles_in_different_parts_are_refused() -> None:
    with pytest.raises(DataError, match=r"different parts \(images for train and query, labels for all\)"):
        chosen(I_tr=(9, 2), I_te=(3, 2), LAll=(12, 4))


def assembled(folder: Path, **matrices: object) -> tuple[Pairs, Split | None, tuple[str, ...]]:
    np.savez(folder / "data.npz", **matrices)
    return read_matrix_pairs([folder / "data.npz"], source="data.npz")


def bag(rows: int = 20, words: int = 30) -> np.ndarray:
    return (np.arange(rows)[:, None] == np.arange(words)).astype(np.uint8)


def test_every_role_becomes_its_column(tmp_path: Path) -> None:
    pairs, split, _ = assembled(
        tmp_path, images=np.ones((3, 2)), texts=["a", "b", "c"], labels=np.eye(3), ids=[7, 8, 9], names=["x", "y", "z"]
    )
    assert pairs.ids.tolist() == ["7", "8", "9"]
    assert pairs.texts.tolist() == ["a", "b", "c"]
    assert pairs.class_names == ("x", "y", "z")
    assert split is None


def test_items_without_ids_are_numbered(tmp_path: Path) -> None:
    assert assembled(tmp_path, labels=np.eye(2))[0].ids.tolist() == ["0", "1"]


@pytest.mark.parametrize("ids", [np.array([[5.0], [6.0]]), np.array([[5, 6]]), np.array([b"5", b"6"])])
def test_ids_may_be_a_row_or_a_column_of_whole_numbers_or_bytes(tmp_path: Path, ids: Any) -> None:
    assert assembled(tmp_path, labels=np.eye(2), ids=ids)[0].ids.tolist() == ["5", "6"]


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [
        ([0.5, 1.5], "dtype is float64"),
        ([1.0, np.inf], "dtype is float64"),
        ([b"a", b"\xff"], "UTF-8"),
        ([[1, 2], [3, 4]], "4 of ids"),
        (["a", "a"], r"key 'ids': the ids of these rows occur more than once: row 0 \('a'\), row 1 \('a'\)"),
    ],
)
def test_invalid_ids_are_refused(tmp_path: Path, ids: Any, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        assembled(tmp_path, labels=np.eye(2), ids=ids)


def test_class_names_in_a_matrix_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"key 'names': the shape is \(2, 2\); a list of strings"):
        assembled(tmp_path, labels=np.eye(2), names=np.eye(2))


def test_a_thin_binary_text_matrix_becomes_sparse(tmp_path: Path) -> None:
    texts = assembled(tmp_path, tags=bag())[0].texts
    assert isinstance(texts, sparse.csr_array)
    np.testing.assert_array_equal(texts.toarray(), bag())


@pytest.mark.parametrize(
    ("role", "matrix"),
    [("images", bag()), ("tags", bag() * 0.5), ("tags", np.ones((20, 30))), ("tags", bag(9, 10))],
    ids=["images", "not binary", "full", "one in ten"],
)
def test_other_matrices_stay_dense(tmp_path: Path, role: Role, matrix: Any) -> None:
    pairs = assembled(tmp_path, **{role: matrix})[0]
    assert isinstance(pairs.images if role == "images" else pairs.texts, np.ndarray)


def test_texts_without_words_are_counted(tmp_path: Path) -> None:
    words = bag()
    words[[3, 5]] = 0
    assert assembled(tmp_path, tags=words)[2][-1] == "2 of 20 texts have no words"


def test_matrices_of_different_lengths_are_refused_with_all_shapes(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"100 of images \(key 'images' \(100 x 8\) of data.npz\), 99 of labels .*per item.$"
    ):
        assembled(tmp_path, images=np.ones((100, 8)), labels=np.ones((99, 3)))


def test_a_transposed_matrix_is_recognised(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"transposed .*data.npz, key 'images'; transpose it"):
        assembled(tmp_path, images=np.ones((8, 100)), labels=np.ones((100, 3)))


def test_matrices_that_are_all_transposed_are_recognised(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"transposed .*'images' and .*'labels'; transpose it"):
        assembled(tmp_path, images=np.ones((8, 100)), labels=np.ones((3, 100)))


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        ({"images": np.full((2, 2), np.nan)}, r"data.npz, key 'images': .* row 0, column 0, row 1, column 0"),
        ({"labels": np.full((2, 2), 3)}, r"data.npz, key 'labels': .*0 or 1.* row 0, column 0 \(3\)"),
        ({"images": np.ones(2)}, r"key 'images': the shape is \(2,\)"),
        ({"images": np.ones((2, 2), dtype=complex)}, r"key 'images': .*dtype complex128"),
        ({"tags": np.ones((2, 2), dtype=complex)}, r"key 'tags': .*dtype complex128"),
        ({"labels": np.float64(1)}, r"key 'labels' is a single value; a matrix"),
        ({"labels": np.ones((0, 2))}, r"the matrices have no rows"),
    ],
)
def test_a_wrong_matrix_is_named_by_its_file_and_key(tmp_path: Path, matrix: Any, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        assembled(tmp_path, **matrix)


def test_parts_follow_each_other_and_make_a_split(tmp_path: Path) -> None:
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


def test_rows_must_match_in_each_part_and_not_only_in_total(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"3 of images \(key 'I_tr' .*2 of labels \(key 'L_tr'"):
        assembled(tmp_path, I_tr=np.ones((3, 2)), I_te=np.ones((1, 2)), L_tr=np.ones((2, 1)), L_te=np.ones((2, 1)))


def test_a_single_part_is_not_a_split(tmp_path: Path) -> None:
    pairs, split, _ = assembled(tmp_path, I_tr=np.ones((3, 2)), L_tr=np.ones((3, 1)))
    assert len(pairs) == 3
    assert split is None


def test_parts_of_different_width_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"The parts of images have different widths: .*'I_tr' \(3 x 2\).*'I_te' \(1 x 5\)"
    ):
        assembled(tmp_path, I_tr=np.ones((3, 2)), I_te=np.ones((1, 5)))
