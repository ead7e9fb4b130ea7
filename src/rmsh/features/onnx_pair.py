"""Exported encoders: ``onnx:FILE`` names a JSON file that describes ONNX networks for images, for texts or for both.

{
  "files": {"image.onnx": "SHA-256", "text.onnx": "SHA-256", "tokenizer.json": "SHA-256"},
  "image": {"network": "image.onnx", "size": 224, "mean": [0.48, 0.46, 0.41], "std": [0.27, 0.26, 0.28]},
  "text": {"network": "text.onnx", "tokenizer": "tokenizer.json", "tokens": 77}
}

``files`` lists every file that is read, weights outside a network included. The classes below have the other options.
"""

from __future__ import annotations

import json
from functools import cached_property
from hashlib import sha256 as hash_bytes
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from PIL import Image
from pydantic import Field

from rmsh.core.config import Config
from rmsh.core.errors import ConfigError, FormatError, require
from rmsh.core.files import read_json, sha256
from rmsh.features.adapters import MeasuredTexts
from rmsh.features.images import ImageEncoder, ImageLike, read_image
from rmsh.features.weights import open_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rmsh.core.types import FloatArray, Modality

_TYPES: dict[str, Any] = {"tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
_Colour = tuple[float, float, float]


class _Network(Config):
    network: str = Field(description="ONNX file")
    output: str | None = Field(None, description="name of its output; None: the first")
    pooling: Literal["mean", "first"] = Field("mean", description="of an output with features for each token or place")
    normalize: bool = Field(True, description="whether features get length 1")


class ImageNetwork(_Network):
    """What is done to an image; the first input of the network are its channels, float (n, 3, size, size)."""

    size: int = Field(224, ge=1, le=4096, description="side in pixels")
    crop: bool = Field(True, description="shrink the shorter side to size and cut the rest off; or else squeeze")
    resample: Literal["bicubic", "bilinear"] = Field("bicubic", description="how it is resized")
    mean: _Colour = Field((0.0, 0.0, 0.0), description="subtracted from red, green and blue, which are 0 to 1")
    std: _Colour = Field((1.0, 1.0, 1.0), description="what they are divided by then")


class TextNetwork(_Network):
    """What is done to a text; the inputs are input_ids, attention_mask and token_type_ids, or ids alone."""

    tokenizer: str = Field(description="tokenizer.json, as Hugging Face writes it")
    tokens: int = Field(128, ge=1, le=8192, description="most tokens of a text; a network of fixed length has its own")
    pad: int = Field(0, ge=0, description="token that fills the rest")


class _Exported:
    """One side of a description: checked when it is read, its network loaded on first use."""

    modality: ClassVar[Modality]
    library: ClassVar[str]
    kind: ClassVar[type[ImageNetwork | TextNetwork]]

    def __init__(self, model: str) -> None:
        path = Path(model).absolute()
        self.name, self._folder = f"{self.library}:{path}", path.parent
        try:
            described = read_json(path)
            self._files, side = dict(described["files"]), described[self.modality]
        except (OSError, FormatError, LookupError, TypeError, ValueError) as error:
            found = f"{path} does not describe an encoder of {self.modality}s ({error!r})"
            raise ConfigError(f'{found}; give a JSON file with "files" and "{self.modality}".') from error
        self.options: Any = self.kind.parse(side)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the options and the files, which are compared with their hashes."""
        for name, expected in self._files.items():
            path = self._folder / name
            found = sha256(path) if path.is_file() else "none, as there is no such file"
            if found != expected:
                raise FormatError(f"{path} has the SHA-256 {found}, {self.name} expects {expected}; restore the file.")
        content = json.dumps([self.options.model_dump(), self._files], sort_keys=True)
        return hash_bytes(content.encode()).hexdigest()[:16]

    def describe(self) -> dict[str, Any]:
        """Name and fingerprint."""
        return {"name": self.name, "fingerprint": self.fingerprint}

    def _listed(self, name: str) -> str:
        """The path of a file whose hash is known, which is compared once."""
        if name not in self._files or not self.fingerprint:
            raise ConfigError(f'{self.name} reads {name}, which its "files" do not list; add it with its SHA-256.')
        return str(self._folder / name)

    @cached_property
    def _session(self) -> Any:
        path = self._listed(self.options.network)
        for tensor in require("onnx", "encoders").load(path, load_external_data=False).graph.initializer:
            for entry in tensor.external_data:
                if entry.key == "location":
                    self._listed(entry.value)
        session = open_session(path)
        outputs = [output.name for output in session.get_outputs()]
        if self.options.output not in (None, *outputs):
            raise ConfigError(f"{path} has no output {self.options.output!r}; it has {', '.join(outputs)}.")
        return session

    def _run(self, inputs: dict[str, Any], mask: NDArray[np.int64] | None = None) -> FloatArray:
        """Pooled features, (n, dim); a network of one item at a time gets one at a time."""
        wanted = self._session.get_inputs()
        given = {one.name: inputs[one.name].astype(_TYPES.get(one.type, np.float32)) for one in wanted}
        count, names = len(next(iter(given.values()))), [self.options.output or self._session.get_outputs()[0].name]
        step = 1 if wanted[0].shape[0] == 1 else count
        parts = [{name: array[row : row + step] for name, array in given.items()} for row in range(0, count, step)]
        found = np.concatenate([self._session.run(names, part)[0] for part in parts]).astype(np.float32)
        if found.ndim == 4:  # (n, features, height, width)
            found = found.reshape(*found.shape[:2], -1).transpose(0, 2, 1)
        if found.ndim == 3 and self.options.pooling == "first":
            found = found[:, 0]
        elif found.ndim == 3:
            weights = np.ones(found.shape[:2], np.float32) if mask is None else mask.astype(np.float32)
            found = np.einsum("ntd,nt->nd", found, weights) / weights.sum(axis=1, keepdims=True)
        return found / np.linalg.norm(found, axis=1, keepdims=True) if self.options.normalize else found


class OnnxImages(_Exported, ImageEncoder):
    """Images through an exported network."""

    library, kind = "onnx", ImageNetwork
    batch = 4

    def _read(self, image: ImageLike) -> FloatArray:
        picture, how = read_image(image), self.options
        size = [max(how.size, how.size * side // min(picture.size)) if how.crop else how.size for side in picture.size]
        left, top = (round((side - how.size) / 2) for side in size)
        resized = picture.resize((size[0], size[1]), Image.Resampling[how.resample.upper()])
        channels = np.asarray(resized.crop((left, top, left + how.size, top + how.size)), np.float32) / 255
        mean, std = (np.array(colour, np.float32) for colour in (how.mean, how.std))
        return np.moveaxis(np.asarray((channels - mean) / std, np.float32), 2, 0)

    def _embed(self, images: Sequence[FloatArray]) -> FloatArray:
        return self._run({self._session.get_inputs()[0].name: np.stack(images)})


class OnnxTexts(_Exported, MeasuredTexts):
    """Texts through an exported network."""

    library, kind = "onnx-text", TextNetwork

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizer = require("tokenizers", "encoders").Tokenizer.from_file(self._listed(self.options.tokenizer))
        length = fixed if isinstance(fixed := self._session.get_inputs()[0].shape[1], int) else None
        tokenizer.enable_truncation(length or self.options.tokens)
        tokenizer.enable_padding(pad_id=self.options.pad, length=length)
        return tokenizer

    def _embed(self, texts: list[str]) -> FloatArray:
        encoded, inputs = self._tokenizer.encode_batch(texts), self._session.get_inputs()
        ids, mask = np.array([one.ids for one in encoded]), np.array([one.attention_mask for one in encoded])
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        if len(inputs) == 1:
            given[inputs[0].name] = ids
        if unknown := [one.name for one in inputs if one.name not in given]:
            raise ConfigError(f"{self.name} has the inputs {', '.join(unknown)}; {', '.join(given)} are allowed.")
        return self._run(given, mask)
