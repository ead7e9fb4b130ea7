"""Facets: each number is what the filter finds, within bounds; and hints for labels that do not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmsh.codes import Codes
from rmsh.index.filters import parse
from rmsh.library import Item, Library
from rmsh.library.duplicates import state_of
from rmsh.library.photos import MOST_VALUES, facets_of, insert_photos, label_hints, read_photos
from rmsh.library.queries import LabelEntry

DOGS = {name: LabelEntry(place, name, 1, 1) for place, name in enumerate(["dog", "Dogs", "cat", "two words"])}


def _number(library: Library, where: str) -> int:
    (found,) = library.search(
        library.codes(["red 0"], "image"), 100, to="image", model=library.generation().fingerprint, where=parse(where)
    )
    return len(found)


def test_every_number_is_what_the_filter_finds(photographs: Path) -> None:
    with Library.open(photographs) as library:
        with library.reading() as connection:
            values = facets_of(connection)
        assert list(values) == ["label", "camera", "keyword", "rating", "month"]
        assert list(values["camera"].items()) == [("FUJI X", 47), ("Canon", 16)]  # in any case, the larger one first
        assert sum(values["month"].values()) == 63  # the smaller copy has no date
        values["date"] = values.pop("month")
        for name, counts in values.items():
            assert counts == {value: _number(library, f'{name}="{value}"') for value in counts}


def test_a_library_that_does_not_know_its_image_files_has_labels_only(colours: Path) -> None:
    with Library.open(colours) as library, library.reading() as connection:
        assert facets_of(connection) == {"label": {"blue": 4, "green": 4, "red": 4}}


def test_the_most_frequent_of_many_values_are_counted(colours: Path) -> None:
    labels = tuple(f"label {number:03}" for number in range(2 * MOST_VALUES))
    with Library.open(colours, writable=True) as library:
        codes = Codes(library.codes(["red"], "text").packed, 12, ["new"])
        library.add([Item("new", labels=labels)], {"text": codes}, model=library.generation().fingerprint)
        with library.reading() as connection:
            counted = list(facets_of(connection)["label"])
    assert counted[:4] == ["blue", "green", "red", "label 000"]
    assert len(counted) == MOST_VALUES + 1


def test_the_state_changes_with_items_and_with_facts_alone(photographs: Path, colours: Path) -> None:
    with Library.open(photographs) as library, library.reading() as connection:
        file = next(read_photos(connection))[1]
    with Library.open(colours, writable=True) as library:
        states = [_state(library)]
        library.remove(["red"])
        states.append(_state(library))
        with library.transaction() as connection:
            insert_photos(connection, {3: file})
        states.append(_state(library))
    assert len(set(states)) == 3


def _state(library: Library) -> tuple[int, str, int]:
    with library.reading() as connection:
        return state_of(connection)


@pytest.mark.parametrize(
    ("where", "hints"),
    [
        ("label=dog", []),
        ("text=dogg", []),
        ("label=dogg", ["No item has the label dogg; did you mean dog or Dogs?"]),
        ("label=CAT", ["No item has the label CAT; did you mean cat?"]),
        ("not (label=dog or label=catt) and id=1", ["No item has the label catt; did you mean cat?"]),
        ("label=zebra", ["No item has the label zebra."]),
        ('label="two word"', ["No item has the label two word; did you mean two words?"]),
    ],
)
def test_a_label_that_no_item_has_gets_a_hint(where: str, hints: list[str]) -> None:
    assert label_hints(DOGS, parse(where)) == hints


def test_hints_are_few() -> None:
    where = parse(" or ".join(f"label=x{number}" for number in range(9)))
    assert len(label_hints(DOGS, where)) == 3
