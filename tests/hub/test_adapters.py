"""Adapters over the real packages: small random models, made here, which are read from folders like downloaded ones."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import numpy as np
import pytest
from PIL import Image, ImageDraw

from rmsh.cli.main import run
from rmsh.core.errors import ConfigError, FormatError
from rmsh.features import adapters
from rmsh.features.base import Encoder
from rmsh.features.extract import check_encoder, restore

HERE = Path(__file__).parent
for _package in ("timm", "open_clip", "sentence_transformers", "transformers"):
    if importlib.util.find_spec(_package) is None:
        pytest.skip(f"{_package} is not installed; `make test-hub` installs and runs it", allow_module_level=True)
os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, str(HERE))
import vision  # type: ignore[import-not-found]  # noqa: E402, F401

# These packages warn about each other.
pytestmark = [pytest.mark.hub, pytest.mark.slow, pytest.mark.filterwarnings("default")]

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "the", "red", "blue", "green", "circle", "square", "on", "white"]
TEXTS = ["a red circle on the white", "a blue square", "green", "the unknown " * 20]
WIDTHS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
SIDE = {"image_size": 32, "patch_size": 8}


def _pictures() -> list[Image.Image]:
    made = []
    for colour, size in (("red", (50, 40)), ("blue", (30, 64)), ("green", (32, 32))):
        made.append(Image.new("RGB", size, "white"))
        ImageDraw.Draw(made[-1]).ellipse((4, 4, 24, 28), fill=colour)
    return made


def _tokenizer(folder: Path, **options: Any) -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    tokens = Tokenizer(models.WordLevel({word: row for row, word in enumerate(WORDS)}, unk_token=WORDS[1]))
    tokens.normalizer, tokens.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    tokens.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    named = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokens, **named, **options).save_pretrained(folder)


def _bert(folder: Path) -> None:
    from transformers import BertConfig, BertModel

    BertModel(BertConfig(vocab_size=len(WORDS), max_position_embeddings=16, **WIDTHS)).save_pretrained(folder)
    _tokenizer(folder)


def _sentences(folder: Path, pooling: str = "mean") -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    _bert(folder / "bert")
    words = Transformer(str(folder / "bert"), max_seq_length=12)
    SentenceTransformer(modules=[words, Pooling(32, pooling_mode=pooling)]).save(str(folder))


def _timm(folder: Path) -> None:
    import timm

    timm.models.save_for_hf(timm.create_model("resnet10t", pretrained=False), folder, safe_serialization=True)


def _open_clip(folder: Path) -> None:
    import open_clip
    import torch

    seen, read = {"layers": 2, "width": 64, "head_width": 16, **SIDE}, {"width": 32, "heads": 4, "layers": 2}
    network = open_clip.CLIP(24, open_clip.CLIPVisionCfg(**seen), open_clip.CLIPTextCfg(**read))
    folder.mkdir()
    about = {"model_cfg": {"embed_dim": 24, "vision_cfg": seen, "text_cfg": read}, "preprocess_cfg": {}}
    (folder / "open_clip_config.json").write_text(json.dumps(about))
    torch.save(network.state_dict(), folder / "open_clip_pytorch_model.bin")


def _clip(folder: Path) -> None:
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel

    special = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    text = {"vocab_size": len(WORDS), "max_position_embeddings": 16, **special, **WIDTHS}
    CLIPModel(CLIPConfig(text_config=text, vision_config={**SIDE, **WIDTHS}, projection_dim=24)).save_pretrained(folder)
    CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}).save_pretrained(folder)
    _tokenizer(folder)


def _siglip(folder: Path) -> None:
    from transformers import SiglipConfig, SiglipImageProcessor, SiglipModel

    text = {"vocab_size": len(WORDS), "max_position_embeddings": 16, "pad_token_id": 0, **WIDTHS}
    SiglipModel(SiglipConfig(text_config=text, vision_config={**SIDE, **WIDTHS})).save_pretrained(folder)
    SiglipImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)
    _tokenizer(folder)


def _vit(folder: Path, *, pooler: bool = True) -> None:
    from transformers import ViTConfig, ViTImageProcessor, ViTModel

    ViTModel(ViTConfig(**SIDE, **WIDTHS), add_pooling_layer=pooler).save_pretrained(folder)
    ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)


def _by_timm(folder: Path) -> Any:
    import timm
    import torch

    network = timm.create_model(f"local-dir:{folder}", pretrained=True, num_classes=0).eval()
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(network), is_training=False)
    return network(torch.stack([transform(picture) for picture in _pictures()]))


def _by_open_clip(folder: Path, modality: str) -> Any:
    import open_clip
    import torch

    network, transform = open_clip.create_model_from_pretrained(f"local-dir:{folder}")
    if modality == "text":
        return network.eval().encode_text(open_clip.get_tokenizer(f"local-dir:{folder}")(TEXTS), normalize=True)
    return network.eval().encode_image(torch.stack([transform(picture) for picture in _pictures()]), normalize=True)


def _by_sentence_transformers(folder: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder)).encode(TEXTS)


def _by_pipeline(folder: Path) -> Any:
    """The pipeline of transformers, text by text: the mean over all tokens, as nothing is padded."""
    from transformers import pipeline

    made = pipeline("feature-extraction", model=str(folder), tokenizer=str(folder))
    cut = {"truncation": True, "max_length": 16}
    return np.array([np.mean(made(text, tokenize_kwargs=cut)[0], axis=0) for text in TEXTS])


def _by_processor(folder: Path, modality: str, **padding: Any) -> Any:
    """The processor and the model of transformers, as its documentation shows them for CLIP and SigLIP."""
    import torch
    from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

    network = AutoModel.from_pretrained(folder).eval()
    if modality == "image":
        found = network.get_image_features(
            **AutoImageProcessor.from_pretrained(folder)(_pictures(), return_tensors="pt")
        )
    else:
        tokens = AutoTokenizer.from_pretrained(folder)(
            TEXTS, truncation=True, max_length=16, return_tensors="pt", return_token_type_ids=False, **padding
        )
        found = network.get_text_features(**tokens)
    return torch.nn.functional.normalize(found.pooler_output)


def _by_image_pipeline(folder: Path) -> Any:
    from transformers import pipeline

    return np.array(pipeline("image-feature-extraction", model=str(folder), pool=True)(_pictures())).squeeze(1)


# name of the encoder, how its folder is made, and what its package computes
CASES: dict[str, tuple[Callable[..., None], Callable[..., Any]]] = {
    "timm:local-dir:FOLDER": (_timm, _by_timm),
    "open_clip:local-dir:FOLDER": (_open_clip, lambda folder: _by_open_clip(folder, "image")),
    "open_clip-text:local-dir:FOLDER": (_open_clip, lambda folder: _by_open_clip(folder, "text")),
    "sentence-transformers:FOLDER": (_sentences, _by_sentence_transformers),
    "transformers:FOLDER": (_vit, _by_image_pipeline),
    "transformers-text:FOLDER": (_bert, _by_pipeline),
    "transformers:FOLDER clip": (_clip, lambda folder: _by_processor(folder, "image")),
    "transformers-text:FOLDER clip": (_clip, lambda folder: _by_processor(folder, "text", padding=True)),
    "transformers:FOLDER siglip": (_siglip, lambda folder: _by_processor(folder, "image")),
    "transformers-text:FOLDER siglip": (_siglip, lambda folder: _by_processor(folder, "text", padding="max_length")),
}


def _nothing_kept() -> None:
    """Networks are kept by name, and these tests write several to one folder."""
    adapters._clip.cache_clear()
    adapters._network.cache_clear()


def _make(name: str, folder: Path, seed: int = 0) -> Encoder:
    import torch

    torch.manual_seed(seed)
    CASES[name][0](folder)
    encoder: Encoder = restore({"name": name.partition(" ")[0].replace("FOLDER", str(folder))})
    return encoder


@pytest.mark.parametrize("name", CASES)
def test_features_are_those_of_the_package(name: str, tmp_path: Path) -> None:
    import torch

    encoder = _make(name, tmp_path / "model")
    with torch.inference_mode():
        expected = np.asarray(CASES[name][1](tmp_path / "model"), np.float32)
    found = encoder.encode(_pictures() if encoder.modality == "image" else TEXTS)
    assert expected.shape == (len(found), encoder.dim)
    assert np.ptp(expected, axis=0).max() > 1e-3  # items differ
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_fingerprints_are_those_of_the_weights_in_every_process(tmp_path: Path) -> None:
    described = {name: _make(name, tmp_path / str(row)).describe() for row, name in enumerate(CASES)}
    code = "import json, sys, vision; from rmsh.features.extract import restore; [*map(restore, json.load(sys.stdin))]"
    given: dict[str, Any] = {
        "input": json.dumps([*described.values()]),
        "env": _environment(),
        "text": True,
        "capture_output": True,
    }
    again = subprocess.run([sys.executable, "-c", code], **given)
    assert again.returncode == 0, again.stderr
    _nothing_kept()
    for row, (name, before) in enumerate(described.items()):
        (tmp_path / str(row)).rename(tmp_path / f"{row} before")
        after = _make(name, tmp_path / str(row), seed=1).describe()
        assert before["name"] == after["name"]
        with pytest.raises(FormatError, match=before["fingerprint"]):
            restore(before)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)])}


def test_pooling_and_vocabulary_are_part_of_the_fingerprint(tmp_path: Path) -> None:
    import torch

    found = []
    for pooling in ("mean", "cls"):
        torch.manual_seed(0)
        _sentences(tmp_path / "model", pooling)
        found.append(restore({"name": f"sentence-transformers:{tmp_path / 'model'}"}).fingerprint)
    words = tmp_path / "model" / "tokenizer.json"
    words.write_text(words.read_text().replace('"circle"', '"disc"'))
    found.append(restore({"name": f"sentence-transformers:{tmp_path / 'model'}"}).fingerprint)
    assert len(set(found)) == 3


def test_a_pooling_layer_without_weights_is_left_out_and_other_random_weights_are_refused(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import AutoImageProcessor, AutoModel

    _vit(tmp_path, pooler=False)
    encoder, again = (adapters.Transformers(str(tmp_path)) for _ in range(2))
    described = encoder.describe()
    _nothing_kept()
    assert again.describe() == described
    with torch.inference_mode():
        pixels = AutoImageProcessor.from_pretrained(tmp_path)(_pictures(), return_tensors="pt")
        expected = AutoModel.from_pretrained(tmp_path, add_pooling_layer=False)(**pixels).last_hidden_state.mean(1)
    np.testing.assert_allclose(encoder.encode(_pictures()), expected, rtol=1e-5, atol=1e-5)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["layernorm.weight"]
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    _nothing_kept()
    with pytest.raises(ConfigError, match=r"no weights for layernorm\.weight"):
        adapters.Transformers(str(tmp_path)).encode(_pictures())


def test_images_pass_in_batches_and_unreadable_ones_are_listed(tmp_path: Path) -> None:
    one, two, three = _pictures()
    encoder: Any = _make("timm:local-dir:FOLDER", tmp_path / "model")
    features, unreadable = encoder.encode_readable([one] * 40 + ["gone.png"] + [two] * 40)
    assert [found.row for found in unreadable] == [40]
    expected = np.repeat(encoder.encode([one, three, two]), [40, 1, 40], axis=0)
    expected[40] = 0
    np.testing.assert_allclose(features, expected, rtol=1e-5, atol=1e-5)


def test_networks_of_half_precision_have_a_fingerprint_and_give_floats(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModel

    whole = _make("transformers:FOLDER clip", tmp_path / "model")
    expected = whole.encode(_pictures())
    AutoModel.from_pretrained(tmp_path / "model").to(torch.bfloat16).save_pretrained(tmp_path / "model")
    _nothing_kept()
    half = restore({"name": whole.name})
    found = half.encode(_pictures())
    assert (found.dtype, half.fingerprint == whole.fingerprint) == (np.float32, False)
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_one_network_serves_both_sides_under_one_name(tmp_path: Path) -> None:
    _clip(tmp_path)
    name = f"transformers:{tmp_path}"
    kinds = {modality: check_encoder(name, modality) for modality in ("image", "text")}
    assert [kind.__name__ for kind, _ in kinds.values()] == ["Transformers", "TransformersText"]
    image, text = (kind(model) for kind, model in kinds.values())
    assert image._loaded.network is text._loaded.network


@pytest.mark.parametrize(
    ("name", "item"),
    [
        ("timm:resnet10t.c3_in1k", "image"),
        ("timm:nothing", "image"),
        ("open_clip:ViT-B-32", "image"),
        ("open_clip:ViT-B-32/nothing", "image"),
        ("open_clip:nothing", "image"),
        ("open_clip:local-dir:nothing", "image"),
        ("sentence-transformers:all-mpnet-base-v2", "text"),
        ("transformers:openai/clip-vit-base-patch32", "image"),
        ("transformers-text:bert-base-uncased", "text"),
    ],
)
def test_without_a_connection_the_reason_is_one_sentence(name: str, item: str) -> None:
    with pytest.raises(ConfigError, match=r"^\S.*; .*\.$") as caught:
        restore({"name": name}).encode(_pictures() if item == "image" else TEXTS)
    assert "\n" not in str(caught.value)


def test_open_clip_without_weights_is_refused(tmp_path: Path) -> None:
    _open_clip(tmp_path / "model")
    (tmp_path / "model" / "open_clip_pytorch_model.bin").unlink()
    with pytest.raises(ConfigError, match="Required pretrained weights"):
        adapters.OpenClip(f"local-dir:{tmp_path / 'model'}").encode(_pictures())


@pytest.mark.parametrize(
    ("library", "make", "method"),
    [("open_clip:local-dir:", _open_clip, "rotation"), ("transformers:", _clip, "nest")],
)
def test_a_library_is_built_and_served_with_one_encoder_for_both_sides(
    library: str, make: Callable[[Path], None], method: str, *, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "model")
    (tmp_path / "images").mkdir()
    for number in range(40):
        colour, picture = ("red", "green", "blue")[number % 3], Image.new("RGB", (40, 40), "white")
        ImageDraw.Draw(picture).ellipse((number % 7, 4, 24, 20 + number % 11), fill=colour)
        picture.save(tmp_path / "images" / f"{number:02}.png")
        (tmp_path / "images" / f"{number:02}.txt").write_text(f"a {colour} circle {number}")
    name, out = f"{library}{tmp_path / 'model'}", tmp_path / "library"
    encoders = ["--image-encoder", name, "--text-encoder", name]
    words = ["build", str(tmp_path / "images"), "--out", str(out), *encoders, "--method", method]
    assert run([*words, "--learn-from", "pairs", "--bits", "48"]) == 0, capfd.readouterr().err
    start = "import vision; from rmsh.cli.main import main; main()"
    command = [sys.executable, "-c", start, "serve", str(out), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=_environment(), text=True) as server:
        try:
            url = json.loads(server.stdout.readline())["url"]
            with urlopen(f"{url}api/search?text={quote('a red circle 0')}") as answer:  # noqa: S310
                hits = json.load(answer)["hits"]
        finally:
            server.kill()
    assert len(hits) >= 10
    capfd.readouterr()
    assert run(["search", str(out), "--image", str(tmp_path / "images" / "00.png"), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert "00.png" in [hit["id"] for hit in found["hits"] if hit["distance"] == 0]
    assert found["hits"][0]["id"] == "00.png"  # the vectors rank it before other images with its code
