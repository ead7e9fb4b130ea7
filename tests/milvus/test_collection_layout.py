"""How items are stored in a collection: unchanged, and within the limits of Milvus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmsh.core.errors import InputError
from rmsh.library.items import Item
from rmsh.milvus.collection import entity_of, item_of, key_of, row_of, vector_of
from rmsh.milvus.connection import Address
from rmsh.milvus.push import is_filled

PLACE = Address("http://host:1", "photos")
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip)


def _entity(item: Item, **changed: Any) -> dict[str, Any]:
    return entity_of(**{"row": 3, "modality": "text", "code": b"ab", "model": "m", "both": True, **changed}, item=item)


@given(name=names, text=st.none() | st.text(st.characters(exclude_categories=["Cs"])), labels=st.lists(names))
def test_an_item_comes_back_as_it_was(name: str, text: str | None, labels: list[str]) -> None:
    item = Item(name, text=text, picture=None if text else "a/b.jpg", labels=tuple(labels))
    assert item_of(_entity(item)) == item


def test_a_vector_comes_back_as_it_was() -> None:
    vector = np.array([-127, 0, 5, 127], np.int8)
    assert vector_of(_entity(Item("a"), vector=bytes(vector))) == bytes(vector)
    assert vector_of(_entity(Item("a"))) is None
    assert "vector" not in _entity(Item("a"), vector=None)
    assert _entity(Item("a"))["digest"] == _entity(Item("a"), vector=None)["digest"]


def test_rows_and_modalities_are_told_apart_by_keys() -> None:
    keys = [key_of(row, modality) for row in range(3) for modality in ("image", "text")]
    assert keys == sorted(set(keys))
    assert [row_of(key) for key in keys] == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("change", [{"code": b"ac"}, {"model": "n"}, {"both": False}, {"vector": b"x"}])
def test_a_digest_changes_with_all_it_is_of(change: dict[str, Any]) -> None:
    item = Item("a", text="b")
    assert _entity(item)["digest"] == _entity(item)["digest"] != _entity(item, **change)["digest"]
    others = [Item("a", text=""), Item("a"), Item("a", text="b", labels=("c",)), Item("a", text="b", picture="c")]
    assert len({_entity(each)["digest"] for each in (item, *others)}) == 5


@pytest.mark.parametrize(
    "item",
    [
        Item("é" * 40_000),
        Item("a", text="b" * 65_536),
        Item("a", picture="c" * 70_000),
        Item("a", labels=("d" * 70_000,)),
    ],
)
def test_a_string_that_is_too_long_is_refused(item: Item) -> None:
    with pytest.raises(InputError, match="65,535"):
        _entity(item)


def test_too_many_labels_are_refused() -> None:
    with pytest.raises(InputError, match=r"4,097 .* 4,096"):
        _entity(Item("a", labels=tuple(map(str, range(4097)))))


@pytest.mark.parametrize(
    "name", ["photos", "photos_1", "photos_0123456789abcdeg", "x_0123456789abcdef", "photos_a_0123456789abcdef"]
)
def test_other_collections_are_not_taken_for_ours(name: str) -> None:
    assert not is_filled(name, PLACE)
