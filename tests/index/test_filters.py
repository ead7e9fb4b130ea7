"""Filters: their algebra, their text form, their masks and their language."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmsh.core.errors import InputError
from rmsh.index.filters import And, Fact, Filter, Id, Label, Leaf, Not, Or, Text, parse, to_mask

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


def test_a_mask_follows_the_truth_table() -> None:
    masks = dict(zip("abc", np.array(np.meshgrid(*[[False, True]] * 3)).reshape(3, 8), strict=True))
    mask = to_mask(a & ~b | c, lambda leaf: masks[leaf.value])
    assert mask.tolist() == [bool((x and not y) or z) for x, y, z in zip(*masks.values(), strict=True)]


@pytest.mark.parametrize("value", ["", "  \n", 7, None])
@pytest.mark.parametrize("leaf", [Label, Id, Text])
def test_an_empty_or_non_string_value_is_refused(leaf: type[Leaf], value: Any) -> None:
    with pytest.raises(InputError, match=f"{leaf.field}=.* not empty"):
        leaf(value)


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(InputError, match="Unicode"):
        Label("\ud800")


@pytest.mark.parametrize("make", [lambda: a & "b", lambda: a | None, lambda: Not("a"), lambda: to_mask("a", abs)])
def test_other_objects_are_refused(make: Any) -> None:
    with pytest.raises(InputError, match="Label, Id or Text"):
        make()


@pytest.mark.parametrize("join", [And, Or])
def test_joining_one_condition_is_refused(join: Any) -> None:
    with pytest.raises(InputError, match=f'1 conditions .*"{join.word}"'):
        join((a,))


tricky = st.sampled_from(
    ['"', "'", "\\", '\\"', "a)", "(", "and", "or", "not", "label=x", "dog%' OR 1=1 --", 'NEAR("a" b)*', "<b>&amp;</b>"]
)
values = st.one_of(tricky, st.text(st.characters(codec="utf-8"), min_size=1)).filter(lambda text: bool(text.strip()))
leaves = st.builds(lambda leaf, value: leaf(value), st.sampled_from([Label, Id, Text]), values)


def _joined(filters: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    parts = st.lists(filters, min_size=2, max_size=4).map(tuple)
    return st.one_of(parts.map(And), parts.map(Or), filters.map(Not))


@given(st.recursive(leaves, _joined, max_leaves=12))
def test_the_text_of_a_filter_is_parsed_back(condition: Filter) -> None:
    assert parse(str(condition)) == condition


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("label=dog", Label("dog")),
        ("  label = dog  ", Label("dog")),
        ("id=a=b", Id("a=b")),
        ("label=and and not id=not", Label("and") & ~Id("not")),
        ("label=a or label=b and label=c", Label("a") | (Label("b") & Label("c"))),
        ("NOT(label=a OR label=b)And text=c", ~(Label("a") | Label("b")) & Text("c")),
        ("""text='two "big" dogs'""", Text('two "big" dogs')),
        (r"""text='it\'s'""", Text("it's")),
        ('text="two\ndogs"', Text("two\ndogs")),
        ('label="a"or(id=b)', Label("a") | Id("b")),
    ],
)
def test_hand_worked_filters(text: str, condition: Filter) -> None:
    assert parse(text) == condition


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r'at its end, after character 0; allowed here: label=, id=, text=, .*, "not" or "\("'),
        ("label=a and", r'at its end, after character 11; allowed here: label=, id=, text=, .*, "not" or "\("'),
        ("lable=a", r"at character 1, 'lable=a'; allowed here: label=, id=, text="),
        ("dog", r"at character 1, 'dog'; allowed here: label="),
        ("not=a", r"at character 1, 'not=a'; allowed here: label="),
        ("label=two dogs", r"""at character 11, 'dogs'; allowed here: "and", "or" or the end"""),
        ("label=a)", r"at character 8, '\)'; allowed here: \"and\", \"or\" or the end"),
        ("(label=a", r'at its end, after character 8; allowed here: "and", "or" or "\)"'),
        ("label=", r"at its end, after character 6; allowed here: a value: a word, or anything in quotes, such as"),
        ("label=(a)", r"at character 7, '\(a\)'; allowed here: a value"),
        ('text="two', r"""at character 6, '"two'; allowed here: a closing quote"""),
        (r'text="a\n"', r"a backslash only before"),
        ('id=b or text=" "', r"text=' '.*character 9"),
    ],
)
def test_an_error_names_the_position_and_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(text)


@pytest.mark.parametrize("text", ["(" * 5000 + "label=a" + ")" * 5000, "not " * 5000 + "label=a"])
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="nested deeper than 50 levels"):
        parse(text)


FACTS = [
    "date>=2024-06",
    "date=2024",
    "camera~fuji",
    'camera="X-T5 (black)"',
    "keyword=beach",
    "rating>3",
    "latitude<-1.5",
]


@pytest.mark.parametrize("written", FACTS)
def test_what_image_files_tell_is_compared(written: str) -> None:
    assert str(parse(written)) == written
    joined = f"label=a and not {written}"
    assert parse(joined) == Label("a") & ~parse(written)
    assert str(parse(joined)) == joined


def test_a_fact_has_a_name_a_sign_and_a_value() -> None:
    assert parse("date >= 2024-06") == Fact("2024-06", "date", ">=")
    assert len({Fact("1", "rating"), Fact("1", "rating", ">"), Fact("1", "latitude")}) == 3


@pytest.mark.parametrize(
    ("written", "allowed"),
    [
        ("date>=June", "2024-06"),
        ("date~2024", "2024-06"),
        ("camera>fuji", "= or ~"),
        ("rating=many", "a number"),
        ("rating~1", "a number"),
        ("label~dog", "label="),
        ("weight>3", "date="),
    ],
)
def test_a_fact_that_cannot_be_compared_is_refused(written: str, allowed: str) -> None:
    with pytest.raises(InputError, match=allowed):
        parse(written)
