"""EfficientNet-Lite0 with its real weights: equal to the torch model, near the stored features of real photographs."""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rmsh.core.errors import DataError, FormatError
from rmsh.core.progress import Progress
from rmsh.data.readers.coco66k import read_coco66k
from rmsh.features.efficientnet import EfficientNet
from rmsh.features.extract import restore
from rmsh.features.weights import locate, read_tensors


@pytest.fixture(scope="module")
def encoder() -> EfficientNet:
    return EfficientNet()


def _noise(n: int) -> list[Image.Image]:
    rng = np.random.default_rng(0)
    return [Image.fromarray(rng.integers(0, 256, (224, 224, 3), dtype=np.uint8)) for _ in range(n)]


def test_the_weights_are_those_torch_reads() -> None:
    import torch

    wanted = torch.load(locate("efficientnet-lite0"), weights_only=True)
    found = read_tensors(locate("efficientnet-lite0"))
    assert set(found) == set(wanted)
    assert all(np.array_equal(found[name], wanted[name].numpy()) for name in wanted)


def test_the_features_are_those_of_the_torch_model(encoder: EfficientNet) -> None:
    import torch
    from efficientnet_lite_pytorch import EfficientNet as Reference

    network = Reference.from_name("efficientnet-lite0").eval()
    network.load_state_dict(torch.load(locate("efficientnet-lite0"), weights_only=True))
    pixels = np.stack([np.asarray(picture, dtype=np.float32) for picture in _noise(3)])
    with torch.inference_mode():
        inputs = torch.from_numpy((pixels - 127) / 128).permute(0, 3, 1, 2)
        wanted = network.extract_features(inputs).mean((2, 3)).numpy()
    np.testing.assert_allclose(encoder.encode(_noise(3)), wanted, atol=1e-4)


def test_real_photographs_are_near_their_stored_features(
    encoder: EfficientNet, coco66k_root: Path, tmp_path: Path
) -> None:
    with tarfile.open(coco66k_root / "images.tar") as tar:
        members = tar.getmembers()[:24]
        tar.extractall(tmp_path, members, filter="data")
    pairs, _ = read_coco66k(coco66k_root)
    row_of = {int(name): row for row, name in enumerate(pairs.ids)}
    stored = np.asarray(pairs.features("image"))[[row_of[int(Path(member.name).stem)] for member in members]]
    found = encoder.encode([str(tmp_path / member.name) for member in members])
    cosine = _unit(found) @ _unit(stored).T
    # The stored features are of 256 x 256 pixels, the tar has 192 x 192: close, but not equal.
    assert cosine.diagonal().min() > 0.9
    assert (cosine.argmax(axis=1) == np.arange(len(members))).all()


def _unit(features: np.ndarray) -> np.ndarray:
    return features / np.linalg.norm(features, axis=1, keepdims=True)


def test_other_images_of_a_batch_change_no_bit(encoder: EfficientNet) -> None:
    together, alone = encoder.encode(_noise(5)), encoder.encode(_noise(5)[3:4])
    assert together.shape == (5, 1280)
    np.testing.assert_array_equal(together[3], alone[0])


def test_torch_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert EfficientNet().encode(_noise(1)).shape == (1, 1280)


def test_unreadable_images_are_refused_or_listed_by_row(encoder: EfficientNet) -> None:
    reports: list[Progress] = []
    items = [_noise(1)[0], "gone.jpg", _noise(1)[0], b"no picture"]
    features, unreadable = encoder.encode_readable(items, on_progress=reports.append)
    assert [one.row for one in unreadable] == [1, 3]
    assert unreadable[0].reason.startswith("gone.jpg cannot be read as an image: there is no such file")
    assert not features[[1, 3]].any()
    np.testing.assert_array_equal(features[0], features[2])
    assert reports[-1].done == reports[-1].total == 4
    with pytest.raises(DataError, match=r"gone\.jpg .* The given file cannot be read"):
        encoder.encode(items)
    with pytest.raises(DataError, match=r"And 2 more\.$"):
        encoder.encode(["gone.jpg"] * 12)


def test_an_empty_list_has_no_features(encoder: EfficientNet) -> None:
    assert encoder.encode([]).shape == (0, 1280)


def test_a_description_of_other_weights_is_refused(encoder: EfficientNet) -> None:
    assert restore(encoder.describe()).fingerprint == encoder.fingerprint
    with pytest.raises(FormatError, match="efficientnet-lite0 0123"):
        restore({"name": "efficientnet-lite0", "fingerprint": "0123"})


def test_a_file_of_another_form_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.pth"
    for content in (b"", b"PK\x03\x04", locate("efficientnet-lite0").read_bytes()[:100_000]):
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"weights\.pth"):
            read_tensors(path)
