"""Features in Parquet files: what is read, what is missing, what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rmsh import open_pairs
from rmsh.core.errors import DataError


def write(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_columns_become_pairs(tmp_path: Path) -> None:
    images = pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32()))
    texts = pa.FixedSizeListArray.from_arrays(pa.array(range(9), pa.float64()), 3)
    labels = pa.array([["dog", "cat"], None, ["dog"]])
    path = write(tmp_path / "a.parquet", id=["x", "y", "z"], image_features=images, text_features=texts, labels=labels)

    opened = open_pairs(path)

    pairs = opened.pairs
    assert pairs.ids.tolist() == ["x", "y", "z"]
    assert pairs.images.tolist() == [[1, 2], [0, 0], [3, 4]]
    assert pairs.has_image.tolist() == [True, False, True]
    assert pairs.texts.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert pairs.has_text.all()
    assert pairs.class_names == ("cat", "dog")
    assert pairs.labels.tolist() == [[1, 1], [0, 0], [0, 1]]
    assert opened.split is None
    assert opened.name == "a"


def test_a_folder_of_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name, first in (("b", 10), ("a", 0)):
        write(tmp_path / f"{name}.parquet", id=[first, first + 1], text_features=[[float(first)], [first + 1.0]])
    write(tmp_path / "other.parquet", words=["not features"])

    pairs = open_pairs(tmp_path).pairs

    assert pairs.ids.tolist() == ["0", "1", "10", "11"]
    assert pairs.texts.ravel().tolist() == [0, 1, 10, 11]
    assert pairs.images is None


def test_a_sliced_column_with_nulls_keeps_its_rows(tmp_path: Path) -> None:
    rows = [None, *([float(n), float(-n)] for n in range(200)), None]
    pq.write_table(pa.table({"image_features": rows}), tmp_path / "a.parquet", row_group_size=7)

    pairs = open_pairs(tmp_path).pairs

    assert pairs.ids.tolist() == [str(n) for n in range(202)]
    assert np.flatnonzero(~pairs.has_image).tolist() == [0, 201]
    assert pairs.images[1:-1].tolist() == [[n, -n] for n in range(200)]


def test_roles_that_are_not_needed_are_not_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", image_features=[[1.0]], text_features=[[2.0]], labels=[["dog"]])
    pairs = open_pairs(path, skip=("images",)).pairs
    assert pairs.images is None
    assert pairs.texts.tolist() == [[2]]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([[1.0, 2.0], [3.0]], "lists of 1, 2 numbers"),
        (["words", "words"], "type string"),
        ([[1.0, None], [3.0, 4.0]], "row 0, column 1"),
        ([[["nested"]], [["nested"]]], "lists of numbers are expected"),
        ([["a"], ["b"]], "lists of numbers are expected"),
    ],
)
def test_what_are_not_features_is_refused(tmp_path: Path, values: list[Any], said: str) -> None:
    path = write(tmp_path / "a.parquet", image_features=values)
    with pytest.raises(DataError, match=said):
        open_pairs(path)


def test_files_with_different_columns_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", image_features=[[1.0]])
    write(tmp_path / "b.parquet", image_features=[[1.0]], text_features=[[1.0]])
    with pytest.raises(DataError, match="cannot be read together"):
        open_pairs(tmp_path)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", image_features=np.random.default_rng(0).random((2000, 4)).tolist())
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.parquet"):
        open_pairs(path)
