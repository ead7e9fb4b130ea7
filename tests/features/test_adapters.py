"""Adapters of other libraries, over small fakes that have the functions we call."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from rmsh.core.errors import ConfigError, FormatError, MissingExtraError
from rmsh.core.progress import Progress
from rmsh.features.adapters import OpenClip, OpenClipText, SentenceTransformers, Timm
from rmsh.features.extract import restore

RED, BLUE = Image.new("RGB", (8, 8), "red"), Image.new("RGB", (8, 8), "blue")


class Network(torch.nn.Module):
    """Mean colour times a weight; texts by their length."""

    def __init__(self, weight: float = 1.0) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(weight))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return pixels.mean((2, 3)) * self.weight

    def encode_image(self, pixels: torch.Tensor, normalize: bool) -> torch.Tensor:
        return torch.nn.functional.normalize(self(pixels)) if normalize else self(pixels)

    def encode_text(self, tokens: torch.Tensor, normalize: bool) -> torch.Tensor:
        return torch.nn.functional.normalize(tokens.float()) if normalize else tokens.float()

    max_seq_length = 256

    def encode(self, texts: list[str], **_: Any) -> np.ndarray:
        return np.array([[len(text), 1.0] for text in texts])


def _transform(picture: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.asarray(picture.resize((4, 4)), dtype=np.float32) / 255).permute(2, 0, 1)


def _module(monkeypatch: pytest.MonkeyPatch, name: str, **functions: Any) -> None:
    module = ModuleType(name)
    vars(module).update(functions)
    monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def timm(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Calls of a fake timm, whose network has the length of the model's name as its weight."""
    asked: list[dict[str, Any]] = []

    def create_model(name: str, **options: Any) -> Network:
        asked.append({"name": name, **options})
        return Network(float(len(name)))

    data = SimpleNamespace(
        resolve_model_data_config=lambda network: {"size": 4}, create_transform=lambda size, is_training: _transform
    )
    _module(monkeypatch, "timm", create_model=create_model, data=data)
    return asked


@pytest.fixture
def open_clip(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The weights that were requested from a fake open_clip."""
    asked: list[str | None] = []

    def create(name: str, pretrained: str | None) -> tuple[Network, Any, Any]:
        asked.append(pretrained)
        return Network(), None, _transform

    _module(
        monkeypatch,
        "open_clip",
        create_model_and_transforms=create,
        list_pretrained_tags_by_model=lambda name: ["openai", "laion2b_s1"] if name == "ViT" else [],
        get_tokenizer=lambda name: lambda texts: torch.tensor([[len(text), 1] for text in texts]),
    )
    return asked


def test_timm_gives_the_network_without_its_classifier(timm: list[dict[str, Any]]) -> None:
    encoder = Timm("net")
    np.testing.assert_allclose(encoder.encode([RED, BLUE]), [[3, 0, 0], [0, 0, 3]])
    assert (encoder.dim, encoder.name, encoder.modality) == (3, "timm:net", "image")
    assert timm == [{"name": "net", "pretrained": True, "num_classes": 0}]


def test_images_pass_in_batches_and_unreadable_ones_are_listed(timm: list[dict[str, Any]]) -> None:
    features, unreadable = Timm("net").encode_readable([RED] * 40 + ["gone.png"] + [BLUE] * 40)
    assert [one.row for one in unreadable] == [40]
    assert features[:, 0].tolist() == [3.0] * 40 + [0] * 41
    assert features[:, 2].tolist() == [0.0] * 41 + [3] * 40


def test_the_fingerprint_is_of_the_weights(timm: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    described = Timm("net").describe()
    assert restore(described).describe() == described
    assert Timm("four").fingerprint != described["fingerprint"]
    monkeypatch.setattr(sys.modules["timm"], "create_model", lambda name, **_: Network(0.5))
    with pytest.raises(FormatError, match="timm:net"):
        restore(described)


def test_open_clip_encodes_images_and_texts_to_length_one(open_clip: list[str | None]) -> None:
    np.testing.assert_allclose(OpenClip("ViT").encode([BLUE]), [[0, 0, 1]])
    np.testing.assert_allclose(OpenClipText("ViT").encode(["abc", "a" * 7]), [[3, 1], [7, 1]] / np.sqrt([[10], [50]]))
    assert open_clip == ["laion2b_s1", "laion2b_s1"]


def test_the_weights_of_open_clip_can_be_named_and_are_never_random(open_clip: list[str | None]) -> None:
    assert OpenClip("ViT/openai").dim == 3
    assert open_clip == ["openai"]
    with pytest.raises(ConfigError, match="open_clip has no weights for 'Nothing'"):
        OpenClip("Nothing").encode([RED])
    with pytest.raises(ConfigError, match="open_clip has no weights 'opnai' for ViT; it has openai, laion2b_s1"):
        OpenClip("ViT/opnai").encode([RED])


@pytest.mark.parametrize("kind", [OpenClip, OpenClipText])
def test_where_the_preprocessing_lies_in_memory_does_not_matter(
    kind: Any, *, open_clip: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = kind("ViT").describe()

    def transform(picture: Image.Image) -> torch.Tensor:
        return _transform(picture)

    transform.__qualname__ = _transform.__qualname__  # as it is called in another process, at another address
    tokens = sys.modules["open_clip"].get_tokenizer("ViT")  # another one each time
    monkeypatch.setattr(sys.modules["open_clip"], "get_tokenizer", lambda name: tokens)
    monkeypatch.setattr(
        sys.modules["open_clip"], "create_model_and_transforms", lambda name, pretrained: (Network(), None, transform)
    )
    assert restore(before).describe() == before


def test_networks_of_other_number_types_have_a_fingerprint_and_give_floats(
    timm: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(name: str, **_: Any) -> Network:
        return Network(0.5).bfloat16()

    monkeypatch.setattr(sys.modules["timm"], "create_model", half)
    encoder = Timm("net")
    assert len(encoder.fingerprint) == 16
    assert encoder.encode([RED]).dtype == np.float32


def test_what_a_library_cannot_load_is_a_sentence(timm: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str, **_: Any) -> Network:
        raise RuntimeError(f"Unknown model ({name})")

    monkeypatch.setattr(sys.modules["timm"], "create_model", unknown)
    with pytest.raises(ConfigError, match=r"timm:rennet cannot be loaded \(Unknown model \(rennet\)\); check the name"):
        Timm("rennet").encode([RED])


def test_sentence_transformers_encode_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    _module(monkeypatch, "sentence_transformers", SentenceTransformer=lambda name: Network())
    reports: list[Progress] = []
    encoder = SentenceTransformers("all-mpnet/base")
    features = encoder.encode(["a" * n for n in range(40)], on_progress=reports.append)
    np.testing.assert_array_equal(features[:, 0], np.arange(40))
    assert (features.dtype, encoder.dim, encoder.modality) == (np.float32, 2, "text")
    assert [report.done for report in reports] == [32, 40]
    assert restore(encoder.describe()).name == "sentence-transformers:all-mpnet/base"


@pytest.mark.parametrize(
    ("kind", "item"), [(Timm, RED), (OpenClip, RED), (OpenClipText, "a"), (SentenceTransformers, "a")]
)
def test_a_missing_library_names_the_extra(kind: Any, item: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("timm", "open_clip", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[hub\]"):
        kind("model").encode([item])
