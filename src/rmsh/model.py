"""What learning leaves: the hash functions of both modalities and everything needed to explain them.

A saved model is a folder: ``model.safetensors`` (the layers), ``card.md`` (for people), ``config.json`` (written last).
Loading, projecting and coding need numpy only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors
import safetensors.numpy

from rmsh.codes import Codes
from rmsh.core.errors import FormatError, InputError
from rmsh.core.files import atomic, read_json, write_json, write_text
from rmsh.core.types import MODALITIES, Modality
from rmsh.hash_function import HashFunction

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rmsh.core.types import Features, FloatArray

__all__ = ["Model", "load"]

_FORMAT = 1
_KEYS = {"format", "fingerprint", "method", "options", "activations", "facts", "encoders"}  # of config.json


@dataclass(frozen=True, eq=False)
class Model:
    """Learned hash functions.

    Args:
        functions: one hash function a modality.
        method: the name of the method that learned them.
        options: its configuration.
        facts: what was found while learning, such as delta and the reason for it; plain JSON values.
        encoders: for each modality, how its features were made; empty where features were given.
    """

    functions: Mapping[Modality, HashFunction]
    method: str
    options: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    encoders: Mapping[Modality, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def bits(self) -> int:
        """The length of a code."""
        return next(iter(self.functions.values())).bits

    @property
    def fingerprint(self) -> str:
        """Names the hash functions by their content: codes of two models compare only if it is the same."""
        return sha256(self._tensor_bytes()).hexdigest()[:16]

    def project(self, features: Features, modality: Modality) -> FloatArray:
        """The relaxed codes, float32 (n, bits).

        Raises:
            InputError: the model has no function for this modality.
            DataError: the features have another width.
        """
        if modality not in self.functions:
            known = " and ".join(self.functions)
            raise InputError(f"This model was asked for a code of {modality!r}; it has a function for {known} only.")
        return self.functions[modality](features)

    def encode(self, features: Features, modality: Modality, *, ids: ArrayLike | None = None) -> Codes:
        """The binary codes: the signs of :meth:`project`."""
        return Codes.from_values(self.project(features, modality), ids)

    def with_encoders(self, encoders: Mapping[Modality, Mapping[str, Any]]) -> Model:
        """The same model, saying how its features are made."""
        return replace(self, encoders=dict(encoders))

    def _tensor_bytes(self) -> bytes:
        tensors: dict[str, FloatArray] = {}
        for modality, function in self.functions.items():
            tensors |= function.tensors(modality)
        return safetensors.numpy.save(dict(sorted(tensors.items())))

    def save(self, folder: Path | str) -> None:
        """Write the model folder; a folder without ``config.json`` is unfinished."""
        path = Path(folder)
        with atomic(path / "model.safetensors") as file:
            file.write(self._tensor_bytes())
        write_text(path / "card.md", _card(self))
        write_json(path / "config.json", {"format": _FORMAT, "fingerprint": self.fingerprint, **self._described()})

    def _described(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "bits": self.bits,
            "options": dict(self.options),
            "activations": {m: f.kinds for m, f in self.functions.items()},
            "facts": dict(self.facts),
            "encoders": {m: dict(e) for m, e in self.encoders.items()},
        }


def load(folder: Path | str) -> Model:
    """Read a model folder.

    Raises:
        InputError: there is no finished model.
        FormatError: it is damaged or of a newer version.
    """
    path = Path(folder)
    if not (path / "config.json").is_file():
        raise InputError(f"{path} holds no finished model (config.json is missing); train one with `rmsh train`.")
    config = read_json(path / "config.json")
    if not isinstance(config, dict) or not config.keys() >= _KEYS:
        raise FormatError(f"{path}/config.json is not of a model of rmsh; give a folder that `rmsh train` wrote.")
    if config["format"] > _FORMAT:
        raise FormatError(f"{path} has model format {config['format']}, this rmsh reads up to {_FORMAT}; upgrade rmsh.")
    try:
        tensors = safetensors.numpy.load_file(path / "model.safetensors")
    except (OSError, safetensors.SafetensorError) as error:
        raise FormatError(f"{path}/model.safetensors cannot be read ({error}); restore it or train anew.") from error
    functions = {
        modality: HashFunction.from_tensors(modality, tensors, config["activations"][modality])
        for modality in MODALITIES
        if modality in config["activations"]
    }
    model = Model(functions, config["method"], config["options"], config["facts"], config["encoders"])
    if model.fingerprint != config["fingerprint"]:
        raise FormatError(
            f"{path}/model.safetensors is not the file config.json was written for; restore it or train anew."
        )
    return model


def _card(model: Model) -> str:
    """A page about the model for people."""
    shapes = "\n".join(
        f"- {modality}: {' -> '.join(str(layer.inputs) for layer in f.layers)} -> {f.bits}"
        for modality, f in model.functions.items()
    )
    facts = "\n".join(f"- {name}: {json.dumps(value)}" for name, value in model.facts.items() if name != "history")
    options = "\n".join(f"- {name}: {json.dumps(value)}" for name, value in model.options.items())
    encoders = "\n".join(f"- {m}: {e.get('name')}" for m, e in model.encoders.items()) or "- features were given"
    return f"""# {model.method}, {model.bits} bits

Hash functions learned by rmsh. A picture finds texts and a text finds pictures by the Hamming distance of their codes.

## Layers

{shapes}

## Encoders

{encoders}

## What was found

{facts}

## Options

{options}
"""
