"""What was left out: counted, written as CSV, or refused."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from rmsh.core.errors import DataError
from rmsh.data.records import Skipped, count_skipped, refuse_skipped, write_skipped

LIST = [Skipped("metadata.csv", row, f"i{row}", "item", 'a "reason", with\nmarks') for row in range(2, 14)]


def test_the_file_has_a_row_for_each(tmp_path: Path) -> None:
    write_skipped(tmp_path / "skipped.csv", LIST)
    with (tmp_path / "skipped.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert rows[0] == {
        "file": "metadata.csv",
        "row": "2",
        "id": "i2",
        "left_out": "item",
        "reason": 'a "reason", with\nmarks',
    }


def test_each_kind_is_counted_with_an_example() -> None:
    more = Skipped("x.txt", None, "x", "text", "empty")
    assert count_skipped([*LIST, more])[1] == "1 text was left out, such as x.txt (text: empty)"
    assert count_skipped([*LIST, more])[0].startswith("12 items were left out, such as metadata.csv, row 2")
    assert count_skipped([]) == []


def test_strict_names_the_first_ten() -> None:
    refuse_skipped([], "photos")
    with pytest.raises(DataError, match=r"photos: 12 things would be left out.*row 11.*and 2 more"):
        refuse_skipped([Skipped("m.csv", row, "", "item", "no") for row in range(2, 14)], "photos")
