"""Metadata files: three formats, the ways people write them, and rows that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rmsh.core.errors import DataError
from rmsh.data.readers.metadata import read_metadata
from rmsh.data.records import Record

ROWS = [
    {"file_name": "a.jpg", "text": "a dog", "labels": ["dog", "park"]},
    {"file_name": "b.jpg", "text": "a cat", "labels": ["cat"]},
]


def _csv(folder: Path, text: str | bytes) -> Path:
    path = folder / "metadata.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def _jsonl(folder: Path, *lines: str) -> Path:
    path = folder / "metadata.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def _parquet(folder: Path, rows: list[dict[str, object]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), folder / "metadata.parquet")
    return folder / "metadata.parquet"


def test_the_three_formats_say_the_same(tmp_path: Path) -> None:
    paths = [
        _csv(tmp_path, "file_name,text,labels\na.jpg,a dog,dog;park\nb.jpg,a cat,cat\n"),
        _jsonl(tmp_path, *map(json.dumps, ROWS)),
        _parquet(tmp_path, ROWS),
    ]
    found = [[(r.id, r.picture, r.text, r.labels) for r in read_metadata(path)[0]] for path in paths]
    assert found[0] == found[1] == found[2]
    assert found[0][0] == ("a.jpg", "a.jpg", "a dog", ("dog", "park"))


@pytest.mark.parametrize(
    "content",
    [
        "\ufefffile_name;caption;labels\r\na.jpg;a dog;dog\r\n",  # a spreadsheet of a country with decimal commas
        "file_name\tcaption\tlabels\na.jpg\ta dog\tdog\n",
        ' File_Name ,CAPTION,labels\na.jpg,"a dog", dog \n\n',
    ],
)
def test_a_csv_is_understood_however_a_spreadsheet_wrote_it(tmp_path: Path, content: str) -> None:
    (record,), skipped, unused = read_metadata(_csv(tmp_path, content))
    assert (record.row, record.picture, record.text, record.labels) == (2, "a.jpg", "a dog", ("dog",))
    assert skipped == unused == []


def test_a_text_may_have_commas_quotes_and_lines(tmp_path: Path) -> None:
    (record,), _, _ = read_metadata(_csv(tmp_path, 'file_name,text\na.jpg,"one, ""two""\nthree"\n'))
    assert record.text == 'one, "two"\nthree'


def test_rows_are_counted_as_a_spreadsheet_does(tmp_path: Path) -> None:
    records, skipped, _ = read_metadata(_csv(tmp_path, "file_name,text\na.jpg,x\nb.jpg,y,z,w\nc.jpg\n"))
    assert [(r.row, r.id, r.text) for r in records] == [(2, "a.jpg", "x"), (4, "c.jpg", None)]
    assert [(s.row, s.reason) for s in skipped] == [(3, "it has 4 cells, the header 2")]


def test_lines_that_are_not_json_are_listed_with_their_number(tmp_path: Path) -> None:
    path = _jsonl(
        tmp_path, '{"file_name": "a.jpg"}', "", "{oops", "[1]", '{"text": {"a": 1}}', '{"text": "x", "id": 7}'
    )
    records, skipped, _ = read_metadata(path)
    assert [(r.row, r.id) for r in records] == [(1, "a.jpg"), (6, "7")]
    assert [s.row for s in skipped] == [3, 4, 5]
    assert "not JSON" in skipped[0].reason
    assert "not an object" in skipped[1].reason
    assert "a string is expected" in skipped[2].reason


def test_a_file_in_a_subfolder_names_pictures_from_there(tmp_path: Path) -> None:
    (record,), _, _ = read_metadata(_csv(tmp_path, "file_name\nx\\a.jpg\n"), inside="train")
    assert record == Record("train/metadata.csv", 2, "train/x/a.jpg", picture="train/x/a.jpg")


def test_columns_of_no_use_are_named(tmp_path: Path) -> None:
    rows = [{"file_name": "a.jpg", "width": 3}]
    for path in (_csv(tmp_path, "file_name,width\na.jpg,3\n"), _parquet(tmp_path, rows)):
        assert read_metadata(path)[2] == ["width"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"name,words\na,b\n", "'name', 'words'; file_name"),
        ("file_name,text\na.jpg,café\n".encode("latin-1"), "not in UTF-8"),
        (b'file_name,text\na.jpg,"open\n', "cannot be read as CSV"),
        (b"file_name,text\na.jpg," + b"x" * 200_000, "field larger than field limit"),
    ],
)
def test_a_csv_that_cannot_be_used_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_metadata(_csv(tmp_path, content))


def test_a_damaged_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "metadata.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(DataError, match="cannot be read as parquet"):
        read_metadata(tmp_path / "metadata.parquet")
