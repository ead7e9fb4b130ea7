"""Codes of items for recoding: from their own texts and pictures, from matrices, or one of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rmsh.builder.item_codes import item_coder
from rmsh.core.errors import DataError, InputError
from rmsh.data.pairs import Pairs
from rmsh.data.records import Skipped
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


def test_a_picture_that_is_gone_stops_where_nobody_is_told(colours: Path, new_colours: Path) -> None:
    (colours / "red.png").unlink()
    with Library.open(colours) as library:
        item = library.get("red")
        assert item is not None
        with pytest.raises(
            DataError, match=r"1 of the items' pictures cannot be read, such as that of 'red': There is"
        ):
            item_coder(load(new_colours), picture_path=library.picture_path)([item])


def _lose(colours: Path, name: str, how: str) -> None:
    (colours / f"{name}.png").unlink()
    if how == "damaged":
        (colours / f"{name}.png").write_bytes(b"damaged")
    if how == "elsewhere":
        (colours / f"{name}.png").symlink_to(Path(__file__))


@pytest.mark.parametrize(
    ("how", "reason"), [("gone", "There is no file"), ("damaged", "cannot be read"), ("elsewhere", "leads out of")]
)
def test_an_item_whose_picture_is_lost_is_coded_by_its_text_and_told_of(
    how: str, reason: str, *, colours: Path, new_colours: Path
) -> None:
    _lose(colours, "red", how)
    told: list[Skipped] = []
    with Library.open(colours) as library:
        items = [item for name in ("red", "blue") if (item := library.get(name)) is not None]
        coded = item_coder(load(new_colours), picture_path=library.picture_path, on_skipped=told.extend)(items)
    assert {modality: codes.ids.tolist() for modality, codes in coded.items()} == {
        "image": ["blue"],
        "text": ["red", "blue"],
    }
    assert [(one.id, one.file, one.left_out) for one in told] == [("red", "red.png", "picture")]
    assert reason in told[0].reason


def test_an_item_of_which_nothing_is_left_is_told_of_as_a_whole(new_colours: Path) -> None:
    told: list[Skipped] = []
    only = Item("x", picture="x.png")
    coded = item_coder(load(new_colours), picture_path=lambda _: Path("x.png"), on_skipped=told.extend)([only])
    assert coded == {}
    assert [(one.id, one.left_out) for one in told] == [("x", "item")]


def test_a_model_trained_on_matrices_asks_for_features(new_colours: Path) -> None:
    functions = load(new_colours).functions
    with pytest.raises(InputError, match="trained on features made elsewhere"):
        item_coder(Model(functions, "test", {}), picture_path=_nowhere)
