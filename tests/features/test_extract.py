"""From raw columns to features: missing and unreadable items, the cache, encoders by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy import sparse

from rmsh.core.errors import ConfigError, DataError
from rmsh.data.pairs import Pairs
from rmsh.data.records import Skipped
from rmsh.features.bag_of_words import BagOfWords
from rmsh.features.efficientnet import EfficientNet
from rmsh.features.extract import encode_items, encode_now, encode_pairs, prepare, restore


class Brightness(EfficientNet):
    """How bright an image is, and how many were encoded."""

    name = "brightness"
    fingerprint = "0"
    dim = 1
    calls = 0

    def _embed(self, images: Any) -> Any:
        type(self).calls += len(images)
        return np.array([[pixels.mean()] for pixels in images], dtype=np.float32)


@pytest.fixture
def pairs(tmp_path: Path) -> Pairs:
    """A black, a missing, a damaged and a white image."""
    Image.new("L", (8, 8), 0).save(tmp_path / "0.png")
    (tmp_path / "2.png").write_bytes(b"damaged")
    Image.new("L", (8, 8), 255).save(tmp_path / "3.png")
    paths = np.array([str(tmp_path / "0.png"), "", str(tmp_path / "2.png"), str(tmp_path / "3.png")])
    return Pairs(ids=np.array(list("abcd")), images=paths, has_image=np.array([True, False, True, True]))


@pytest.mark.parametrize("kept", [False, True])
def test_unreadable_images_become_missing_and_are_reported(pairs: Pairs, tmp_path: Path, kept: bool) -> None:
    skipped: list[Skipped] = []
    cache = tmp_path / "cache" if kept else None
    found = encode_pairs(pairs, {"image": Brightness()}, cache=cache, on_skipped=skipped.extend)
    assert found.features("image")[:, 0].tolist() == [0, 0, 0, 255]
    assert found.has_image.tolist() == [True, False, False, True]
    assert [(one.file, one.id, one.left_out) for one in skipped] == [(str(tmp_path / "2.png"), "c", "item")]
    assert "2.png" in skipped[0].reason


def test_unreadable_images_are_refused_by_default(pairs: Pairs) -> None:
    with pytest.raises(DataError, match=r"2\.png"):
        encode_pairs(pairs, {"image": Brightness()})


def test_an_image_that_was_changed_is_encoded_again(pairs: Pairs, tmp_path: Path) -> None:
    column, cache = np.asarray(pairs.images)[[0, 3]].tolist(), tmp_path / "cache"
    encode_items(Brightness(), column, cache=cache)
    before = Brightness.calls
    assert encode_items(Brightness(), column, cache=cache).features[0, 0] == 0
    assert Brightness.calls == before
    Image.new("L", (8, 8), 100).save(column[0])
    os.utime(column[0], ns=(1, 1))
    assert encode_items(Brightness(), column, cache=cache).features[0, 0] == 100
    assert Brightness.calls == before + 2


def test_sparse_features_are_not_kept_and_missing_texts_are_empty_rows(tmp_path: Path) -> None:
    found = encode_items(BagOfWords(["dog", "red"]), ["red", None, "dog red"], cache=tmp_path).features
    assert sparse.issparse(found)
    assert found.toarray().tolist() == [[0, 1], [0, 0], [1, 1]]
    assert not list(tmp_path.iterdir())


def test_rows_of_missing_items_are_zero() -> None:
    encoder, items = BagOfWords(["a", "b"]), ["a", "b", "a b", "b"]
    whole = encode_now(encoder, items).features.toarray()
    for number in range(16):
        present = np.array([bool(number >> row & 1) for row in range(4)])
        given = [item if there else None for item, there in zip(items, present, strict=True)]
        found = encode_now(encoder, given).features.toarray()
        np.testing.assert_array_equal(found, whole * present[:, None])


def test_an_encoder_of_the_other_modality_is_refused(pairs: Pairs) -> None:
    with pytest.raises(ConfigError, match=r"minilm encodes texts.*images"):
        prepare("minilm", pairs, modality="image", rows=np.arange(4))


def test_a_model_of_another_library_is_selected_by_name(pairs: Pairs) -> None:
    assert prepare("timm:resnet18", pairs, modality="image", rows=np.arange(4)).name == "timm:resnet18"
    for name in ("timm", "timm:", "tim:resnet18"):
        with pytest.raises(ConfigError, match=r"There is no encoder called .*did you mean 'timm:NAME'"):
            prepare(name, pairs, modality="image", rows=np.arange(4))


def test_an_encoder_is_restored_from_its_description() -> None:
    described = EfficientNet().describe()
    assert restore(described).describe() == described
