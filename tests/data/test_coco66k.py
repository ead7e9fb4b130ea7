"""The coco66k folder: a small copy of its form, and the real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rmsh.core.errors import DataError
from rmsh.data.labels import pack_labels
from rmsh.data.readers.coco66k import decompand, is_coco66k, read_coco66k
from rmsh.data.splits import fingerprint_ids, unseen_split

ROWS = ["42\tdatabase\tA rack of shoes", "49\tdatabase\tTwo men", "7\tquery\tA clock tower"]
LABELS = np.array([[1, 0, 0], [1, 0, 1], [0, 1, 0]], dtype=np.uint8)


def write(folder: Path, *, rows: list[str] = ROWS, header: str = "id\tsplit\tcaption", **arrays: object) -> Path:
    (folder / "pairs.tsv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    labels = {"ids": [42, 49, 7], "labels": pack_labels(LABELS), "names": ["shoe", "clock", "horse"]} | arrays
    np.savez(folder / "labels.npz", **{key: value for key, value in labels.items() if value is not None})
    np.save(folder / "image_features.u8.npy", np.arange(12, dtype=np.uint8).reshape(3, 4))
    return folder


def test_a_folder_becomes_pairs_and_a_split(tmp_path: Path) -> None:
    pairs, split = read_coco66k(write(tmp_path))
    assert pairs.ids.tolist() == ["42", "49", "7"]
    assert pairs.texts.tolist() == ["A rack of shoes", "Two men", "A clock tower"]
    assert pairs.labels.tolist() == LABELS.tolist()
    assert pairs.class_names == ("shoe", "clock", "horse")
    assert (split.database.tolist(), split.train.tolist(), split.query.tolist()) == ([0, 1], [0, 1], [2])
    np.testing.assert_array_equal(pairs.images, decompand(np.arange(12, dtype=np.uint8).reshape(3, 4)))


def test_without_image_features_their_file_is_not_needed(tmp_path: Path) -> None:
    (write(tmp_path) / "image_features.u8.npy").unlink()
    assert not read_coco66k(tmp_path, image_features=False)[0].has_image.any()
    with pytest.raises(DataError, match=r"has no image_features.u8.npy; coco66k is a folder with"):
        read_coco66k(tmp_path)


def test_stored_bytes_are_decoded_by_squaring() -> None:
    stored = np.arange(256, dtype=np.uint8)
    expected = (stored.astype(np.float32) / 255 * 2.4454997) ** 2
    np.testing.assert_allclose(decompand(stored), expected, rtol=1e-6)


def test_ids_in_another_order_are_refused_by_row(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"key 'ids' differs from pairs.tsv at row 0 \(49, not 42\), row 1 \(42, not 49\)"
    ):
        read_coco66k(write(tmp_path, ids=[49, 42, 7]))


def test_another_number_of_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has 3 ids and 2 rows of labels, but pairs.tsv has 3 rows"):
        read_coco66k(write(tmp_path, labels=pack_labels(LABELS[:2])))


def test_labels_of_another_width_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"9 classes need uint8 of shape \(n, 2\)"):
        read_coco66k(write(tmp_path, names=[str(c) for c in range(9)]))


def test_an_error_about_a_missing_key_lists_the_keys(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"labels.npz has no key 'names', only 'ids', 'labels'"):
        read_coco66k(write(tmp_path, names=None))


def test_bad_lines_are_named_by_number(tmp_path: Path) -> None:
    rows = ["42\tdatabase", "49\ttest\tTwo men", "7\tquery\tA clock tower"]
    with pytest.raises(DataError, match=r"line 2 \('42\\tdatabase'\), line 3 \('49\\ttest\\tTwo men'\)"):
        read_coco66k(write(tmp_path, rows=rows))


def test_another_header_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"pairs.tsv, line 1 is 'id,split'; the tab-separated header id, split, caption"
    ):
        read_coco66k(write(tmp_path, header="id,split"))


def test_a_table_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (write(tmp_path) / "pairs.tsv").write_bytes(b"id\xff\xfe")
    with pytest.raises(DataError, match="is not a text file in UTF-8"):
        read_coco66k(tmp_path)


@pytest.mark.parametrize("features", [np.zeros((2, 4), dtype=np.uint8), np.zeros((3, 4), dtype=np.float32)])
def test_features_of_other_rows_or_type_are_refused(tmp_path: Path, features: Any) -> None:
    np.save(write(tmp_path) / "image_features.u8.npy", features)
    with pytest.raises(DataError, match=r"uint8 of shape \(3, features\).*pairs.tsv"):
        read_coco66k(tmp_path)


def test_the_real_captions_and_labels_are_as_published(coco66k_root: Path) -> None:
    pairs, split = read_coco66k(coco66k_root, image_features=False)
    assert is_coco66k(coco66k_root)
    assert (len(pairs), len(split.database), len(split.query)) == (61_903, 56_947, 4_956)
    assert pairs.texts[0] == "This wire metal rack holds several pairs of shoes and sandals"
    assert len(pairs.class_names) == 80
    assert pairs.labels.sum(axis=1).mean() == pytest.approx(2.95, abs=0.005)
    assert pairs.labels[:, pairs.class_names.index("person")].mean() == pytest.approx(0.66, abs=0.005)


def test_the_real_features_are_bytes_of_the_documented_size(coco66k_root: Path) -> None:
    stored = np.load(coco66k_root / "image_features.u8.npy", mmap_mode="r")
    assert stored.shape == (61_903, 1280)
    some = decompand(stored[:50])
    assert some.dtype == np.float32
    assert 0 <= some.min() < some.mean() < some.max() <= 2.4454997**2 + 1e-6


def test_the_pairs_held_out_of_the_real_data_are_the_fixed_ones(coco66k_root: Path) -> None:
    pairs, split = read_coco66k(coco66k_root, image_features=False)
    unseen = unseen_split(split)
    # Recorded in every result of the protocol unseen; another version of numpy must not draw others.
    held_out = {"count": 8000, "sha256": "2acbe11a21f9283e6822d5da4c36bb03ddd33cf7bd8e7a4bca020fcd8ef528a6"}
    assert fingerprint_ids(pairs.ids[unseen.database]) == held_out
    assert (len(unseen.database), len(unseen.query), len(unseen.train)) == (8_000, 4_956, 46_947)
    assert fingerprint_ids(pairs.ids[unseen_split(split, seed=1).database]) != held_out
