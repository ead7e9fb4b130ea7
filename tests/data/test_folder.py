"""Folders of images: metadata files, .txt files, folders as classes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rmsh.core.errors import DataError
from rmsh.core.progress import Progress
from rmsh.data.open import open_pairs
from rmsh.data.readers import folder
from rmsh.data.readers.folder import is_image_folder, read_credit, read_folder, read_metadata
from rmsh.data.records import Record


def _write(folder: Path, **files: str | bytes) -> Path:
    """Files by name, with two underscores for a slash and one for a dot."""
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_a_metadata_file_lists_the_items(tmp_path: Path) -> None:
    (tmp_path / "metadata.csv").write_text("file_name,text\na.jpg,a dog\n")
    origin, notes = read_folder(_write(tmp_path, a_jpg="", b_jpg="", b_txt="not read"))
    assert [(record.id, record.text) for record in origin.records] == [("a.jpg", "a dog")]
    assert [(one.file, one.row, one.left_out) for one in origin.skipped] == [("b.jpg", None, "item")]
    assert notes == ["metadata.csv: 1 rows"]


def test_each_subfolder_may_have_its_own_metadata_file(tmp_path: Path) -> None:
    _write(tmp_path, train__a_jpg="", test__a_jpg="")
    (tmp_path / "train" / "metadata.csv").write_text("file_name,text\na.jpg,one\n")
    (tmp_path / "test" / "metadata.jsonl").write_text('{"file_name": "a.jpg", "text": "two"}\n')
    origin, _ = read_folder(tmp_path)
    assert [(r.id, r.text) for r in origin.records] == [("test/a.jpg", "two"), ("train/a.jpg", "one")]


def test_two_metadata_files_in_one_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"metadata\.csv and metadata\.jsonl"):
        read_folder(_write(tmp_path, metadata_csv="file_name\n", metadata_jsonl=""))


def test_a_text_file_next_to_an_image_is_its_text(tmp_path: Path) -> None:
    _write(tmp_path, a_jpg="", a_txt="\ufeffa dog\n", b_PNG="", c_txt="words alone", d_jpg="", d_txt=b"\0", x_pdf="")
    origin, notes = read_folder(tmp_path)
    assert [(r.id, r.picture, r.text) for r in origin.records] == [
        ("a.jpg", "a.jpg", "a dog"),
        ("b.PNG", "b.PNG", None),
        ("d.jpg", "d.jpg", None),
        ("c.txt", None, "words alone"),
    ]
    (skipped,) = origin.skipped
    assert (skipped.id, skipped.left_out) == ("d.jpg", "text")
    assert "ignored: 1 .pdf" in notes[-1]


def test_texts_in_older_encodings_are_read_and_mentioned(tmp_path: Path) -> None:
    cafe = {"a": "café".encode("latin-1"), "b": "café – 5 €".encode("cp1252"), "c": "café".encode("utf-16")}
    _write(tmp_path, **{f"{name}_txt": text for name, text in cafe.items()}, **{f"{name}_jpg": "" for name in cafe})
    origin, notes = read_folder(tmp_path)
    assert [record.text for record in origin.records] == ["café", "café – 5 €", "café"]
    assert any(note.startswith("2 texts are not in UTF-8") for note in notes)
    _write(tmp_path, metadata_csv="file_name,text\na.jpg,café\n".encode("latin-1"))
    assert read_folder(tmp_path)[0].records[0].text == "café"


def test_a_text_file_that_is_empty_or_huge_is_listed(tmp_path: Path) -> None:
    origin, _ = read_folder(_write(tmp_path, a_jpg="", a_txt=" ", b_jpg="", b_txt=b"x" * ((1 << 20) + 1)))
    reasons = {one.id: one.reason for one in origin.skipped}
    assert reasons.keys() == {"a.jpg", "b.jpg"}
    assert reasons["a.jpg"] == "the text is empty"
    assert "1,048,577 bytes, 1,048,576 are allowed" in reasons["b.jpg"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes among its files")
def test_a_text_outside_the_folder_and_a_pipe_are_listed_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = _write(tmp_path / "photos", a_jpg="", b_jpg="")
    (folder / "a.txt").symlink_to("../secret")
    os.mkfifo(folder / "b.txt")
    origin, _ = read_folder(folder)
    assert [record.text for record in origin.records] == [None, None]
    assert {one.file: one.left_out for one in origin.skipped} == {"a.txt": "text", "b.txt": "text"}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes among its files")
def test_metadata_outside_the_folder_and_a_pipe_are_refused(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("text\nsecret\n")
    folder = _write(tmp_path / "photos", a_jpg="")
    (folder / f"metadata{suffix}").symlink_to("../secret")
    with pytest.raises(DataError, match="leads out"):
        read_folder(folder)
    (folder / f"metadata{suffix}").unlink()
    os.mkfifo(folder / f"metadata{suffix}")
    with pytest.raises(DataError, match="pipe"):
        read_folder(folder)


def test_a_credit_outside_the_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = _write(tmp_path / "photos", a_jpg="")
    (folder / "CREDIT.txt").symlink_to("../secret")
    assert read_credit(folder) == ""
    (folder / "CREDIT.txt").unlink()
    (folder / "CREDIT.txt").write_text("by me " * 1000)
    assert len(read_credit(folder)) <= 2000


def test_a_text_that_is_repeated_in_every_row_takes_the_memory_of_one(tmp_path: Path) -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 3000, pa.int32()), pa.array(["long " * 400_000]))
    labels = pa.array([["x", "y"], None, []] * 1000)
    pq.write_table(pa.table({"text": texts, "labels": labels}), tmp_path / "metadata.parquet")
    assert (tmp_path / "metadata.parquet").stat().st_size < 1 << 20
    records, _, _ = read_metadata(tmp_path / "metadata.parquet")
    assert len({id(record.text) for record in records}) == 1
    assert [record.labels for record in records[:3]] == [("x", "y"), (), ()]


def test_a_parquet_file_with_too_many_rows_or_bytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"text": ["same"] * 1000}), tmp_path / "metadata.parquet")
    for name, value in {"MOST_ROWS": 999, "LARGEST_METADATA": 10}.items():
        with monkeypatch.context() as patch:
            patch.setattr(f"rmsh.data.readers.folder.{name}", value)
            with pytest.raises(DataError, match=r"1,000 rows|10 are allowed"):
                read_metadata(tmp_path / "metadata.parquet")


def test_a_parquet_file_that_could_repeat_long_prefixes_is_refused(tmp_path: Path) -> None:
    encoding = {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}}
    pq.write_table(pa.table({"text": ["same", "same too"]}), tmp_path / "metadata.parquet", **encoding)
    with pytest.raises(DataError, match="DELTA_BYTE_ARRAY"):
        read_metadata(tmp_path / "metadata.parquet")


def test_numbers_of_a_parquet_file_are_ids_and_labels(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [7, 8], "text": ["a", "b"], "label": [1, None]}), tmp_path / "metadata.parquet")
    records, _, _ = read_metadata(tmp_path / "metadata.parquet")
    assert [(record.id, record.labels) for record in records] == [("7", ("1",)), ("8", ())]


def test_one_folder_per_class_gives_labels(tmp_path: Path) -> None:
    origin, notes = read_folder(_write(tmp_path, dog__a_jpg="", cat__b_jpg="", cat__c_jpg=""))
    assert [(r.id, r.labels) for r in origin.records][-1] == ("dog/a.jpg", ("dog",))
    assert "the labels are names of folders, 2 classes" in notes


@pytest.mark.parametrize("files", [{"dog__a_jpg": "", "b_jpg": ""}, {"one__a_jpg": "", "one__b_jpg": ""}])
def test_other_folders_are_not_classes(tmp_path: Path, files: dict[str, str]) -> None:
    assert not any(record.labels for record in read_folder(_write(tmp_path, **files))[0].records)


def test_hidden_files_and_folders_are_ignored(tmp_path: Path) -> None:
    _write(tmp_path, a_jpg="")
    for name in ("._a.jpg", ".thumbnails/b.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert [record.id for record in read_folder(tmp_path)[0].records] == ["a.jpg"]


def test_a_library_among_the_images_is_ignored(tmp_path: Path) -> None:
    _write(tmp_path, a_jpg="", library__items_sqlite="", library__pictures__b_jpg="")
    _write(tmp_path, work__build_claim="", work__classes_txt="cat: cat")
    assert [record.id for record in read_folder(tmp_path)[0].records] == ["a.jpg"]


@pytest.mark.skipif(os.name == "nt", reason="making links takes rights on Windows")
def test_a_link_to_a_folder_outside_is_not_followed(tmp_path: Path) -> None:
    _write(tmp_path, other__b_jpg="", photos__a_jpg="")
    (tmp_path / "photos" / "more").symlink_to(tmp_path / "other", target_is_directory=True)
    assert [record.id for record in read_folder(tmp_path / "photos")[0].records] == ["a.jpg"]


def test_a_folder_without_images_is_not_an_image_folder(tmp_path: Path) -> None:
    assert not is_image_folder(_write(tmp_path, readme_txt=""))
    assert is_image_folder(_write(tmp_path, deep__er__a_webp=""))


def test_open_pairs_opens_a_folder(tmp_path: Path) -> None:
    (tmp_path / "metadata.csv").write_text("file_name,text,labels\na.jpg,a dog,dog\ngone.jpg,a cat,cat\n")
    opened = open_pairs(_write(tmp_path, a_jpg=""))
    assert opened.pairs.has_image.tolist() == [True, False]
    assert opened.origin is not None
    assert opened.origin.folder == tmp_path
    assert "1 picture was left out, such as metadata.csv, row 3" in opened.notes[-1]


def test_open_pairs_opens_a_metadata_file(tmp_path: Path) -> None:
    _write(tmp_path, a_jpg="")
    (tmp_path / "items.jsonl").write_text('{"file_name": "a.jpg", "size": 3}\n')
    opened = open_pairs(tmp_path / "items.jsonl")
    assert (opened.pairs.ids.tolist(), opened.name) == (["a.jpg"], "items")
    assert "columns that were not used: size" in opened.notes


def test_strict_refuses_what_would_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "metadata.csv").write_text("file_name,text,labels\ngone.jpg,a dog,dog\n")
    with pytest.raises(DataError, match=r"row 2 \(picture: 'gone.jpg' does not exist\)"):
        open_pairs(tmp_path, strict=True)


def test_matrices_take_precedence_over_images(tmp_path: Path) -> None:
    import numpy as np

    np.save(_write(tmp_path, a_jpg="") / "images.npy", np.eye(3))
    assert open_pairs(tmp_path).origin is None


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


def test_the_three_formats_give_the_same_records(tmp_path: Path) -> None:
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
def test_a_csv_is_read_in_every_dialect_of_spreadsheets(tmp_path: Path, content: str) -> None:
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


def test_a_metadata_file_in_a_subfolder_names_images_relative_to_it(tmp_path: Path) -> None:
    (record,), _, _ = read_metadata(_csv(tmp_path, "file_name\nx\\a.jpg\n"), inside="train")
    assert record == Record("train/metadata.csv", 2, "train/x/a.jpg", picture="train/x/a.jpg")


def test_unused_columns_are_listed(tmp_path: Path) -> None:
    rows = [{"file_name": "a.jpg", "width": 3}]
    for path in (_csv(tmp_path, "file_name,width\na.jpg,3\n"), _parquet(tmp_path, rows)):
        assert read_metadata(path)[2] == ["width"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"name,words\na,b\n", "'name', 'words'.*file_name"),
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


def _dogs(folder: Path, rows: int, **options: Any) -> Path:
    table = pa.table({"text": ["a dog"] * rows, "labels": [["dog", "cat"]] * rows})
    pq.write_table(table, folder / "metadata.parquet", **options)
    return folder / "metadata.parquet"


@pytest.mark.parametrize(("limit", "most"), [("MOST_ROWS", 9), ("MOST_ROWS", 19), ("LARGEST_METADATA", 100)])
def test_a_parquet_file_that_unpacks_to_too_much_is_refused_by_its_footer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, limit: str, most: int
) -> None:
    path = _dogs(tmp_path, 10)  # with 20 labels
    footer = pq.read_metadata(path)
    assert folder.check_parquet(footer, path) == ["labels.list.element", "text"]
    monkeypatch.setattr(folder, limit, most)
    with pytest.raises(DataError, match=rf"10 rows, up to 20 values .* at most .*{most:,}"):
        folder.check_parquet(footer, path)


def test_a_small_parquet_file_of_very_many_rows_is_refused(tmp_path: Path) -> None:
    path = _dogs(tmp_path, 200_000)
    assert path.stat().st_size < 20_000
    with pytest.raises(DataError, match="200,000 rows"):
        read_metadata(path)


def test_a_parquet_file_that_repeats_prefixes_is_refused(tmp_path: Path) -> None:
    path = _dogs(tmp_path, 10, use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"})
    with pytest.raises(DataError, match="DELTA_BYTE_ARRAY"):
        read_metadata(path)


@pytest.mark.parametrize(("name", "content"), [("csv", "text\n" + "a\n" * 9), ("jsonl", '{"text": "a"}\n' * 9)])
def test_too_many_rows_are_refused_in_every_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, name: str, content: str
) -> None:
    path = tmp_path / f"metadata.{name}"
    path.write_text(content)
    monkeypatch.setattr(folder, "MOST_ROWS", 8)
    with pytest.raises(DataError, match="more than 8 rows"):
        read_metadata(path)


def test_reading_texts_is_reported(tmp_path: Path) -> None:
    seen: list[Progress] = []
    read_folder(_write(tmp_path, a_jpg="", a_txt="a", b_jpg="", c_txt="c"), on_progress=seen.append)
    assert [(progress.stage, progress.done, progress.total) for progress in seen] == [
        ("read texts", done, 3) for done in (1, 2, 3)
    ]
