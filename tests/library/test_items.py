"""Items and batches: what cannot be kept is refused before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmsh.codes import Codes
from rmsh.core.errors import CodesError, InputError
from rmsh.library.items import Batch, Item, KeptWords, checked_ids


def test_labels_are_kept_sorted_and_once() -> None:
    assert Item("a", labels=("dog", "cat", "dog")).labels == ("cat", "dog")


@pytest.mark.parametrize("value", ["", "  ", "a\0b", "\ud800", 7, None])
def test_an_id_that_names_nothing_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="cannot be an ID"):
        Item(value)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("text", "\ud800", "the text of the item 'a'.*Unicode"),
        ("text", 7, "the text of the item 'a'"),
        ("labels", ("dog", ""), "a label of the item 'a'"),
        ("labels", "dog", "'dog' of the item 'a'"),
        ("picture", "", "the image path of the item 'a'"),
    ],
)
def test_a_value_that_cannot_be_kept_is_named(field: str, value: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Item("a", **{field: value})


@pytest.mark.parametrize("path", ["/etc/passwd", "../a.jpg", "b/../../a.jpg", "..\\a.jpg", "C:a.jpg", "//host/a.jpg"])
def test_a_picture_outside_its_folder_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="outside the image folder"):
        Item("a", picture=path)


def test_a_picture_may_lie_in_a_folder_with_dots_in_its_name() -> None:
    assert Item("a", picture="..2024/a..b.jpg").picture == "..2024/a..b.jpg"


def test_text_may_hold_anything_and_stays_as_it_is() -> None:
    assert Item("a", text='<b>"50 %" \0 \n</b>').text == '<b>"50 %" \0 \n</b>'


def test_an_id_that_occurs_twice_is_refused() -> None:
    with pytest.raises(InputError, match="'b' 2 times"):
        checked_ids(["a", "b", "b"])


def test_codes_are_matched_by_id_and_may_be_missing(code: Callable[..., Codes]) -> None:
    batch = Batch((Item("a"), Item("b")), {"image": code(["b"], "image"), "text": code(["b", "a"])}, "m")
    image, (a, b) = code(["b"], "image").packed[0].tobytes(), (code([name]).packed[0].tobytes() for name in "ab")
    assert [*batch.code_rows([7, 8])] == [(7, None, a, None, None), (8, image, b, None, None)]


def test_an_item_without_any_code_is_refused(code: Callable[..., Codes]) -> None:
    with pytest.raises(CodesError, match="The item 'b' has no code"):
        Batch((Item("a"), Item("b")), {"text": code(["a"])}, "m")


def test_a_code_of_no_item_is_refused(code: Callable[..., Codes]) -> None:
    with pytest.raises(InputError, match="code for 'c'"):
        Batch((Item("a"),), {"text": code(["a", "c"])}, "m")


def test_codes_of_an_unknown_modality_are_refused(code: Callable[..., Codes]) -> None:
    codes: Any = {"sound": code(["a"])}
    with pytest.raises(InputError, match=r"'sound'.*image, text"):
        Batch((Item("a"),), codes, "m")


@given(st.lists(st.sets(st.sampled_from("abcdefghij")), min_size=1, max_size=8))
def test_kept_words_never_deny_a_word_that_an_item_has(items: list[set[str]]) -> None:
    kept, rows = KeptWords(4), np.arange(1, len(items) + 1)
    kept.keep(dict(zip(rows.tolist(), items, strict=True)))
    found = kept.of(np.append(rows, 99))
    assert found[-1] == ~np.uint64(0)  # not known
    for bits, words in zip(found.tolist(), items, strict=False):
        assert bits & kept.bits_of(words) == kept.bits_of(words)
