"""Parquet files with images inside: structs and plain bytes, several files, classes, and what cannot be used."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from rmsh.core.errors import DataError
from rmsh.data import open as open_module
from rmsh.data.open import open_pairs
from rmsh.data.readers import packed_images


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_module, "cache_folder", lambda: tmp_path / "cache")


def _image(number: int, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), (number, 0, 0)).save(file, kind)
    return file.getvalue()


def _write(path: Path, columns: dict[str, list[Any]], metadata: dict[str, Any] | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(columns)
    if metadata is not None:
        table = table.replace_schema_metadata({"huggingface": json.dumps(metadata)})
    pq.write_table(table, path)
    return path


def test_a_file_of_hugging_face_is_read_with_the_names_of_its_classes(tmp_path: Path) -> None:
    images = [{"bytes": _image(number), "path": path} for number, path in enumerate(("a.png", "a.png", None))]
    kinds = {"info": {"features": {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}
    columns = {"image": images, "label": [1, 0, 1], "caption": ["one", None, "three"]}
    opened = open_pairs(_write(tmp_path / "train.parquet", columns, kinds))
    assert opened.origin is not None
    assert [(record.id, record.text, record.labels) for record in opened.origin.records] == [
        ("a.png", "one", ("dog",)),
        ("2", None, ("cat",)),
        ("3", "three", ("dog",)),
    ]
    for number, record in enumerate(opened.origin.records):
        assert opened.origin.path(str(record.picture)).read_bytes() == _image(number)
    assert opened.origin.skipped == ()


def test_plain_bytes_and_several_files_are_read(tmp_path: Path) -> None:
    for name in ("train-0", "train-1"):
        _write(tmp_path / "set" / "data" / f"{name}.parquet", {"image": [_image(1, "JPEG"), _image(2, "GIF")]})
    opened = open_pairs(tmp_path / "set")
    assert opened.origin is not None
    assert [record.picture for record in opened.origin.records] == [
        f"{name}/{file}" for name in ("train-0", "train-1") for file in ("1.jpg", "2.gif")
    ]
    assert open_pairs(tmp_path / "set").pairs.ids.tolist() == opened.pairs.ids.tolist()


def test_rows_without_an_image_are_explained(tmp_path: Path) -> None:
    columns = {"image": [{"bytes": None, "path": "far/away.jpg"}, None, {"bytes": _image(1), "path": "../x.png"}]}
    opened = open_pairs(_write(tmp_path / "a.parquet", columns | {"text": ["left", None, "out"]}))
    assert opened.origin is not None
    assert [(one.row, one.left_out) for one in opened.origin.skipped] == [(1, "picture"), (2, "picture"), (2, "item")]
    assert [(record.id, record.picture) for record in opened.origin.records] == [
        ("far/away.jpg", None),
        ("../x.png", "3.png"),
    ]


def test_a_large_file_is_read_in_small_parts(tmp_path: Path) -> None:
    content = [np.random.default_rng(number).bytes(1 << 18) for number in range(200)]  # 50 MB, 5 MB in a group of rows
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"image": content, "text": ["x"] * 200}), path, row_group_size=20)
    before = pa.default_memory_pool().bytes_allocated()
    most = 0
    with path.open("rb") as file:
        for _ in packed_images._rows(file, path):
            most = max(most, pa.default_memory_pool().bytes_allocated() - before)
    assert most < 20 << 20


def test_a_small_file_that_would_fill_the_disk_is_refused(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.parquet", {"image": [_image(1) + bytes(1 << 20)] * 200})
    assert path.stat().st_size < 1 << 20
    with pytest.raises(DataError, match="bytes of images"):
        open_pairs(path)


def test_damage_is_named(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.parquet", {"image": [_image(1) * 20, _image(2) * 20], "text": ["x", "y"]})
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.parquet cannot be read as parquet"):
        open_pairs(path)


def test_other_parquet_files_are_metadata_files(tmp_path: Path) -> None:
    (tmp_path / "1.png").write_bytes(_image(1))
    _write(tmp_path / "metadata.parquet", {"file_name": ["1.png"], "image": ["not bytes"]})
    opened = open_pairs(tmp_path)
    assert opened.origin is not None
    assert not opened.origin.unpacked


SAVED = Path(__file__).parent.parent / "samples" / "saved_dataset"  # by datasets 4, with the splits train and test


def test_a_saved_data_set_is_read_with_all_splits_or_one() -> None:
    opened = open_pairs(SAVED)
    assert opened.notes[0] == "2 Arrow files with 5 rows"
    assert opened.origin is not None
    assert [(record.id, record.text, record.labels) for record in opened.origin.records] == [
        ("test-data-00000-of-00001/1", "a blue image", ("cold",)),
        ("test-data-00000-of-00001/2", "a red image", ("warm",)),
        ("train-data-00000-of-00001/1", "a red image", ("warm",)),
        ("train-data-00000-of-00001/2", "a blue image", ("cold",)),
        ("train-data-00000-of-00001/3", "a orange image", ("warm",)),
    ]
    first = opened.origin.records[0]
    assert Image.open(opened.origin.path(str(first.picture))).getpixel((0, 0)) == (0, 0, 255)
    assert open_pairs(SAVED / "test").pairs.ids.tolist() == ["1", "2"]


def test_a_saved_data_set_that_is_damaged_or_leads_out_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    shutil.copytree(SAVED / "train", folder)
    file = folder / "data-00000-of-00001.arrow"
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2 + 200])
    with pytest.raises(DataError, match="cannot be read as arrow"):
        open_pairs(folder)
    file.unlink()
    (tmp_path / "data-00000-of-00001.arrow").write_bytes(content)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "../data-00000-of-00001.arrow"}]}))
    with pytest.raises(DataError):
        open_pairs(folder)
