"""A trained model: the hash functions of both modalities and everything needed to explain them.

A saved model is a folder: ``model.safetensors`` (the layers), ``card.md`` (for people), ``config.json`` (written last).
Loading and encoding need numpy only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import ArrayLike
from scipy import sparse

from rmsh.codes import Codes
from rmsh.core.errors import FormatError, InputError
from rmsh.core.files import atomic, read_json, write_json, write_text
from rmsh.core.types import MODALITIES, Features, FloatArray, Modality
from rmsh.hash_function import HashFunction, JointLayer

_FORMAT = 2  # 1 without functions of database items
_MOST_FEATURES = 1024  # of a text, to store them
_KEYS = {"format", "fingerprint", "method", "options", "activations", "facts", "encoders"}  # of config.json


@dataclass(frozen=True, eq=False)
class Model:
    """Trained hash functions, one per modality."""

    functions: Mapping[Modality, HashFunction]
    method: str  # name of the method that trained them
    options: Mapping[str, Any]  # of the method
    facts: Mapping[str, Any] = field(default_factory=dict)  # results of training as plain JSON values, such as delta
    encoders: Mapping[Modality, Mapping[str, Any]] = field(default_factory=dict)  # empty if features were given
    # Of "image", "text" or "labels": the sign of their sum is the code of a database item; empty: coded as a query.
    database: Mapping[str, HashFunction] = field(default_factory=dict)

    @property
    def bits(self) -> int:
        """The length of a code."""
        return next(iter(self.functions.values())).bits

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the hash functions; codes can be compared only if they have the same fingerprint."""
        return sha256(self._tensor_bytes()).hexdigest()[:16]

    def project(self, features: Features, modality: Modality) -> FloatArray:
        """The relaxed codes, float32 (n, bits); InputError without a function for this modality."""
        if modality not in self.functions:
            known = " and ".join(self.functions)
            raise InputError(f"This model cannot encode {modality!r}; it has a function for {known} only.")
        return self.functions[modality](features)

    def encode(self, features: Features, modality: Modality, *, ids: ArrayLike | None = None) -> Codes:
        """The binary codes: the signs of :meth:`project`."""
        return Codes.from_values(self.project(features, modality), ids)

    def embed(self, features: Features, modality: Modality) -> FloatArray:
        """Vectors in the joint space of images and texts, float32 (n, dimensions).

        In their dot products, label probabilities count half as much as the embedding: most words are not labels.
        InputError if the model has no joint space; ``has_embedding`` tells.
        """
        joint = self.functions[modality].joint
        if joint is None:
            raise InputError(f"A model of {self.method} has codes only; train one with nest for embeddings.")
        return _weigh_labels(joint(features), joint)

    def project_and_embed(self, features: Features, modality: Modality) -> tuple[FloatArray, FloatArray]:
        """What :meth:`project` and :meth:`embed` return, for a model with a joint space, in one pass."""
        function = self.functions[modality]
        joint = cast("HashFunction", function.joint)
        vectors = joint(features)
        values = HashFunction(function.layers[len(joint.layers) :])(vectors)
        return values, _weigh_labels(vectors, joint)

    def vectors(self, features: Features, modality: Modality, embedded: FloatArray | None = None) -> FloatArray:
        """What ranks items more finely than codes: embeddings of images, and features of texts unless very wide.

        ``embedded``, if given, is what :meth:`embed` returns for them.
        """
        if modality == "image" or self.functions["text"].inputs > _MOST_FEATURES:
            return self.embed(features, modality) if embedded is None else embedded
        dense = cast("Any", features).toarray() if sparse.issparse(features) else features
        return np.asarray(dense, dtype=np.float32)

    def joint(self, vectors: FloatArray, modality: Modality) -> FloatArray:
        """Vectors of :meth:`vectors` in the joint space."""
        features = modality == "text" and self.functions["text"].inputs <= _MOST_FEATURES
        return self.embed(vectors, modality) if features else vectors

    @property
    def has_embedding(self) -> bool:
        """Whether :meth:`embed` works."""
        return all(function.joint is not None for function in self.functions.values())

    def with_encoders(self, encoders: Mapping[Modality, Mapping[str, Any]]) -> Model:
        """The same model, saying how its features are made."""
        return replace(self, encoders=dict(encoders))

    @property
    def _all_functions(self) -> dict[str, HashFunction]:
        """The functions by their name in a model file."""
        database = {f"database.{name}": function for name, function in self.database.items()}
        return dict[str, HashFunction](self.functions.items()) | database

    def _tensor_bytes(self, *, compact: bool = False) -> bytes:
        """The weights as a safetensors file; ``compact`` stores those in half precision that lose nothing by it."""
        tensors: dict[str, Any] = {}
        for name, function in self._all_functions.items():
            tensors |= function.tensors(name)
        if compact:
            with np.errstate(over="ignore"):
                halves = {name: array.astype(np.float16) for name, array in tensors.items()}
            tensors |= {name: half for name, half in halves.items() if np.array_equal(half, tensors[name])}
        return safetensors.numpy.save(dict(sorted(tensors.items())))

    def save(self, folder: Path | str) -> None:
        """Write the model folder; a folder without ``config.json`` is unfinished."""
        path = Path(folder)
        with atomic(path / "model.safetensors") as file:
            file.write(self._tensor_bytes(compact=True))
        write_text(path / "card.md", _card(self))
        config = {
            "format": _FORMAT if self.database else 1,
            "fingerprint": self.fingerprint,
            "method": self.method,
            "bits": self.bits,
            "options": dict(self.options),
            "activations": {name: f.kinds for name, f in self._all_functions.items()},
            "facts": dict(self.facts),
            "encoders": {m: dict(e) for m, e in self.encoders.items()},
        }
        write_json(path / "config.json", {**config, "checksum": _checksum(config)})


def load(folder: Path | str) -> Model:
    """Read a model folder; InputError if it has no finished model, FormatError if it is damaged or of a newer rmsh."""
    path = Path(folder)
    if not (path / "config.json").is_file():
        raise InputError(f"{path} does not contain a finished model (no config.json); train one with `rmsh train`.")
    config = read_json(path / "config.json")
    if not isinstance(config, dict) or not config.keys() >= _KEYS:
        raise FormatError(f"{path}/config.json does not describe a model; give a folder written by `rmsh train`.")
    if config["format"] > _FORMAT:
        raise FormatError(f"{path} has model format {config['format']}, this rmsh reads up to {_FORMAT}; update rmsh.")
    if config.pop("checksum", None) not in (None, _checksum(config)):  # models of older versions have none
        raise FormatError(f"{path}/config.json does not match its checksum; restore it or train again.")
    try:
        stored = safetensors.numpy.load_file(path / "model.safetensors")
    except (OSError, safetensors.SafetensorError) as error:
        raise FormatError(f"{path}/model.safetensors cannot be read ({error}); restore it or train again.") from error
    tensors = {name: array.astype(np.float32, copy=False) for name, array in stored.items()}
    stored_functions = {n: HashFunction.from_tensors(n, tensors, kinds) for n, kinds in config["activations"].items()}
    functions = {m: stored_functions.pop(m) for m in MODALITIES if m in stored_functions}
    database = {name.removeprefix("database."): function for name, function in stored_functions.items()}
    model = Model(functions, config["method"], config["options"], config["facts"], config["encoders"], database)
    if model.fingerprint != config["fingerprint"]:
        raise FormatError(
            f"{path}/model.safetensors does not match the fingerprint in config.json; restore it or train again."
        )
    return model


def _checksum(config: Mapping[str, Any]) -> str:
    """A hash of the description of a model, so that a damaged name of an encoder or of a layer is noticed."""
    return sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:16]


def _weigh_labels(vectors: FloatArray, joint: HashFunction) -> FloatArray:
    vectors[:, : int(cast("JointLayer", joint.layers[-1]).classes[0])] *= np.float32(np.sqrt(0.5))
    return vectors


def _card(model: Model) -> str:
    """The text of card.md."""
    shapes = "\n".join(
        f"- {modality}: {' -> '.join(str(layer.inputs) for layer in f.layers)} -> {f.bits}"
        for modality, f in model.functions.items()
    )
    facts = "\n".join(f"- {name}: {json.dumps(value)}" for name, value in model.facts.items() if name != "history")
    options = "\n".join(f"- {name}: {json.dumps(value)}" for name, value in model.options.items())
    encoders = (
        "\n".join(f"- {m}: {e.get('name')}" for m, e in model.encoders.items())
        or "- none: the model was trained on given features"
    )
    return f"""# {model.method}, {model.bits} bits

Hash functions trained by rmsh. An image finds texts and a text finds images by the Hamming distance of their codes.

## Layers

{shapes}

## Encoders

{encoders}

## Training

{facts}

## Options

{options}
"""
