"""Prepared pairs: what is written is read, old samples stay readable, damage and newer versions are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from lab.benchmarks.prepare import write_prepared
from rmsh.core.errors import DataError, FormatError, InputError
from rmsh.core.files import sha256
from rmsh.data.open import open_pairs
from rmsh.data.pairs import Pairs
from rmsh.data.splits import Split

SAMPLE = Path(__file__).resolve().parent.parent / "samples" / "pairs_v1"
FACTS: dict[str, Any] = {"benchmark": "mirflickr25k", "protocol": {"seed": 3}, "notes": ["one", "two"]}
SPLIT = Split("tiny", database=[0, 1, 2], query=[3], train=[0, 1])
PAIRS = Pairs(
    ids=np.array(["a", "b", "c", "d"]),
    images=np.arange(8.0).reshape(4, 2),
    texts=sparse.csr_array(np.eye(4)),
    labels=np.array([[1, 0], [0, 1], [0, 0], [1, 1]]),
    class_names=("sky", "sea"),
    has_image=np.array([True, True, False, True]),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_prepared(tmp_path / "pairs", PAIRS, SPLIT, facts=FACTS)
    return tmp_path / "pairs"


def check(pairs: Pairs) -> None:
    assert pairs.ids.tolist() == ["a", "b", "c", "d"]
    assert pairs.images.tolist() == PAIRS.images.tolist()
    assert isinstance(pairs.texts, sparse.csr_array)
    assert pairs.texts.toarray().tolist() == np.eye(4).tolist()
    assert (pairs.labels.tolist(), pairs.class_names) == (PAIRS.labels.tolist(), ("sky", "sea"))
    assert pairs.has_image.tolist() == [True, True, False, True]


def test_features_are_read_with_masks_labels_and_split(folder: Path) -> None:
    opened = open_pairs(folder)
    check(opened.pairs)
    assert (opened.split.name, opened.split.sha256) == ("tiny", SPLIT.sha256)


def test_a_sample_of_version_1_stays_readable() -> None:
    opened = open_pairs(SAMPLE)
    check(opened.pairs)
    assert opened.split.sha256 == SPLIT.sha256


def test_raw_images_and_texts_are_read(tmp_path: Path) -> None:
    raw = replace(PAIRS, images=np.array(["1.jpg", "2.jpg", "", "4.jpg"]), texts=np.array(["é", "", "two words", "x"]))
    write_prepared(tmp_path / "raw", raw, SPLIT, facts=FACTS)
    pairs = open_pairs(tmp_path / "raw").pairs
    assert pairs.images.tolist() == raw.images.tolist()
    assert pairs.texts.tolist() == raw.texts.tolist()
    assert pairs.has_image.tolist() == raw.has_image.tolist()


def test_skipped_and_missing_columns_are_absent(tmp_path: Path, folder: Path) -> None:
    pairs = open_pairs(folder, skip=("images", "labels")).pairs
    assert (pairs.images, pairs.labels, pairs.class_names) == (None, None, ())
    assert not pairs.has_image.any()
    write_prepared(tmp_path / "bare", replace(PAIRS, images=None, has_image=None), SPLIT, facts=FACTS)
    assert open_pairs(tmp_path / "bare").pairs.images is None


def test_the_folder_is_opened_like_any_data_and_its_split_is_noted(folder: Path) -> None:
    opened = open_pairs(folder)
    check(opened.pairs)
    assert (opened.name, opened.split.name) == ("mirflickr25k", "tiny")
    assert opened.notes[0].startswith("mirflickr25k with the split 'tiny', seed 3, SHA-256 ")


def test_the_manifest_has_the_hash_of_every_file_and_split(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["files"] == {name: sha256(folder / name) for name in manifest["files"]}
    assert set(manifest["files"]) == {"items.parquet", "labels.npy", "images.npy", "texts.npz"}
    assert manifest["splits"]["split.json"] == json.loads((folder / "split.json").read_text())["sha256"]


def test_a_finished_folder_is_not_written_again(folder: Path) -> None:
    with pytest.raises(InputError, match="prepared pairs"):
        write_prepared(folder, PAIRS, SPLIT, facts=FACTS)


def test_a_folder_without_a_manifest_has_no_split_and_is_written_again(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    assert open_pairs(folder).split is None
    write_prepared(folder, replace(PAIRS, texts=np.ones((4, 3))), SPLIT, facts=FACTS)
    assert open_pairs(folder).pairs.texts.shape == (4, 3)  # not the bag of words that was left there


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"version": 2}, "has version 2 of 'rmsh-pairs', this rmsh reads up to version 1"),
        ({"format": "x"}, "is not of the format 'rmsh-pairs'"),
    ],
)
def test_another_manifest_is_refused(folder: Path, change: Any, sentence: str) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | change))
    with pytest.raises(FormatError, match=sentence):
        open_pairs(folder)


@pytest.mark.parametrize("name", ["images.npy", "split.json"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(DataError, match=f"lacks {name}"):
        open_pairs(folder)


@pytest.mark.parametrize(("name", "error"), [("items.parquet", FormatError), ("labels.npy", DataError)])
def test_a_damaged_file_is_refused(folder: Path, name: str, error: Any) -> None:
    (folder / name).write_bytes(b"damaged")
    with pytest.raises(error, match=name):
        open_pairs(folder)
