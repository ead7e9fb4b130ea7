"""Filters: their algebra, their writing and what engines make of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from rmsh.core.errors import InputError
from rmsh.index.filters import And, Filter, Id, Label, Leaf, Not, Or, Text, to_mask

a, b, c = Label("a"), Id("b"), Text("c")


@pytest.mark.parametrize(
    ("condition", "written"),
    [
        (a & b | c, "label=a and id=b or text=c"),
        (a & (b | c), "label=a and (id=b or text=c)"),
        (~(a & b), "not (label=a and id=b)"),
        (~a & ~b, "not label=a and not id=b"),
        (~~a, "not not label=a"),
        ((a | b) | c, "label=a or id=b or text=c"),
        (Label("two dogs"), 'label="two dogs"'),
        (Label('say "hi" \\ (x)'), r'label="say \"hi\" \\ (x)"'),
        (Label("50%<b>"), "label=50%<b>"),
    ],
)
def test_a_filter_is_written_with_as_few_parentheses_as_it_needs(condition: Filter, written: str) -> None:
    assert str(condition) == written


def test_joining_is_associative() -> None:
    assert (a & b) & c == a & (b & c) == And((a, b, c))
    assert (a | b) | c == a | (b | c) == Or((a, b, c))
    assert len({a, Label("a"), Id("a")}) == 2


def test_json_says_what_is_meant() -> None:
    value = (a & ~(b | c)).to_json()
    assert json.loads(json.dumps(value)) == {"and": [{"label": "a"}, {"not": {"or": [{"id": "b"}, {"text": "c"}]}}]}


def test_a_mask_follows_the_truth_table() -> None:
    masks = dict(zip("abc", np.array(np.meshgrid(*[[False, True]] * 3)).reshape(3, 8), strict=True))
    mask = to_mask(a & ~b | c, lambda leaf: masks[leaf.value])
    assert mask.tolist() == [bool((x and not y) or z) for x, y, z in zip(*masks.values(), strict=True)]


@pytest.mark.parametrize("value", ["", "  \n", 7, None])
@pytest.mark.parametrize("leaf", [Label, Id, Text])
def test_a_value_that_is_no_text_is_refused(leaf: type[Leaf], value: Any) -> None:
    with pytest.raises(InputError, match=f"asks for the {leaf.field} .*; give a text that is not empty"):
        leaf(value)


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(InputError, match="give valid Unicode"):
        Label("\ud800")


@pytest.mark.parametrize("make", [lambda: a & "b", lambda: a | None, lambda: Not("a"), lambda: to_mask("a", abs)])
def test_what_is_no_filter_is_refused(make: Any) -> None:
    with pytest.raises(InputError, match="is no filter; give Label, Id or Text, joined by"):
        make()


@pytest.mark.parametrize("join", [And, Or])
def test_joining_one_condition_is_refused(join: Any) -> None:
    with pytest.raises(InputError, match=f'joins 1 conditions by "{join.word}"; give at least two'):
        join((a,))
