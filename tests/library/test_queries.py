"""Filters over the database: labels, ids and texts are data, whatever they hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from rmsh.codes import Codes
from rmsh.index.filters import Filter, Id, Label, Leaf, Text
from rmsh.library import Item, Library, queries

Code = Callable[..., Codes]

HOSTILE = [
    'a "quoted" word',
    "100 % sure",
    "x' OR 1=1 --",
    "<b>bold</b>",
    "NOT cat OR *",
    "id in ['a']",
    "a:b ^c +d",
    "Ä",
]


def _matching(library: Library, where: Filter, query: Codes) -> set[str]:
    ((*hits,),) = library.search(query, 100, to="text", model=library.generation().fingerprint, where=where)
    return {hit.item.id for hit in hits}


@pytest.fixture
def stocked(library: Library, code: Code) -> Library:
    items = [Item("1", text="a red dog", labels=("dog",)), Item("2", text="Two dogs: a red one", labels=("dog", "two"))]
    items += [Item("3", text="a cat at a café", labels=("cat",)), Item("4", labels=("cat", "two"))]
    library.add(items, {"text": code([item.id for item in items])}, model=library.generation().fingerprint)
    return library


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (Label("dog"), "12"),
        (~Label("dog"), "34"),
        (Label("two") & ~Label("cat"), "2"),
        (Id("3") | Id("4") | Id("9"), "34"),
        (Text("red"), "12"),
        (Text("one red"), "2"),
        (Text("RED dogs"), "2"),
        (Text("cafe"), "3"),
        (Text("dog") | Label("cat"), "134"),
        (Text("%"), ""),
        (Label("do"), ""),
        (Text("do*"), ""),
        (Text("red OR cat"), ""),
        (Label("dog' OR '1'='1"), ""),
    ],
    ids=str,
)
def test_a_filter_admits_what_it_says(where: Filter, expected: str, *, stocked: Library, code: Code) -> None:
    assert _matching(stocked, where, code(["q"])) == set(expected)


@pytest.mark.parametrize("value", HOSTILE)
def test_every_value_is_data(value: str, *, library: Library, code: Code) -> None:
    items = [Item(value, text=value, labels=(value,)), Item("other", text="something else", labels=("else",))]
    library.add(items, {"text": code([value, "other"])}, model=library.generation().fingerprint)
    for where in (Label(value), Id(value), Text(value)):
        assert _matching(library, where, code(["q"])) == {value}


def test_a_filter_holds_for_what_is_added_later(stocked: Library, code: Code) -> None:
    stocked.add([Item("5", labels=("dog",))], {"text": code(["5"])}, model=stocked.generation().fingerprint)
    stocked.remove(["1"])
    assert _matching(stocked, Label("dog"), code(["q"])) == {"2", "5"}


def test_a_nul_in_a_text_filter_is_a_space(stocked: Library, code: Code) -> None:
    assert _matching(stocked, Text("red\0dog"), code(["q"])) == {"1"}


@pytest.mark.parametrize("where", [Label("dog"), Text("red"), Id("2")], ids=str)
def test_rows_come_in_blocks_and_in_order(
    where: Leaf, *, stocked: Library, code: Code, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "_FILTER_BLOCK", 1)
    with stocked.reading() as connection:
        labels = partial(queries.labels_by_name, connection)
        blocks = [rows.tolist() for rows in queries.matching_rows(connection, where, labels)]
    assert blocks == ([[2]] if where == Id("2") else [[1], [2]])


def test_texts_have_a_form_of_each_word_unless_the_words_are_frequent(
    stocked: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [["dog", "dogs"], ["red"]]
    with stocked.reading() as connection:
        assert sorted(queries.rows_with_words(connection, words, 5).tolist()) == [1, 2]
        assert queries.rows_with_words(connection, [*words, ["a"], ["one"]], 5).tolist() == [2]
        assert queries.rows_with_words(connection, [['"', "dog*"]], 5).tolist() == [1]
        monkeypatch.setattr(queries, "_MOST_RANKED", 1)
        assert queries.rows_with_words(connection, words, 1).tolist() == []


def test_the_rows_of_labels_are_those_of_the_current_state(stocked: Library, code: Code) -> None:
    def found() -> list[list[int]]:
        with stocked.reading() as connection:
            return [rows.tolist() for rows in stocked._views.rows_with_labels(connection, ["cat", "none", "two"])]

    assert found() == found() == [[3, 4], [2, 4]]
    stocked.remove(["4"])
    stocked.add([Item("5", labels=("cat",))], {"text": code(["5"])}, model=stocked.generation().fingerprint)
    assert found() == [[3, 5], [2]]


def test_items_read_in_one_step_are_those_read_one_by_one(library: Library, code: Code) -> None:
    texts = [*HOSTILE, "two\nlines, a \\ and a \x01", "nul \0 inside", "\U0001f415 \u2028", "", None]
    items = [Item(f"ID {i} é", text, f"é/{i}.jpg" if i % 2 else None, HOSTILE[:i]) for i, text in enumerate(texts)]
    library.add(items, {"text": code([item.id for item in items])}, model=library.generation().fingerprint)
    with library.maintenance() as connection:
        connection.execute("DROP TRIGGER item_kept")
        connection.execute("UPDATE items SET text = x'ff00' WHERE row = 2")  # a blob, which cannot be in JSON
    for rows in ([1, 3, 4, 5], range(1, len(items) + 1)):
        with library.reading() as connection:
            plain = list(queries.stored_items(connection, list(rows)))
            found, damaged = queries.intact_items(connection, rows)
        assert list(damaged) == ([2] if 2 in rows else [])
        assert found == {row: items[row - 1] for row in rows if row != 2}
        assert list(found) == sorted(found)
        assert [found[row] for row in found] == [Item(*stored[1:5]) for stored in plain if stored[0] != 2]
