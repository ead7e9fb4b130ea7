"""Models of timm, open_clip, sentence-transformers and transformers as encoders.

These libraries download weights from a model hub on first use, or read a folder: timm:local-dir:FOLDER,
open_clip:local-dir:FOLDER, sentence-transformers:FOLDER, transformers:FOLDER. The fingerprint covers the weights and
the preprocessing, so that a model of the same name with other weights is detected. Models for images and texts, such
as CLIP, are two encoders that share one network; their features have length 1.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from rmsh.core.errors import ConfigError, RmshError, require
from rmsh.core.progress import OnProgress, counter, ignore
from rmsh.features.images import ImageEncoder, ImageLike, read_image

if TYPE_CHECKING:
    from rmsh.core.types import FloatArray, Modality

_BATCH = 32  # items that pass through a network together


class _Loaded(NamedTuple):
    """A model of a library."""

    network: Any
    preprocessing: Any  # of one image, or what is done to a text; its string identifies it
    embed: Callable[[Any], Any]  # a batch of preprocessed images, or a list of texts, to features
    read: Callable[[Any], Any] | None = None  # an image to a tensor; None: the preprocessing


class _Adapter(ABC):
    """A model of another library, by its name there; loaded on first use."""

    library: ClassVar[str]

    def __init__(self, model: str) -> None:
        self.model = model

    @property
    def name(self) -> str:
        """Library and model, such as ``timm:resnet152``."""
        return f"{self.library}:{self.model}"

    @cached_property
    def _loaded(self) -> _Loaded:
        try:
            return self._load()
        except RmshError:
            raise
        except Exception as error:  # unknown name, no connection, full disk: each library raises its own
            reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
            raise ConfigError(f"{self.name} cannot be loaded ({reason}); check the name and the connection.") from error

    @abstractmethod
    def _load(self) -> _Loaded:
        """Load the model from its library."""

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the weights and the preprocessing."""
        network, preprocessing, *_ = self._loaded
        # The default representation of functions and objects contains a memory address, which differs per process.
        shown = re.sub(r" at 0x[0-9a-fA-F]+", "", str(preprocessing))
        digest = sha256(f"{self.name}\n{shown}".encode())
        byte = require("torch", "hub").uint8  # numpy does not have every type of torch
        for name, tensor in sorted(network.state_dict().items()):
            digest.update(name.encode() + tensor.detach().cpu().contiguous().reshape(-1).view(byte).numpy().tobytes())
        return digest.hexdigest()[:16]

    def describe(self) -> dict[str, Any]:
        """Name and fingerprint."""
        return {"name": self.name, "fingerprint": self.fingerprint}


class _ImageAdapter(_Adapter, ImageEncoder):
    """A network for images with its library's transformation."""

    batch = _BATCH

    def _read(self, image: ImageLike) -> Any:
        return (self._loaded.read or self._loaded.preprocessing)(read_image(image))

    def _embed(self, images: Sequence[Any]) -> FloatArray:
        torch = require("torch", "hub")
        with torch.inference_mode():
            return np.asarray(self._loaded.embed(torch.stack(list(images))).float().cpu())


class Timm(_ImageAdapter):
    """An image model of timm, without its classifier."""

    library = "timm"

    def _load(self) -> _Loaded:
        timm = require("timm", "hub")
        network = timm.create_model(self.model, pretrained=True, num_classes=0).eval()
        options = timm.data.resolve_model_data_config(network)
        return _Loaded(network, timm.data.create_transform(**options, is_training=False), network)


class OpenClip(_ImageAdapter):
    """The image encoder of a CLIP model of open_clip: MODEL, or MODEL/WEIGHTS."""

    library = "open_clip"

    def _load(self) -> _Loaded:
        network, transform, _ = _clip(self.model)
        return _Loaded(network, transform, partial(network.encode_image, normalize=True))


class Transformers(_ImageAdapter):
    """An image model of transformers: the image encoder of CLIP and the like, otherwise the pooled output."""

    library = "transformers"

    def _load(self) -> _Loaded:
        network = _network(self.model)
        processor = require("transformers", "hub").AutoImageProcessor.from_pretrained(self.model)

        def embed(pixels: Any) -> Any:
            if hasattr(network, "get_image_features"):
                return _unit(network.get_image_features(pixel_values=pixels))
            found = network(pixel_values=pixels)
            return found.last_hidden_state.mean(1) if found.pooler_output is None else found.pooler_output.flatten(1)

        read = partial(processor, return_tensors="pt")
        return _Loaded(network, processor, embed, lambda image: read(images=image)["pixel_values"][0])


class MeasuredTexts(ABC):
    """An encoder of texts in batches that tells its number of features by encoding a word."""

    modality: ClassVar[Modality] = "text"

    @cached_property
    def dim(self) -> int:
        """Number of features, measured on one word."""
        return int(self._embed(["word"]).shape[1])

    @abstractmethod
    def _embed(self, texts: list[str]) -> FloatArray:
        """The network: features, float32 (n, dim)."""

    def encode(self, items: Sequence[str], *, on_progress: OnProgress = ignore) -> FloatArray:
        """Features, float32 (n, dim)."""
        report = counter(on_progress, "encode texts", len(items), "text")
        features = np.empty((len(items), self.dim), dtype=np.float32)
        for done in range(0, len(items), _BATCH):
            texts = [str(item) for item in items[done : done + _BATCH]]
            features[done : done + len(texts)] = self._embed(texts)
            report(done + len(texts))
        return features


class _TextAdapter(_Adapter, MeasuredTexts):
    """A network for texts."""

    def _embed(self, texts: list[str]) -> FloatArray:
        with require("torch", "hub").inference_mode():
            return np.asarray(self._loaded.embed(texts), dtype=np.float32)


class OpenClipText(_TextAdapter):
    """The text encoder of a CLIP model of open_clip: MODEL, or MODEL/WEIGHTS."""

    library = "open_clip-text"

    def _load(self) -> _Loaded:
        network, _, name = _clip(self.model)
        tokens = require("open_clip", "hub").get_tokenizer(name)
        return _Loaded(network, tokens, lambda texts: network.encode_text(tokens(texts), normalize=True).float().cpu())


class SentenceTransformers(_TextAdapter):
    """A model of sentence-transformers."""

    library = "sentence-transformers"

    def _load(self) -> _Loaded:
        network = require("sentence_transformers", "hub").SentenceTransformer(self.model)
        embed = partial(network.encode, convert_to_numpy=True, show_progress_bar=False)
        # The string of the network says how it pools.
        return _Loaded(network, f"{network} {network.max_seq_length} {_tokens(network.tokenizer)}", embed)


class TransformersText(_TextAdapter):
    """A text model of transformers: the text encoder of CLIP and the like, otherwise the mean over the tokens."""

    library = "transformers-text"

    def _load(self) -> _Loaded:
        network = _network(self.model)
        tokenizer = require("transformers", "hub").AutoTokenizer.from_pretrained(self.model)
        positions = getattr(network.config.get_text_config(), "max_position_embeddings", 512)
        most = min(tokenizer.model_max_length, positions)
        # SigLIP was trained with padding to the full length, and attends to it.
        padding = "max_length" if network.config.model_type.startswith("siglip") else True

        def embed(texts: list[str]) -> Any:
            tokens = tokenizer(texts, padding=padding, truncation=True, max_length=most, return_tensors="pt")
            if hasattr(network, "get_text_features"):
                tokens.pop("token_type_ids", None)
                return _unit(network.get_text_features(**tokens)).float().cpu()
            mask = tokens["attention_mask"][:, :, None]
            return ((network(**tokens).last_hidden_state * mask).sum(1) / mask.sum(1)).float().cpu()

        return _Loaded(network, f"at most {most} {_tokens(tokenizer)}", embed)


@lru_cache(maxsize=1)  # shared by the encoders of images and texts
def _network(model: str) -> Any:
    """A complete network of transformers; a pooling layer without weights, which would be random, is left out."""
    network, loaded = require("transformers", "hub").AutoModel.from_pretrained(model, output_loading_info=True)
    absent = sorted(loaded["missing_keys"])
    if not all(name.startswith("pooler.") for name in absent):
        raise ConfigError(f"{model} has no weights for {', '.join(absent[:3])}; choose a complete model.")
    if absent:
        network.pooler = None
    return network.eval()


def _unit(found: Any) -> Any:
    """Features of length 1; since version 5, transformers returns them inside an object."""
    features = getattr(found, "pooler_output", found)
    return features / features.norm(dim=1, keepdim=True)


def _tokens(tokenizer: Any) -> str:
    """What identifies a tokenizer; how it pads and cuts changes while it is used."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    shown = {"vocab": tokenizer.get_vocab()} if backend is None else json.loads(backend.to_str())
    return json.dumps({k: v for k, v in shown.items() if k not in ("padding", "truncation")}, sort_keys=True)


@lru_cache(maxsize=1)  # shared by the encoders of images and texts
def _clip(model: str) -> tuple[Any, Any, str]:
    """Network, transformation and name; by default with weights from LAION-2B, or else the first listed."""
    library, name, chosen = require("open_clip", "hub"), model, None
    if ":" not in model:  # not local-dir:FOLDER or hf-hub:NAME
        name, _, weights = model.partition("/")
        known = library.list_pretrained_tags_by_model(name)
        if not known:
            raise ConfigError(f"open_clip has no weights for {name!r}; open_clip.list_pretrained() lists what it has.")
        if weights and weights not in known:
            raise ConfigError(f"open_clip has no weights {weights!r} for {name}; it has {', '.join(known)}.")
        chosen = weights or next((tag for tag in known if tag.startswith("laion2b_s")), known[0])
    network, transform = library.create_model_from_pretrained(name, pretrained=chosen)  # refuses random weights
    return network.eval(), transform, name
