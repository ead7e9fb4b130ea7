"""Exported encoders: real ONNX files of small random torch networks, and what their description says."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from PIL import Image, ImageDraw
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.nn.functional import normalize, one_hot

from rmsh.cli.main import run
from rmsh.core.errors import ConfigError, FormatError
from rmsh.features.extract import check_encoder, restore
from rmsh.features.onnx_pair import OnnxImages, OnnxTexts

# The newer exporter of torch needs a package that nothing else here needs; the older one says that it is older.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

MEAN, STD, SIDE = [0.5, 0.4, 0.3], [0.2, 0.25, 0.5], 16
WORDS = ["[PAD]", "a", "red", "blue", "circle", "on", "white"]
TEXTS = ["a red circle", "blue", "a circle on white on blue"]


class Patches(torch.nn.Module):
    """Four patches of an image to a vector each."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = torch.nn.Conv2d(3, 8, 8, 8)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.patches(pixels))  # (n, 8, 2, 2)


class Tokens(torch.nn.Module):
    """A vector per token, which depends on the mask."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(len(WORDS), 8)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = torch.tanh(self.embedding(input_ids)) * attention_mask[:, :, None]
        return hidden, hidden.sum(1)


def _export(
    network: torch.nn.Module, given: tuple[Any, ...], path: Path, names: dict[str, list[str]], axes: Any
) -> None:
    torch.onnx.export(network, given, str(path), dynamo=False, **names, dynamic_axes=axes)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Patches, Tokens]:
    """The JSON file of a pair, and its networks."""
    torch.manual_seed(0)
    image, text = Patches().eval(), Tokens().eval()
    names = {"input_names": ["pixels"], "output_names": ["features"]}
    _export(image, (torch.zeros(1, 3, SIDE, SIDE),), tmp_path / "image.onnx", names, {"pixels": {0: "n"}})
    names = {"input_names": ["input_ids", "attention_mask"], "output_names": ["hidden", "sums"]}
    axes = {name: {0: "n", 1: "tokens"} for name in names["input_names"]}
    ones = torch.ones(2, 3, dtype=torch.int64)
    _export(text, (ones, ones), tmp_path / "text.onnx", names, axes)
    tokenizer = Tokenizer(models.WordLevel({word: row for row, word in enumerate(WORDS)}, unk_token=WORDS[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    files = ("image.onnx", "text.onnx", "tokenizer.json")
    described = {
        "files": {name: sha256((tmp_path / name).read_bytes()).hexdigest() for name in files},
        "image": {"network": "image.onnx", "size": SIDE, "mean": MEAN, "std": STD},
        "text": {"network": "text.onnx", "tokenizer": "tokenizer.json", "tokens": 5},
    }
    (tmp_path / "pair.json").write_text(json.dumps(described))
    return tmp_path / "pair.json", image, text


def _change(path: Path, side: str, **options: Any) -> None:
    described = json.loads(path.read_text())
    described[side] |= options
    path.write_text(json.dumps(described))


def _picture(width: int = 40, height: int = 20, colour: Any = "red") -> Image.Image:
    picture = Image.new("RGB", (width, height), "white")
    ImageDraw.Draw(picture).ellipse((3, 2, 30, 15), fill=colour)
    return picture


def _pixels(picture: Image.Image) -> torch.Tensor:
    channels = torch.from_numpy(np.array(picture, np.float32)).permute(2, 0, 1) / 255
    return ((channels - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None])[None]


def test_images_are_cropped_normalised_pooled_and_given_length_one(pair: tuple[Path, Patches, Tokens]) -> None:
    path, network, _ = pair
    # 40 x 20 becomes 32 x 16, of which the middle 16 x 16 are left.
    middle = _picture().resize((32, 16), Image.Resampling.BICUBIC).crop((8, 0, 24, 16))
    with torch.inference_mode():
        expected = normalize(network(_pixels(middle)).mean((2, 3))).numpy()
    encoder = OnnxImages(str(path))
    np.testing.assert_allclose(encoder.encode([_picture()] * 5), np.repeat(expected, 5, 0), atol=1e-6)
    assert (encoder.dim, encoder.modality) == (8, "image")


def test_images_can_be_squeezed_bilinear_and_pooled_by_the_first(pair: tuple[Path, Patches, Tokens]) -> None:
    path, network, _ = pair
    _change(path, "image", crop=False, resample="bilinear", pooling="first", normalize=False, output="features")
    with torch.inference_mode():
        squeezed = _picture().resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        expected = network(_pixels(squeezed))[:, :, 0, 0].numpy()
    np.testing.assert_allclose(OnnxImages(str(path)).encode([_picture()]), expected, atol=1e-6)


def test_a_network_of_one_image_at_a_time_gets_one_at_a_time(pair: tuple[Path, Patches, Tokens]) -> None:
    path, network, _ = pair
    expected = OnnxImages(str(path)).encode([_picture(), _picture(20, 40)])
    names = {"input_names": ["pixels"], "output_names": ["features"]}
    _export(network, (torch.zeros(1, 3, SIDE, SIDE),), path.parent / "image.onnx", names, {})
    described = json.loads(path.read_text())
    described["files"]["image.onnx"] = sha256((path.parent / "image.onnx").read_bytes()).hexdigest()
    path.write_text(json.dumps(described))
    np.testing.assert_allclose(OnnxImages(str(path)).encode([_picture(), _picture(20, 40)]), expected, atol=1e-6)


def test_texts_are_padded_cut_and_pooled_over_their_tokens(pair: tuple[Path, Patches, Tokens]) -> None:
    path, _, network = pair
    expected = []
    for text in TEXTS:
        ids = torch.tensor([[WORDS.index(word) for word in text.split()][:5]])  # the last text has six words
        with torch.inference_mode():
            expected.append(normalize(network(ids, torch.ones_like(ids))[0].mean(1))[0].numpy())
    np.testing.assert_allclose(OnnxTexts(str(path)).encode(TEXTS), expected, atol=1e-6)
    _change(path, "text", output="sums")  # which has one vector per text; its length is not that of the mean
    np.testing.assert_allclose(OnnxTexts(str(path)).encode(TEXTS), expected, atol=1e-6)


def test_a_network_of_fixed_length_gets_that_length_and_ids_alone_may_have_any_name(
    pair: tuple[Path, Patches, Tokens],
) -> None:
    path, *_ = pair

    class Ids(torch.nn.Module):
        def forward(self, words: torch.Tensor) -> torch.Tensor:
            return one_hot(words, len(WORDS)).float().sum(1)

    names = {"input_names": ["words"], "output_names": ["counts"]}
    _export(Ids(), (torch.zeros(1, 4, dtype=torch.int64),), path.parent / "text.onnx", names, {"words": {0: "n"}})
    described = json.loads(path.read_text())
    described["files"]["text.onnx"] = sha256((path.parent / "text.onnx").read_bytes()).hexdigest()
    described["text"]["normalize"] = False
    path.write_text(json.dumps(described))
    found = OnnxTexts(str(path)).encode(["a red circle", "blue on blue on blue"])
    assert found.tolist() == [[1, 1, 1, 0, 1, 0, 0], [0, 0, 0, 2, 0, 2, 0]]


def test_one_name_serves_both_sides_and_a_model_finds_its_encoders_again(
    pair: tuple[Path, Patches, Tokens], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, *_ = pair
    monkeypatch.chdir(path.parent)
    kinds = [check_encoder("onnx:pair.json", modality)[0] for modality in ("image", "text")]
    assert kinds == [OnnxImages, OnnxTexts]
    described = OnnxImages("pair.json").describe()
    monkeypatch.chdir("/")
    assert restore(described).describe() == described
    assert restore(described).fingerprint != OnnxTexts(str(path)).fingerprint
    _change(path, "image", mean=[0, 0, 0])
    with pytest.raises(FormatError, match=described["fingerprint"]):
        restore(described)


@pytest.mark.parametrize("name", ["image.onnx", "tokenizer.json"])
def test_a_changed_or_missing_file_is_refused(pair: tuple[Path, Patches, Tokens], name: str) -> None:
    path, *_ = pair
    changed = path.parent / name
    changed.write_bytes(changed.read_bytes() + b" ")
    with pytest.raises(FormatError, match=f"{name} has the SHA-256"):
        OnnxTexts(str(path)).encode(["a"])
    changed.unlink()
    with pytest.raises(FormatError, match="no such file"):
        OnnxImages(str(path)).encode([_picture()])


def test_weights_outside_the_network_must_be_listed(pair: tuple[Path, Patches, Tokens]) -> None:
    path, *_ = pair
    expected = OnnxImages(str(path)).encode([_picture()])
    file = path.parent / "image.onnx"
    onnx.save(onnx.load(file), file, save_as_external_data=True, location="weights.bin", size_threshold=0)
    described = json.loads(path.read_text())
    described["files"]["image.onnx"] = sha256(file.read_bytes()).hexdigest()
    path.write_text(json.dumps(described))
    with pytest.raises(ConfigError, match=r"reads weights\.bin, which its \"files\" do not list"):
        OnnxImages(str(path)).encode([_picture()])
    described["files"]["weights.bin"] = sha256((path.parent / "weights.bin").read_bytes()).hexdigest()
    path.write_text(json.dumps(described))
    np.testing.assert_array_equal(OnnxImages(str(path)).encode([_picture()]), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["image"].update(size=0), "'size' got 0"),
        (lambda d: d["image"].update(sise=8), "'sise' is unknown; did you mean 'size'"),
        (lambda d: d["image"].update(output="none"), "no output 'none'; it has features"),
        (lambda d: d["image"].update(network="other.onnx"), 'reads other.onnx, which its "files" do not list'),
        (lambda d: d.pop("image"), "does not describe an encoder of images"),
        (lambda d: d.pop("files"), "does not describe an encoder of images"),
    ],
)
def test_a_wrong_description_is_one_sentence(
    pair: tuple[Path, Patches, Tokens], change: Callable[[Any], Any], message: str
) -> None:
    path, *_ = pair
    described = json.loads(path.read_text())
    change(described)
    path.write_text(json.dumps(described))
    with pytest.raises(ConfigError, match=message) as caught:
        OnnxImages(str(path)).encode([_picture()])
    assert "\n" not in str(caught.value)


def test_a_missing_description_is_one_sentence_of_the_command(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _picture().save(tmp_path / "a.png")
    name = f"onnx:{tmp_path / 'none.json'}"
    words = ["train", str(tmp_path), "--out", str(tmp_path / "model"), "--method", "rotation"]
    assert run([*words, "--image-encoder", name, "--text-encoder", name]) == 2
    assert "none.json does not describe an encoder" in capfd.readouterr().err


@pytest.mark.slow
def test_a_library_is_built_and_searched_with_an_exported_pair(
    pair: tuple[Path, Patches, Tokens], capfd: pytest.CaptureFixture[str]
) -> None:
    path, *_ = pair
    images, out = path.parent / "images", path.parent / "library"
    images.mkdir()
    for number in range(30):
        _picture(30, 20 + number % 7, (8 * number, 250 - 40 * (number % 6), 90)).save(images / f"{number:02}.png")
        (images / f"{number:02}.txt").write_text(" ".join(WORDS[1 + number % 3 : 4 + number % 4]))
    words = ["build", str(images), "--out", str(out), "--method", "rotation", "--learn-from", "pairs", "--bits", "32"]
    assert run([*words, "--image-encoder", f"onnx:{path}", "--text-encoder", f"onnx:{path}"]) == 0
    capfd.readouterr()
    assert run(["search", str(out), "--image", str(images / "07.png"), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["hits"][0]["id"] == "07.png"
