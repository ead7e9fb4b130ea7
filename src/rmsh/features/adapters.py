"""Models of timm, open_clip and sentence-transformers as encoders.

These libraries download weights from a model hub on first use. The fingerprint covers the weights and the
preprocessing, so that a model of the same name with other weights is detected.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, partial
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
    preprocessing: Any  # of one image, or what the network does to a text
    embed: Callable[[Any], Any]  # a batch of preprocessed images, or a list of texts, to features


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
            raise ConfigError(f"{self.name} cannot be loaded ({error}); check the name and the connection.") from error

    @abstractmethod
    def _load(self) -> _Loaded:
        """Load the model from its library."""

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the weights and the preprocessing."""
        network, preprocessing, _ = self._loaded
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

    @cached_property
    def dim(self) -> int:
        """Number of features, measured on a grey image."""
        from PIL import Image

        return int(self._embed([self._read(Image.new("RGB", (64, 64), "grey"))]).shape[1])

    def _read(self, image: ImageLike) -> Any:
        return self._loaded.preprocessing(read_image(image))

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
        network, transform = _clip(self.model)
        return _Loaded(network, transform, partial(network.encode_image, normalize=True))


class _TextAdapter(_Adapter):
    """A network for texts."""

    modality: ClassVar[Modality] = "text"

    @cached_property
    def dim(self) -> int:
        """Number of features, measured on one word."""
        return int(self._embed(["word"]).shape[1])

    def _embed(self, texts: list[str]) -> FloatArray:
        with require("torch", "hub").inference_mode():
            return np.asarray(self._loaded.embed(texts), dtype=np.float32)

    def encode(self, items: Sequence[str], *, on_progress: OnProgress = ignore) -> FloatArray:
        """Features, float32 (n, dim)."""
        report = counter(on_progress, "encode texts", len(items), "text")
        features = np.empty((len(items), self.dim), dtype=np.float32)
        for done in range(0, len(items), _BATCH):
            texts = [str(item) for item in items[done : done + _BATCH]]
            features[done : done + len(texts)] = self._embed(texts)
            report(done + len(texts))
        return features


class OpenClipText(_TextAdapter):
    """The text encoder of a CLIP model of open_clip: MODEL, or MODEL/WEIGHTS."""

    library = "open_clip-text"

    def _load(self) -> _Loaded:
        network, tokens = _clip(self.model)[0], require("open_clip", "hub").get_tokenizer(self.model.partition("/")[0])
        return _Loaded(network, tokens, lambda texts: network.encode_text(tokens(texts), normalize=True).float().cpu())


class SentenceTransformers(_TextAdapter):
    """A model of sentence-transformers."""

    library = "sentence-transformers"

    def _load(self) -> _Loaded:
        network = require("sentence_transformers", "hub").SentenceTransformer(self.model)
        embed = partial(network.encode, convert_to_numpy=True, show_progress_bar=False)
        return _Loaded(network, f"at most {network.max_seq_length} tokens", embed)


def _clip(model: str) -> tuple[Any, Any]:
    """Network and transformation; by default with weights from LAION-2B, or else the first listed."""
    library = require("open_clip", "hub")
    name, _, weights = model.partition("/")
    known = library.list_pretrained_tags_by_model(name)
    if not known:  # the library would create a network with random weights
        raise ConfigError(f"open_clip has no weights for {name!r}; open_clip.list_pretrained() lists what it has.")
    if weights and weights not in known:
        raise ConfigError(f"open_clip has no weights {weights!r} for {name}; it has {', '.join(known)}.")
    chosen = weights or next((tag for tag in known if tag.startswith("laion2b_s")), known[0])
    network, _, transform = library.create_model_and_transforms(name, pretrained=chosen)
    return network.eval(), transform
