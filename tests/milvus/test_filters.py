"""Filters as expressions of Milvus: what they look like, and that values never become part of them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmsh.core.errors import InputError
from rmsh.index.filters import Filter, Id, Label, Text
from rmsh.milvus.collection import literal, to_expression


@pytest.mark.parametrize(
    ("condition", "expression"),
    [
        (Label("dog"), 'array_contains(labels, "dog")'),
        (~Id("7"), 'not (id == "7")'),
        (
            Label("a") | Label("b") & ~Id("c"),
            '(array_contains(labels, "a")) or ((array_contains(labels, "b")) and (not (id == "c")))',
        ),
        (Id('") or key > 0 or id == ("'), r'id == "\") or key > 0 or id == (\""'),
        (Label("a\\"), r'array_contains(labels, "a\\")'),
    ],
)
def test_a_filter_becomes_an_expression(condition: Filter, expression: str) -> None:
    assert to_expression(condition) == expression


@given(value=st.text())
def test_a_literal_ends_where_it_should_and_means_its_value(value: str) -> None:
    written = literal(value)
    inside = written[1:-1].replace("\\\\", "").replace('\\"', "")
    assert (written[0], written[-1], '"' in inside, "\n" in inside) == ('"', '"', False, False)
    assert json.loads(written) == value


@pytest.mark.parametrize("condition", [Text("two dogs"), Label("a") & ~Text("two dogs")])
def test_words_of_texts_are_refused_in_one_sentence(condition: Filter) -> None:
    with pytest.raises(InputError, match='text="two dogs"'):
        to_expression(condition)
