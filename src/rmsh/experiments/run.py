"""A run: one method, learned once and scored; everything its result depends on, and the file its result is in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

from rmsh.codes import MAX_BITS
from rmsh.errors import ConfigError

__all__ = ["Run"]

# What a file's name shows; the rest is in its hash.
_SHOWN = ("dataset", "method", "bits", "seed")
_USUAL: dict[str, Any] = {
    "preset": None,
    "options": {},
    "text": "minilm",
    "train": None,
    "validation": False,
    "label_noise": 0.0,
    "image_noise": 0.0,
    "text_noise": 0.0,
    "k": 500,
}


@dataclass(frozen=True)
class Run:
    """One training and its scores.

    Args:
        dataset: the short name of the data, such as "coco66k".
        method: a registered method, or a reference line without codes, see references.py.
        bits: the length of a code; 0 for a reference line.
        seed: everything random follows from it.
        preset: a named set of the method's options.
        options: of the method; they win over the preset.
        text: the encoder of raw texts.
        train: learn from so many of the training pairs only; None is all. On validation they are also what is searched,
            where the database is what is learned from.
        validation: held-out training pairs ask in the place of the queries.
        label_noise: share of the training pairs whose labels are those of another pair.
        image_noise: noise in the pictures that ask, see noise.py.
        text_noise: noise in the texts that ask.
        k: where NDCG and precision cut the ranking.
        tag: what a table calls this run; its result does not depend on it, nor does its path.

    Raises:
        ConfigError: a number is out of range.

    Example:
        >>> Run("coco66k", "rmsh").path
        PurePosixPath('coco66k/rmsh-64-s0.json')
        >>> Run("coco66k", "rmsh", bits=16, options={"delta": 2.0}).path
        PurePosixPath('coco66k/rmsh-16-s0-7bc53310.json')
    """

    dataset: str
    method: str
    bits: int = 64
    seed: int = 0
    preset: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    text: str = "minilm"
    train: int | None = None
    validation: bool = False
    label_noise: float = 0.0
    image_noise: float = 0.0
    text_noise: float = 0.0
    k: int = 500
    tag: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.bits <= MAX_BITS:
            raise ConfigError(f"A run of {self.bits} bits was asked for; give 1 to {MAX_BITS}.")
        if self.train is not None and self.train < 3:
            raise ConfigError(f"{self.train} training pairs were asked for; give at least 3, or leave it out.")
        if self.k < 1:
            raise ConfigError(f"A ranking was to be cut at k = {self.k}; give a whole number from 1.")
        if not 0 <= self.label_noise <= 1:
            raise ConfigError(f"label_noise is {self.label_noise}; it is a share of the training pairs, 0 to 1.")
        if self.image_noise < 0 or self.text_noise < 0:
            raise ConfigError(f"image_noise is {self.image_noise} and text_noise {self.text_noise}; give 0 or more.")

    @property
    def path(self) -> PurePosixPath:
        """Where the result is, relative to the folder of all results: readable, and another for other parameters."""
        unusual = {name: getattr(self, name) for name, usual in _USUAL.items() if getattr(self, name) != usual}
        length = f"-{self.bits}" if self.bits else ""
        name = f"{self.method}{length}-s{self.seed}" + (f"-{_digest(unusual)}" if unusual else "")
        return PurePosixPath(self.dataset) / f"{name}.json"

    def to_json(self) -> dict[str, Any]:
        """All parameters as plain values."""
        return {name: getattr(self, name) for name in (*_SHOWN, *_USUAL)} | {"options": dict(self.options)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Run:
        """The run of a result file's "run".

        Example:
            >>> run = Run("coco66k", "scm", options={"ridge": 0.1})
            >>> Run.from_json(run.to_json()) == run
            True
        """
        return cls(**values)


def _digest(value: Any) -> str:
    return sha256(json.dumps(_plain(value), sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:8]


def _plain(value: Any) -> Any:
    """The same value however it was written: 2.0 is 2.

    Example:
        >>> _plain({"delta": 2.0, "masks": [True, 0.5]})
        {'delta': 2, 'masks': [True, 0.5]}
    """
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
