"""Reading filters: everything that is written is read again, values are data, and mistakes are shown where they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmsh.core.errors import InputError
from rmsh.index.filters import And, Filter, Id, Label, Not, Or, Text, parse

tricky = st.sampled_from(
    ['"', "'", "\\", '\\"', "a)", "(", "and", "or", "not", "label=x", "dog%' OR 1=1 --", 'NEAR("a" b)*', "<b>&amp;</b>"]
)
values = st.one_of(tricky, st.text(st.characters(codec="utf-8"), min_size=1)).filter(lambda text: bool(text.strip()))
leaves = st.builds(lambda leaf, value: leaf(value), st.sampled_from([Label, Id, Text]), values)


def _joined(filters: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    parts = st.lists(filters, min_size=2, max_size=4).map(tuple)
    return st.one_of(parts.map(And), parts.map(Or), filters.map(Not))


@given(st.recursive(leaves, _joined, max_leaves=12))
def test_what_is_written_is_read_again(condition: Filter) -> None:
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
def test_reading_by_hand(text: str, condition: Filter) -> None:
    assert parse(text) == condition


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r'to its end, after character 0; allowed there is label=, id=, text=, "not" or "\("'),
        ("label=a and", r'to its end, after character 11; allowed there is label=, id=, text=, "not" or "\("'),
        ("lable=a", r"at character 1, 'lable=a'; allowed there is label=, id=, text="),
        ("dog", r"at character 1, 'dog'; allowed there is label="),
        ("not=a", r"at character 1, 'not=a'; allowed there is label="),
        ("label=two dogs", r"""at character 11, 'dogs'; allowed there is "and", "or" or the end, and a value that"""),
        ("label=a)", r"at character 8, '\)'; allowed there is \"and\", \"or\" or the end"),
        ("(label=a", r'to its end, after character 8; allowed there is "and", "or" or "\)"'),
        ("label=", r"to its end, after character 6; allowed there is a value: a word, or anything in quotes, such as"),
        ("label=(a)", r"at character 7, '\(a\)'; allowed there is a value"),
        ('text="two', r"""at character 6, '"two'; allowed there is a quote that closes"""),
        (r'text="a\n"', r"with a backslash before quotes and backslashes only"),
        ('id=b or text=" "', r"asks for the text ' '; give a text that is not empty. It is at character 9"),
    ],
)
def test_a_mistake_is_shown_where_it_is_with_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(text)


@pytest.mark.parametrize("text", ["(" * 5000 + "label=a" + ")" * 5000, "not " * 5000 + "label=a"])
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="nested deeper than 50 levels"):
        parse(text)
