"""What the name of a key says."""

from __future__ import annotations

import pytest

from rmsh.data.readers.matrix_roles import meaning


@pytest.mark.parametrize(
    ("role", "names"),
    [
        ("images", "XAll IAll images Image IMG image_features image-features"),
        ("texts", "YAll TAll tags texts text txt captions text_features"),
        ("labels", "LAll labels label L LABELS"),
        ("ids", "ids id"),
        ("class_names", "class_names names label_names"),
    ],
)
def test_names_of_whole_matrices_are_known_in_any_case(role, names):
    assert {meaning(name) for name in names.split()} == {(role, "all")}


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ("train", "I_tr T_tr L_tr image_train LTrain"),
        ("query", "I_te T_te L_te I_test text_query"),
        ("database", "I_db T_db label_database images_retrieval"),
    ],
)
def test_names_of_parts_are_known(part, names):
    assert {meaning(name)[1] for name in names.split()} == {part}


@pytest.mark.parametrize("name", ["param", "x", "y", "i", "t", "XTrain", "train/images", "", "all"])
def test_a_name_that_says_too_little_is_not_guessed(name):
    assert meaning(name) is None
