"""Contact sheets of unjudged items, and grades read back."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from PIL import Image

from lab.first_page.sheets import pool, read_grades, write_sheets
from rmsh.core.errors import DataError


def _photographs(path: Path, count: int) -> Path:
    with tarfile.open(path, "w") as archive:
        for number in range(1, count + 1):
            content = io.BytesIO()
            Image.new("RGB", (192, 192), "red").save(content, "JPEG")
            member = tarfile.TarInfo(f"{number:012}.jpg")
            member.size = len(content.getvalue())
            archive.addfile(member, io.BytesIO(content.getvalue()))
    return path


def test_the_pool_has_each_unjudged_item_once_and_in_no_ranking_s_order() -> None:
    first = {"cat": [str(i) for i in range(1, 11)], "dog": ["1"]}
    second = {"cat": [str(i) for i in range(6, 16)], "dog": ["1"]}
    pooled = pool([first, second], {"dog": {"1": 0}, "cat": {"15": 1}})
    assert list(pooled) == ["cat"]
    assert sorted(pooled["cat"], key=int) == [str(i) for i in range(1, 15)]
    assert pooled["cat"] != sorted(pooled["cat"], key=int)


def test_sheets_show_24_items_each_and_todo_lists_them(tmp_path: Path) -> None:
    images = _photographs(tmp_path / "images.tar", 30)
    write_sheets({"cat": [str(i) for i in range(1, 31)], "dog": ["7"]}, tmp_path / "out", images=images)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "001-1.png",
        "001-2.png",
        "002-1.png",
        "todo.txt",
    ]
    assert (tmp_path / "out" / "todo.txt").read_text().splitlines()[1] == "dog | 7:"


def test_grades_are_read_and_empty_lines_skipped(tmp_path: Path) -> None:
    path = tmp_path / "todo.txt"
    path.write_text("cat | 42 71: 2 0\ndog | 7:\ncat | 9: 1\n")
    assert read_grades(path) == {"cat": {"42": 2, "71": 0, "9": 1}}


@pytest.mark.parametrize("line", ["cat | 42 71: 2", "cat | 42: 3", "cat 42: 1"])
def test_a_line_that_does_not_fit_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "todo.txt"
    path.write_text("dog | 7: 1\n" + line + "\n")
    with pytest.raises(DataError, match="line 2"):
        read_grades(path)
