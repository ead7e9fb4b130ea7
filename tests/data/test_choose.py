"""Choosing matrices: by name, by guess, and never between two."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rmsh.core.errors import DataError
from rmsh.data.readers.matrices import Place
from rmsh.data.readers.matrix_roles import Chosen, choose, locate


def chosen(named: dict[str, str] | None = None, skip: tuple = (), **shapes: tuple[int, ...]) -> Chosen:
    places = [Place(Path("data.mat"), key, shape) for key, shape in shapes.items()]
    return choose(places, named or {}, skip=skip, source="data.mat")


def keys(choice: Chosen) -> dict[str, list[str]]:
    return {role: [place.key for place in places] for role, places in choice.places.items()}


def test_a_guess_is_noted_and_so_is_what_was_not_used():
    choice = chosen(LAll=(20015, 24), XAll=(20015, 512), param=(1, 1))
    assert keys(choice) == {"images": ["XAll"], "labels": ["LAll"]}
    assert choice.parts == ("all",)
    assert choice.notes == (
        "images were taken from key 'XAll' (20,015 x 512) of data.mat",
        "labels were taken from key 'LAll' (20,015 x 24) of data.mat",
        "key 'param' (1 x 1) of data.mat was not used",
    )


def test_two_keys_that_fit_are_refused_by_name():
    with pytest.raises(DataError, match=r"Two keys fit the images: key 'XAll' .* and key 'images' .*; name the one"):
        chosen(XAll=(9, 2), images=(9, 3))


def test_a_whole_matrix_beside_a_part_is_refused():
    with pytest.raises(DataError, match=r"Two keys fit the labels: key 'L_tr' .* and key 'LAll'"):
        chosen(L_tr=(9, 2), LAll=(12, 2))


def test_a_named_key_decides_between_two():
    choice = chosen({"images": "xall"}, XAll=(9, 2), images=(9, 3))
    assert keys(choice) == {"images": ["XAll"]}
    assert choice.notes == ("key 'images' (9 x 3) of data.mat was not used",)


def test_a_missing_key_names_what_there_is():
    with pytest.raises(
        DataError, match=r"data.mat: there is no key 'Labels2'; there are key 'LAll' \(9 x 2\) of data.mat"
    ):
        chosen({"labels": "Labels2"}, LAll=(9, 2))


def test_a_key_in_two_spellings_is_taken_only_as_it_is_spelt():
    assert keys(chosen({"labels": "one"}, one=(9, 2), ONE=(9, 2))) == {"labels": ["one"]}
    with pytest.raises(DataError, match="several keys fit 'One'"):
        chosen({"labels": "One"}, one=(9, 2), ONE=(9, 2))


def test_a_key_for_an_unknown_role_is_refused():
    with pytest.raises(DataError, match="'pictures'; keys can be named for images, texts, labels, ids, class_names"):
        chosen({"pictures": "XAll"}, XAll=(9, 2))


def test_a_file_of_unknown_names_is_refused():
    with pytest.raises(DataError, match=r"no key is known to be images, texts or labels; there are key 'a' \(9 x 2\)"):
        chosen(a=(9, 2))
    with pytest.raises(DataError, match="there are no matrices"):
        chosen()


def test_pixels_are_skipped_and_noted():
    choice = chosen(IAll=(224, 224, 3, 9), XAll=(9, 2))
    assert keys(choice) == {"images": ["XAll"]}
    assert "key 'IAll' (224 x 224 x 3 x 9) of data.mat was skipped: it has 4 dimensions" in choice.notes[0]


def test_a_skipped_role_is_not_chosen_nor_noted():
    choice = chosen(skip=("images",), XAll=(9, 2), LAll=(9, 3))
    assert keys(choice) == {"labels": ["LAll"]}
    assert len(choice.notes) == 1


def test_class_names_without_labels_are_left_out():
    assert keys(chosen(skip=("labels",), XAll=(9, 2), LAll=(9, 3), names=(3,))) == {"images": ["XAll"]}


def test_parts_are_put_in_the_order_database_query():
    choice = chosen(I_te=(3, 2), I_tr=(9, 2), L_te=(3, 4), L_tr=(9, 4))
    assert keys(choice) == {"images": ["I_tr", "I_te"], "labels": ["L_tr", "L_te"]}
    assert choice.parts == ("train", "query")


def test_training_rows_beside_a_database_are_skipped_and_noted():
    choice = chosen(I_tr=(5, 2), I_db=(9, 2), I_te=(3, 2))
    assert keys(choice) == {"images": ["I_db", "I_te"]}
    assert "key 'I_tr' (5 x 2) of data.mat was skipped: the database is trained on" in choice.notes[0]


def test_roles_in_different_parts_are_refused():
    with pytest.raises(DataError, match=r"different parts \(images for train and query, labels for all\)"):
        chosen(I_tr=(9, 2), I_te=(3, 2), LAll=(12, 4))


def test_a_file_of_one_matrix_needs_no_key(tmp_path: Path):
    np.save(tmp_path / "resnet.npy", np.ones((2, 3)))
    assert locate(str(tmp_path / "resnet.npy"), "images").key == "resnet"


def test_a_key_is_named_after_a_colon(tmp_path: Path):
    np.savez(tmp_path / "a.npz", one=np.ones((2, 3)), two=np.ones((2, 4)))
    assert locate(f"{tmp_path / 'a.npz'}:two", "images").shape == (2, 4)
    with pytest.raises(DataError, match="there is no key 'three'"):
        locate(f"{tmp_path / 'a.npz'}:three", "images")


def test_a_drive_letter_is_no_file_with_a_key():
    with pytest.raises(DataError, match=r"Q:.nothing.npy does not exist"):
        locate("Q:/nothing.npy", "images")


def test_the_fitting_name_is_taken_among_several(tmp_path: Path):
    np.savez(tmp_path / "a.npz", images=np.ones((2, 3)), labels=np.ones((2, 4)))
    assert locate(str(tmp_path / "a.npz"), "labels").key == "labels"


def test_several_matrices_without_a_fitting_name_are_refused(tmp_path: Path):
    np.savez(tmp_path / "a.npz", one=np.ones((2, 3)), two=np.ones((2, 4)))
    with pytest.raises(
        DataError, match=r"not clear which key is the texts; there are .*'one'.*'two'.* Write '.*a.npz:KEY'"
    ):
        locate(str(tmp_path / "a.npz"), "texts")
