"""Codes of items for recoding: from their own texts and pictures, from matrices, or one of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rmsh.data.pairs import Pairs
from rmsh.errors import DataError, InputError
from rmsh.item_codes import item_coder
from rmsh.library import Item, Library
from rmsh.model import Model, load

ITEMS = [Item("a", text="red"), Item("b", text="green and blue"), Item("c")]


def _nowhere(item: Item) -> Path | None:
    return None


def test_texts_and_pictures_are_encoded_as_the_model_was_trained(colours: Path, new_colours: Path) -> None:
    model = load(new_colours)
    with Library.open(colours) as library:
        item = library.get("cyan")
        assert item is not None
        coded = item_coder(model, picture_path=library.picture_path)([item])
    assert coded["image"].ids.tolist() == ["cyan"]
    assert coded["image"].packed.tolist() == coded["text"].packed.tolist()


def test_an_item_without_text_gets_no_text_code(new_colours: Path) -> None:
    coded = item_coder(load(new_colours), picture_path=_nowhere)(ITEMS)
    assert {modality: codes.ids.tolist() for modality, codes in coded.items()} == {"text": ["a", "b"]}


def test_given_features_stand_for_the_picture_and_texts_are_still_read(new_colours: Path) -> None:
    images = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]], np.float32)
    pairs = Pairs(ids=["c", "a", "b"], images=images, has_image=[True, True, False])
    coded = item_coder(load(new_colours), picture_path=_nowhere, features=pairs)(ITEMS)
    assert coded["image"].ids.tolist() == ["a", "c"]
    assert coded["image"].packed[0].tolist() == coded["text"].packed[0].tolist()
    assert coded["text"].ids.tolist() == ["a", "b"]


def test_an_item_without_features_is_named(new_colours: Path) -> None:
    pairs = Pairs(ids=["a", "c"], images=np.ones((2, 3), np.float32), source="f.npz")
    with pytest.raises(DataError, match=r"f\.npz: there are no features of the item 'b'"):
        item_coder(load(new_colours), picture_path=_nowhere, features=pairs)(ITEMS)


def test_a_picture_that_is_gone_is_named(colours: Path, new_colours: Path) -> None:
    (colours / "red.png").unlink()
    with Library.open(colours) as library:
        item = library.get("red")
        assert item is not None
        with pytest.raises(DataError, match=r"The picture of the item 'red' is not at .*red.png"):
            item_coder(load(new_colours), picture_path=library.picture_path)([item])


def test_a_model_trained_on_matrices_asks_for_features(new_colours: Path) -> None:
    functions = load(new_colours).functions
    with pytest.raises(InputError, match="trained on features made elsewhere"):
        item_coder(Model(functions, "test", {}), picture_path=_nowhere)
